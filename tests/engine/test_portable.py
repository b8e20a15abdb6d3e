"""Systems without fcntl, resource, signals of Unix: simulated by taking these away in a process of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxbandits
from jaxbandits.core import checks

PACKAGE = Path(jaxbandits.__file__).parent

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
        assert "no other run works now" in str(problem), problem
    else:
        raise AssertionError("two runs on one folder")
jb.sweep(spec, "out")
print("all of it works")
"""


@pytest.mark.integration
def test_everything_works_without_unix(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "JAX_PLATFORMS": "cpu"}
    process = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + RUN],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout == "all of it works\n"
    assert not list(tmp_path.rglob(".jaxbandits*"))


def test_peak_memory_is_in_bytes_on_every_system(monkeypatch):
    here = checks.peak_memory()
    assert here is not None and 30 << 20 < here < 1 << 40, "not KiB"
    monkeypatch.setattr(sys, "platform", "darwin")  # whose ru_maxrss is in bytes
    assert here * 0.99 < checks.peak_memory() * 1024 < here * 1.5


def text_is_opened_without_encoding(call):
    """Is it a call that reads or writes text in whatever encoding the system prefers?"""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = {keyword.arg for keyword in call.keywords}
    if name in ("read_text", "write_text"):
        return "encoding" not in given
    if name not in ("open", "fdopen") or "encoding" in given or ast.unparse(call.func) == "os.open":
        return False
    modes = [x.value for x in [*call.args, *(k.value for k in call.keywords)] if isinstance(x, ast.Constant)]
    if ast.unparse(call.func) in ("open", "os.fdopen", "io.open", "gzip.open"):
        return not any(isinstance(mode, str) and "b" in mode for mode in modes)
    return modes[:1] in (["r"], ["w"], ["a"])  # a path's own


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_text_file_is_opened_in_the_system_s_own_encoding(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [f"line {call.lineno}" for call in calls if text_is_opened_without_encoding(call)] == []
    unix = {"fcntl", "resource", "pwd", "grp", "termios"}
    at_import = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert not at_import & unix, "imported where it is needed only, if at all"


def test_that_check_finds_what_it_looks_for():
    texts = {"open('x')": True, "p.read_text()": True, "open('x', 'rb')": False, "open(x, encoding='utf-8')": False}
    for text, wrong in texts.items():
        assert text_is_opened_without_encoding(ast.parse(text).body[0].value) == wrong, text
