"""Whole commands and real engines: killed, continued, workers added and refused."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import jaxbandits as jb
from jaxbandits.sweeps.store import read_logs
from tests.sweeps.test_sweeps import blocks, contents

pytestmark = pytest.mark.integration

ROOT = Path(jb.__file__).parents[1]
SPEC = """
import jax, jaxbandits as jb

sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=[0.0625, 0.125, 0.25, 0.5]),
    environments=jb.environments.random_bernoulli(jax.random.key(1), instances=8, arms=3),
    budgets=[8_000 + 300 * step for step in range(6)],
    constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"),
    replicates=2, engine="scan", block_seconds=0.15, over="instance")
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the spec, and the bytes of what this process makes of it."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "spec.py").write_text(SPEC)
    assert outcome_of(begin(folder, "whole"))[0] == 0
    return folder, contents(folder / "whole")


def environment(path=ROOT, devices=1):
    flags = f"--xla_force_host_platform_device_count={devices}"
    return {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(path)}


def begin(folder, out, *more, devices=1):
    words = [sys.executable, "-m", "jaxbandits", "sweep", "spec.py", "--out", out, *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Where the tests themselves run in the background, their children would ignore Ctrl-C.
    listens = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        words, cwd=folder, env=environment(devices=devices), preexec_fn=listens, **pipes
    )


def outcome_of(process, seconds=180):
    """Exit code, stdout and stderr."""
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def interrupt(process):
    """Ctrl-C, and again: Python drops one that comes in a garbage collector's callback."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.5)
            return


def wait_for(ready, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "waited too long"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def children(process):
    """The workers that this process started (on Linux); Python's own tracker of resources is none."""
    listed = " ".join(
        path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/children")
    )
    return [
        int(pid)
        for pid in listed.split()
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


class Cluster:
    """A Dask scheduler and workers, started with the command that users have."""

    def __init__(self, folder):
        self._dask, self._folder, self.started = Path(sys.executable).parent / "dask", folder, []
        self.scheduler, self.address = None, ""

    def __enter__(self):
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"
        )
        for line in self.scheduler.stderr:
            if match := re.search(r"Scheduler at:\s+(tcp://\S+)", line):
                self.address = match[1]
                return self
        raise AssertionError("the scheduler said nothing")

    def worker(self, path=ROOT):
        words = ("worker", self.address, "--nworkers", "1", "--nthreads", "1")
        words += ("--no-nanny", "--no-dashboard")
        return self._start(*words, path=path)

    def _start(self, *words, path=ROOT):
        pipes = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.PIPE if words[0] == "scheduler" else None,
        }
        self.started.append(
            subprocess.Popen(
                [self._dask, *words], cwd=self._folder, env=environment(path), text=True, **pipes
            )
        )
        return self.started[-1]

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.kill()
            process.wait()


@pytest.mark.rows
def test_dask_workers_of_another_version_and_the_death_of_the_scheduler(work, tmp_path):
    folder, whole = work
    shutil.copytree(
        ROOT / "jaxbandits", tmp_path / "jaxbandits", ignore=shutil.ignore_patterns("__pycache__")
    )
    init = tmp_path / "jaxbandits" / "__init__.py"
    init.write_text(init.read_text() + '\n__version__ = "0.0.1"\n')
    with Cluster(tmp_path) as dask:
        dask.worker(tmp_path)
        code, _, err = outcome_of(begin(folder, "refused", "--on", f"dask:{dask.address}"))
        assert code == 1
        assert "must not run it: its jaxbandits is '0.0.1'; it must be" in err
        assert blocks(folder / "refused") == 0
    with Cluster(tmp_path) as dask:
        dask.worker()
        sweep = begin(folder, "refused", "--on", f"dask:{dask.address}")
        wait_for(lambda: blocks(folder / "refused") >= 3, sweep)
        dask.scheduler.kill()
        code, _, err = outcome_of(sweep)
        assert code == 1, err
        assert "the executor" in err
        assert "blocks are finished" in err
        assert "the same command continues" in err
    assert 3 <= blocks(folder / "refused") < blocks(folder / "whole")
    assert outcome_of(begin(folder, "refused"))[0] == 0
    assert contents(folder / "refused") == whole


