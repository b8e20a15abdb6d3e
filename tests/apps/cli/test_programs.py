"""Commands keep what they compiled, in jax's own cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.processes import python

COUNT = (
    "import jax, sys\nseen = []\n"
    "jax.monitoring.register_event_listener(lambda name, **_: seen.append(name))\n"
    "from jaxbandits.apps._cli.console import main\ncode = main(sys.argv[1:])\n"
    "print('missed', seen.count('/jax/compilation_cache/cache_misses'), file=sys.stderr)\nsys.exit(code)"
)


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_a_second_command_compiles_nothing_and_damage_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAXBANDITS_CACHE", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "arms.csv").write_text("name,mean_reward,mean_cost\na,0.5,0.5\nb,0.7,0.5\n")

    def compare() -> tuple[str, int]:
        """What it printed, and how many programs it compiled."""
        words = f"compare --arms {tmp_path}/arms.csv --budget 20 --runs 4 --policies c_ucb"
        done = python(COUNT, *words.split(), "--out", str(tmp_path / "out"))
        *errors, last = done.stderr.splitlines()
        assert all("/4 runs" in line for line in errors), errors  # on a busy machine it reports
        return done.stdout, int(last.split()[1])

    printed, compiled = compare()
    assert compiled > 0
    assert compare() == (printed, 0)
    (folder,) = (tmp_path / ".cache/jaxbandits/programs").iterdir()
    assert sum(1 for _ in folder.iterdir()) >= compiled
    for entry in folder.glob("*-cache"):
        entry.write_bytes(entry.read_bytes()[:40])
    assert compare()[0] == printed
