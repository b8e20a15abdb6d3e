"""Folders that others have touched: nothing of theirs is followed, run, written to or deleted."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._cli.console import main
from jaxbandits._reports.progress import Progress
from jaxbandits.sweeps import lock, make_plan, sweep
from jaxbandits.sweeps.blocks import Content, block_name, decode, encode
from jaxbandits.sweeps.spec_file import load_spec
from jaxbandits.sweeps.store import Folder

NAMES = ("=cmd()|x", "plain")


def spec():
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.6, 0.2]], [[0.9, 0.3], [0.7, 0.3]])
    policies = {NAMES[0]: jb.policies.MUCB(alpha=[0.25, 1.0]), NAMES[1]: jb.policies.MUCB()}
    constraint = jb.TotalBudget(6.0, last_pull="counts")
    return jb.Sweep(
        policies=policies,
        environments=arms,
        constraint=constraint,
        replicates=2,
        marks=2,
        engine="scan",
        block_seconds=6e-6,
    )


def contents(folder):
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != "log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers") / "out"
    sweep(spec(), folder)
    return folder, contents(folder)


def replaced(folder, arrays, number=0):
    """Another block in place of one of ours, under the name that fits its bytes."""
    (old,) = (folder / "blocks").glob(f"{number:05d}-*.npz")
    old.unlink()
    content = encode(arrays)
    (folder / "blocks" / block_name(number, content)).write_bytes(content)


# ---- blocks


WRONG = {
    "one lane for all": lambda x: {name: v[:1] for name, v in x.items()},
    "one mark for all": lambda x: x | {"reward": x["reward"][:, :1]},
    "floats": lambda x: x | {"reward": x["reward"].astype(float)},
    "NaN": lambda x: x | {"reward": x["reward"] * np.nan},
    "int32": lambda x: x | {"rounds": x["rounds"].astype(np.int32)},
    "text": lambda x: x | {"reward": x["reward"].astype(str)},
    "an unknown status": lambda x: x | {"ended": x["ended"] + np.int8(9)},
    "a lane that still runs": lambda x: x | {"ended": x["ended"] * np.int8(0)},
    "a status too wide": lambda x: x | {"ended": x["ended"].astype(np.int64)},
    "negative rounds": lambda x: x | {"rounds": -x["rounds"]},
    "rounds beyond the cap": lambda x: x | {"rounds": x["rounds"] + 2**30},
    "an account missing": lambda x: {name: v for name, v in x.items() if name != "spent"},
    "an account too many": lambda x: x | {"event:found": x["rounds"]},
    "another clock": lambda x: x | {"clock": x["clock"] + 1},
    "another expected clock": lambda x: x | {"expected_clock": x["expected_clock"] * 2},
    "an amount beyond two limbs": lambda x: x | {"reward": x["reward"] + 2**60},
    "a resource too many": lambda x: x | {"spent": x["spent"][..., None]},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_block_that_cannot_be_is_told_from_one_that_can(done, change):
    arrays = Folder(done[0]).get(0)
    content = Content(make_plan(spec()))
    assert content.misfit(0, arrays) == ""
    assert content.misfit(0, change(arrays))


def test_such_blocks_are_named_and_played_again(done, capsys):
    folder, before = done
    for number, change in enumerate([WRONG["one lane for all"], WRONG["another clock"], WRONG["NaN"]]):
        replaced(folder, change(Folder(folder).get(number)), number)
    (sixth,) = (folder / "blocks").glob("00003-*.npz")
    twin = encode({name: x + (name == "reward") for name, x in Folder(folder).get(3).items()})
    (folder / "blocks" / block_name(3, twin)).write_bytes(twin)  # two that could both be: neither is believed
    assert main(["status", str(folder)]) == 0
    assert "the report" not in capsys.readouterr().out
    notices = []
    sweep(spec(), folder, notice=notices.append)
    assert contents(folder) == before and sixth.exists()
    assert len(notices) == 5 and all("computed anew" in text for text in notices)
    for text in ("of shape (1, 2)", "'clock' that does not fit", "float64", "one of two that differ"):
        assert any(text in notice for notice in notices), (text, notices)


def test_the_checksum_is_held_against_the_bytes_when_a_block_is_used(done):
    """Not only when the folder is opened: here only the checksum tells that a reward is another one."""
    folder, _ = done
    (path,) = (folder / "blocks").glob("00001-*.npz")
    whole = path.read_bytes()
    arrays = decode(whole)
    ours = Folder(folder)
    ours.check(make_plan(spec()))
    assert ours.get(1) is not None
    path.write_bytes(encode(arrays | {"reward": arrays["reward"] + 1}))
    try:
        assert Content(make_plan(spec())).misfit(1, decode(path.read_bytes())) == ""
        assert ours.get(1) is None
    finally:
        path.write_bytes(whole)


def test_blocks_without_their_manifest_are_nobody_s(done, tmp_path):
    (tmp_path / "blocks").mkdir()
    for path in (done[0] / "blocks").iterdir():
        (tmp_path / "blocks" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(jb.InputError, match=r"out: .* a new or empty folder; there is 'blocks/00000-"):
        sweep(spec(), tmp_path)


# ---- links, dot-files, names


def test_nothing_is_written_through_a_link(done, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    folder = done[0]
    for name in ("log/lock", "summary.txt", "sweep.json"):
        place, kept = folder / name, (folder / name).read_bytes()
        place.unlink()
        place.symlink_to(mine)
        with pytest.raises(jb.InputError, match=f"out: .*{Path(name).name}.*symbolic link"):
            sweep(spec(), folder)
        place.unlink()
        place.write_bytes(kept)
    (folder / "log" / "holder").unlink()
    (folder / "log" / "holder").symlink_to(mine)
    sweep(spec(), folder)
    assert mine.read_text() == "mine" and contents(folder) == done[1]


def test_dot_files_of_others_stay(done):
    folder, before = done
    mine = [".notes.txt.backup_1", ".sweep.json.abcd1234", "blocks/.a.npz.abcd1234", ".jaxbandits-mine.tmp", ".git"]
    ours = [f".jaxbandits-{5:016x}.tmp", f"blocks/.jaxbandits-{6:016x}.tmp"]
    for name in [*mine, *ours]:
        (folder / name).write_text("x")
    sweep(spec(), folder)
    assert [name for name in [*mine, *ours] if (folder / name).exists()] == mine
    for name in mine:
        (folder / name).unlink()
    assert contents(folder) == before


def test_a_name_is_no_formula(done):
    with (done[0] / "sensitivity.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} == {"'=cmd()|x", "plain"}
    assert any(float(row["difference_low"]) < 0 for row in rows if row["difference_low"]), "numbers stay numbers"


# ---- the lock


HOLD = """
import sys, time
from pathlib import Path
from jaxbandits.sweeps import lock
with lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""