def test_kills_of_the_caller_and_of_workers(work):
    folder, whole = work
    out, moments = folder / "killed", random.Random(3)
    for _ in range(2):
        workers = life(folder, out, moments.uniform(0.0, 0.3), of_the_caller=True)
        # Nobody plays on for nobody
        wait_for(lambda pids=workers: not any(map(alive, pids)), seconds=20)
        assert 0 < blocks(out) < blocks(folder / "whole")
    sweep = life(folder, out, moments.uniform(0.0, 0.3), of_the_caller=False)
    code, _, err = outcome_of(sweep)
    assert code == 0, err
    assert contents(out) == whole
    # one was replaced; on a busy machine it may have died before its first block
    assert len({note["worker"] for note in read_logs(out)[-1] if note["event"] == "block"}) in (
        2,
        3,
    )


def life(folder, out, seconds, of_the_caller):
    """A sweep hit after its first block: its workers, or the sweep that lost one."""
    sweep, before = begin(folder, out.name, "--on", "processes:2"), blocks(out)
    wait_for(lambda: blocks(out) > before, sweep)
    time.sleep(seconds)
    workers = children(sweep)
    assert len(workers) == 2
    if not of_the_caller:
        os.kill(workers[0], signal.SIGKILL)
        return sweep
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.communicate()
    return workers


def alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(work):
    folder, _ = work
    sweep = begin(folder, "interrupted", "--on", "processes:1")
    wait_for(lambda: blocks(folder / "interrupted") >= 2, sweep)
    workers = children(sweep)
    interrupt(sweep)
    code, _, err = outcome_of(sweep, 20)
    assert code == 130 and "finished blocks are in interrupted, the same command continues" in err
    assert 2 <= blocks(folder / "interrupted") < blocks(folder / "whole")
    wait_for(lambda: not any(map(alive, workers)), seconds=20)


def test_killed_again_and_again_and_ended_on_eight_devices(work):
    folder, whole = work
    total = blocks(folder / "whole")
    out, moments, done = folder / "again", random.Random(7), []
    for share, devices in ((0, 1), (0.1, 1), (0.5, 2)):
        process = begin(folder, out.name, devices=devices)
        wait_for(lambda minimum=int(share * total): blocks(out) >= minimum, process)
        time.sleep(moments.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL and "result.nc" not in contents(out)
        done.append(blocks(out))
    assert done == sorted(done) and 0 < done[1] < done[2] < total
    code, output, err = outcome_of(begin(folder, out.name, "--workers", "8", devices=8))
    assert code == 0 and "OmegaUCB  rho = " in output, err
    assert contents(out) == whole
    start_note = next(note for note in read_logs(out)[-1] if note["event"] == "start")
    assert (
        start_note["devices"] == start_note["workers"] == 8
        and start_note["missing"] == total - done[-1]
    )


def test_memory_stays_below_what_the_dry_run_said_and_the_manifest_knows_no_time(work):
    folder, whole = work
    _, output, _ = outcome_of(begin(folder, "whole", "--dry-run"))
    bound = float(output.split("memory: at most ")[1].split(" MiB")[0].replace(",", ""))
    peak = [
        n["peak_memory_bytes"]
        for notes in read_logs(folder / "whole")
        for n in notes
        if n["event"] == "end"
    ]
    assert bound / 2.5 < peak[0] / 2**20 < bound
    assert set(json.loads(whole["sweep.json"])) == {"format", "identity", "blocks"}
    assert f"{time.gmtime().tm_year}-" not in whole["sweep.json"].decode()
