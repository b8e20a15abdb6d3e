"""Reading optimised programs: launches, bytes, formulas and budgets, on a module written by hand;
then real ones.
"""

import csv
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ahead_of_time.__main__ import beyond, dearer
from benchmarks.ahead_of_time.hlo import faults, loops, score_formulas, shape_bytes

BUDGET = Path(__file__).parents[2] / "benchmarks" / "ahead_of_time" / "budget.json"

MODULE = """HloModule jit_advance, is_scheduled=true

%score (p0: f32[4,3], p1: s32[4,3]) -> f32[4,3] {
  %p0 = f32[4,3]{1,0} parameter(0)
  %p1 = s32[4,3]{1,0} parameter(1)
  %whole = f32[4,3]{1,0} convert(%p1)
  %log = f32[4,3]{1,0} log(%p0)
  ROOT %divide = f32[4,3]{1,0} divide(%log, %whole)
}

%again (p0: f32[4]) -> f32[4] {
  %p0 = f32[4]{0} parameter(0)
  %log = f32[4]{0} log(%p0)
  %copied = f32[4]{0} copy(%log)
  ROOT %divide = f32[4]{0} divide(%copied, %p0)
}

%one (a: (s32[], f32[4,3])) -> (s32[], f32[4,3]) {
  %a = (s32[], f32[4,3]{1,0}) parameter(0)
  %x = f32[4,3]{1,0} get-tuple-element(%a), index=1
  %copy.1 = f32[4,3]{1,0} copy(%x)
  %fused = f32[4,3]{1,0} fusion(%copy.1, %x), kind=kLoop, calls=%score
  ROOT %t = (s32[], f32[4,3]{1,0}) tuple(%x, /*index=1*/%fused)
}

%other (a: (s32[], f32[4,3])) -> (s32[], f32[4,3]) {
  ROOT %a = (s32[], f32[4,3]{1,0}) parameter(0)
}

%body (s: (s32[], f32[4,3])) -> (s32[], f32[4,3]) {
  %s = (s32[], f32[4,3]{1,0}) parameter(0)
  %which = s32[] get-tuple-element(%s), index=0
  ROOT %c = (s32[], f32[4,3]{1,0}) conditional(%which, %s, %s), branch_computations={%one, %other}
}

%more (s: (s32[], f32[4,3])) -> pred[] {
  %s = (s32[], f32[4,3]{1,0}) parameter(0)
  ROOT %p = pred[] constant(true)
}

ENTRY %main (s: (s32[], f32[4,3])) -> (s32[], f32[4,3]) {
  %s = (s32[], f32[4,3]{1,0}) parameter(0)
  ROOT %w = (s32[], f32[4,3]{1,0}) while(%s), condition=%more, body=%body
}
"""


def test_loops_and_branches_are_found_with_what_a_turn_takes() -> None:
    costs = {loop.path: (loop.launches, loop.copies, loop.bytes) for loop in loops(MODULE)}
    assert costs == {
        "entry": (0, 0, 0),
        "entry/while 0": (0, 0, 0),
        # A copy reads and writes; a fusion reads two, writes one.
        "entry/while 0/branch 0": (1, 1, 2 * 48 + 3 * 48),
        "entry/while 0/branch 1": (0, 0, 0),
    }


def test_formulas_and_faults_are_found() -> None:
    assert shape_bytes("(u8[3]{0}, bf16[2,2]{1,0}, f64[], pred[7]{0})") == 3 + 8 + 8 + 7
    other = "log(%add)\n  %add = f32[4]{0} add(%p0, %p0)"
    assert score_formulas(MODULE) == {"divide(log(P),P)"}  # in two places
    assert len(score_formulas(MODULE.replace("log(%p0)\n  %copied", f"{other}\n  %copied"))) == 2
    wrong = MODULE.replace("copy(%x)", 'custom-call(%x), custom_call_target="cublas"')
    wrong = wrong.replace("f32[4]{0} log", "f64[4]{0} log")
    assert faults(MODULE, "cuda") == []
    assert faults(wrong, "cuda") == ["calls cublas", "computes in float64"]
    assert faults(wrong, "cpu") == ["computes in float64"]


def test_a_budget_says_what_it_is_beyond() -> None:
    rows = [("scan", "entry/while 0", 11, 1, 9000, 28, 1.0)]
    for budget, words in (([12, 9000], ""), ([11, 9000], "12 launches"), ([12, 8999], "9000 B")):
        lines = beyond(rows, {"scan": {"entry/while 0": budget}, "not compiled": {"entry": [0, 0]}})
        assert len(lines) == bool(words) and words in "".join(lines)
    assert beyond(rows, {"scan": {"entry/while 1": [99, 99]}}) != []


def test_a_kernel_s_budget_says_what_it_is_beyond() -> None:
    kernels = [("kernel", 71, 0, 426, 12, 0, 1.4)]
    assert dearer(kernels, {"kernel": {"registers": 71, "instructions": 426}, "other": {}}) == []
    assert dearer(kernels, {"kernel": {"fused": 11}}) == ["kernel: 12 fused; at most 11"]


@pytest.mark.integration
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_programs_keep_to_their_budget(platform):
    """What the compiler makes of one case, in a process of its own; CUDA where the wheels are."""
    if platform == "cuda" and importlib.util.find_spec("jax_plugins") is None:
        pytest.skip("the wheels jax-cuda13-plugin and jax-cuda13-pjrt are not installed")
    command = [
        sys.executable,
        "-m",
        "benchmarks.ahead_of_time",
        platform,
        "--only",
        "scan-omega-100",
    ]
    command += ["--slots", "128"] if platform == "cpu" else ["--budget", str(BUDGET)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, cwd=BUDGET.parents[2]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "while 0" in done.stdout and done.stdout.endswith("all is well\n")


def test_the_budget_is_that_of_the_recorded_programs():
    with (BUDGET.parent / "tables" / "cuda.csv").open(newline="") as file:
        now = {(row["case"], row["loop"]): row for row in csv.DictReader(file)}
    for case, loops_ in json.loads(BUDGET.read_text())["cuda"].items():
        for loop, (launches, size) in loops_.items():
            row = now[case, loop]
            assert int(row["launches"]) + int(row["copies"]) == launches
            assert int(row["bytes_per_slot"]) <= size <= 1.01 * int(row["bytes_per_slot"]) + 1