def test_a_run_keeps_others_out_until_it_dies(done):
    folder, before = done
    environment = {**os.environ, "PYTHONPATH": str(Path(jb.__file__).parents[1])}
    command = [sys.executable, "-c", HOLD, str(folder / "log")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(jb.InputError, match=rf"no other run works now \(process {process.pid} on "):
            sweep(spec(), folder)
        assert Folder(folder).in_use().startswith(f"process {process.pid} on ")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert lock.holder(folder / "log") == ""
        sweep(spec(), folder)
    assert contents(folder) == before


# ---- specs


def test_a_spec_leaves_no_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "away").mkdir()
    (tmp_path / "s.py").write_text("import os, sys\nos.chdir('away')\nsys.path.clear()\n1 / 0\n")
    path, stdin = list(sys.path), sys.stdin
    with pytest.raises(jb.InputError, match=r"^s\.py: line 4: ZeroDivisionError"):
        load_spec("s.py")
    sys.path[:] = path
    assert Path.cwd() == tmp_path and sys.stdin is stdin and "jaxbandits_spec_s" not in sys.modules
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["away", "s.py"]


def test_a_spec_that_takes_long_is_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxbandits.sweeps.spec_file._LONG", 0.05)
    (tmp_path / "s.py").write_text("import time\ntime.sleep(0.4)\n")
    said = []
    with pytest.raises(jb.InputError, match="sweep: None given"):
        load_spec(str(tmp_path / "s.py"), said.append)
    assert len(said) == 1 and "s.py still runs after" in said[0]


# ---- Ctrl-C


def test_ctrl_c_is_answered_soon_whatever_a_chunk_is():
    """A billion rounds, in chunks of a million: the interrupt comes while they are played."""
    arms = jb.environments.FiniteArms.bernoulli(np.full((1, 500), 0.5), np.full((1, 500), 0.5))
    interrupted = []

    class Impatient(Progress):
        def start(self, names, runs):
            def report(work, finished):
                if work > 0 and not interrupted:
                    interrupted.append(time.perf_counter())
                    threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

            return report

    with pytest.raises(KeyboardInterrupt), Impatient(shown=False, tasks=1, runs=8) as progress:
        jb.simulate(
            jb.policies.MUCB(),
            arms,
            jb.Horizon(2**29),
            key=jax.random.key(0),
            replicates=8,
            marks=1,
            engine="scan",
            chunk=1 << 20,
            progress=progress,
        )
    assert time.perf_counter() - interrupted[0] < 2
