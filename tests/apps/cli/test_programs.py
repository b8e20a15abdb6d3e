"""Commands keep what they compiled: where, how much, and what happens when the folder is not as it
should be.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jaxbandits.apps._cli import console
from tests.processes import python


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (console.VARIABLE, "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_the_folder_is_the_users_and_the_processors(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    from jaxbandits.core import checks

    kind = f"{checks.processor()}-jax-{jax.__version__}"
    assert console.programs_folder() == home / ".cache" / "jaxbandits" / "programs" / kind
    monkeypatch.setattr(checks, "processor", lambda: "another")
    assert console.programs_folder() != home / ".cache" / "jaxbandits" / "programs" / kind
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "x"))
    assert console.programs_folder().parts[-5:-2] == (home.name, "x", "jaxbandits")  # type: ignore[union-attr]
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert (home / ".cache") in console.programs_folder().parents  # type: ignore[union-attr]
    monkeypatch.setenv(console.VARIABLE, str(home / "mine"))
    assert (home / "mine") in console.programs_folder().parents  # type: ignore[union-attr]
    for off in ("off", "OFF", "0", "no"):
        monkeypatch.setenv(console.VARIABLE, off)
        assert console.programs_folder() is None


def test_old_entries_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_LARGEST_FOLDER", 100)
    for i in range(10):
        (tmp_path / f"{i}-cache").write_bytes(b"x" * 10)
        os.utime(tmp_path / f"{i}-cache", (i, i))
    console._prune(tmp_path)
    assert len(list(tmp_path.iterdir())) == 10
    (tmp_path / "new-cache").write_bytes(b"x" * 10)
    console._prune(tmp_path)
    entries = sorted(path.name for path in tmp_path.iterdir())
    assert entries == [*(f"{i}-cache" for i in range(6, 10)), "new-cache"]


@pytest.mark.integration
def test_a_second_command_compiles_nothing_and_damage_is_ignored(home: Path) -> None:
    arms = home / "arms.csv"
    arms.write_text("name,mean_reward,mean_cost\na,0.5,0.5\nb,0.7,0.5\n")
    count = (
        "import jax, sys\nseen = []\n"
        "jax.monitoring.register_event_listener(lambda name, **_: seen.append(name))\n"
        "from jaxbandits.apps._cli.console import main\ncode = main(sys.argv[1:])\n"
        "print('missed', seen.count('/jax/compilation_cache/cache_misses'), file=sys.stderr)\nsys.exit(code)"
    )

    def compare(**more: str) -> tuple[str, int]:
        """What it printed, and how many programs it compiled."""
        words = f"compare --arms {arms} --budget 20 --runs 4 --policies c_ucb --out {home / 'out'}"
        done = python(count, *words.split(), environ=more)
        *errors, last = done.stderr.splitlines()
        assert not errors, errors
        return done.stdout, int(last.split()[1])

    printed, compiled = compare()
    assert compiled > 0
    assert compare() == (printed, 0)
    folder = console.programs_folder()
    assert folder is not None and sum(1 for _ in folder.iterdir()) >= compiled
    for entry in folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:40])
    assert compare()[0] == printed
    not_a_folder = home / "file"
    not_a_folder.write_text("no folder")
    assert compare(JAXBANDITS_CACHE=str(not_a_folder))[0] == printed
    before = sorted(home.rglob("*-cache"))
    assert compare(JAXBANDITS_CACHE="off")[0] == printed and sorted(home.rglob("*-cache")) == before
