"""Systems without fcntl, resource and Unix signals, simulated in a process of its own."""

from __future__ import annotations

import sys

import pytest

from jaxbandits.core import checks
from tests.processes import python

ELSEWHERE = """
import os, sys, psutil  # which knows every system by itself
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("sched_getaffinity", "sysconf", "sysconf_names", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC"):
    delattr(os, name)
"""
RUN = """
import jax, numpy as np
import jaxbandits as jb
from jaxbandits.core import checks as machine
from jaxbandits.sweeps.store import Folder
assert machine.cores() >= 1 and machine.available_memory() > 1 << 28 and machine.peak_memory() > 0
arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
played = jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(4), key=jax.random.key(0), engine="scan", marks=1)
played.save("r.npz")
assert jb.Result.load("r.npz").regret.equals(played.regret)
spec = jb.Sweep(policies=jb.policies.MUCB(), environments=arms, constraint=jb.Horizon(4), engine="scan")
found = jb.sweep(spec, "out")
np.testing.assert_array_equal(found.data["regret"].values.ravel(), played.regret.values.ravel())
with Folder("out").alone():
    try:
        jb.sweep(spec, "out")
    except jb.InputError as problem:
        assert "no other run is using" in str(problem), problem
    else:
        raise AssertionError("two runs on one folder")
jb.sweep(spec, "out")
print("all of it works")
"""


@pytest.mark.integration
def test_everything_works_without_unix(tmp_path):
    done = python(ELSEWHERE + RUN, cwd=tmp_path, environ={"JAX_PLATFORMS": "cpu"})
    assert done.stdout == "all of it works\n"
    assert not list(tmp_path.rglob(".jaxbandits*"))


def test_peak_memory_is_in_bytes_on_every_system(monkeypatch):
    peak = checks.peak_memory()
    assert peak is not None and 30 << 20 < peak < 1 << 40, "not KiB"
    monkeypatch.setattr(sys, "platform", "darwin")  # whose ru_maxrss is in bytes
    assert peak * 0.99 < checks.peak_memory() * 1024 < peak * 1.5
