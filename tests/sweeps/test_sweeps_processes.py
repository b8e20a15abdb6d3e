"""Kill -9, another number of devices: the folder ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxbandits.sweeps.store import Folder, read_logs

pytestmark = pytest.mark.integration

SPEC = """
import jax, jaxbandits as jb

sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=[0.0625, 0.125, 0.25, 0.5]),
    environments=jb.environments.random_bernoulli(jax.random.key(1), instances=8, arms=3),
    budgets=[2_500 + 100 * step for step in range(6)],
    constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"),
    replicates=2, engine="scan", block_seconds=0.05, over="instance")
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the spec, and the bytes of an uninterrupted run on one device."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "spec.py").write_text(SPEC)
    finished(start(folder, "whole"))
    return folder, contents(folder / "whole")


def start(folder, out, *more, devices=1):
    """The sweep as a process of its own."""
    return command(folder, "sweep", "spec.py", "--out", out, *more, devices=devices)


def command(folder, *words, devices=1):
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    words = [sys.executable, "-m", "jaxbandits._cli.console", *words]
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    return out.decode(), err.decode()


def contents(folder):
    """Every file outside the log, by name."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != "log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def blocks(folder):
    return len(Folder(folder).listed())


def kill_at(process, folder, count, pause):
    """Wait for ``count`` blocks and a moment, then kill without warning."""
    while process.poll() is None and blocks(folder) < count:
        time.sleep(0.01)
    time.sleep(pause)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return process.returncode


def test_killed_again_and_again_and_ended_on_eight_devices(work):
    folder, whole = work
    total = len([name for name in whole if name.startswith("blocks/")])
    assert total >= 16
    out, moments = folder / "killed", random.Random(7)
    done = []
    for share, devices in ((0, 1), (0.1, 1), (0.5, 2)):
        process = start(folder, "killed", devices=devices)
        assert kill_at(process, out, int(share * total), moments.uniform(0.0, 0.2)) == -signal.SIGKILL
        done.append(blocks(out))
        assert "result.nc" not in contents(out)
    assert done == sorted(done) and 0 < done[1] < done[2] < total
    before = contents(out)
    process = start(folder, "killed", "--workers", "8", devices=8)
    said, _ = finished(process)
    assert "OmegaUCB: rho = " in said
    assert contents(out) == whole
    kept = {name: content for name, content in before.items() if name.startswith("blocks/0")}
    assert all(whole[name] == content for name, content in kept.items())
    last = [notes for notes in read_logs(out) if notes][-1]
    begun = next(note for note in last if note["event"] == "start")
    assert begun["devices"] == begun["workers"] == 8 and begun["missing"] == total - done[-1]


def test_memory_stays_below_what_the_dry_run_said(work):
    folder, _ = work
    process = start(folder, "whole", "--dry-run")
    said, _ = finished(process)
    bound = float(said.split("memory: at most ")[1].split(" MiB")[0].replace(",", ""))
    peak = [n["peak_memory_bytes"] for notes in read_logs(folder / "whole") for n in notes if n["event"] == "end"]
    assert bound / 2.5 < peak[0] / 2**20 < bound


def test_the_manifest_knows_no_time(work):
    _, whole = work
    manifest = json.loads(whole["sweep.json"])
    assert set(manifest) == {"format", "identity", "blocks"}
    assert str(time.gmtime().tm_year) + "-" not in whole["sweep.json"].decode()
