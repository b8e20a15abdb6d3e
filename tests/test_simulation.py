"""What `simulate` takes, and refuses in one line: the argument, its value, what it may be."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.environments import FiniteArms
from jaxbandits.policies import MUCB, UCB1, FixedSplit, OmegaUCB
from tests.processes import python

ARMS = FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
FREE = FiniteArms.bernoulli([[0.5, 0.4]], [[0.0, 0.5]])
TWO = FiniteArms.bernoulli([[0.5, 0.4]] * 2, [[0.9, 0.3]] * 2)
KEY = jax.random.key(0)
NAN = float("nan")


PROBLEM = jb.tuning.random_problem("bernoulli", 2)


def new_policy(kind: Any, default: Any) -> Any:
    return jb.pytree(type("Own", (UCB1,), {"__annotations__": {"width": kind}, "width": default}))


def play(policy: Any = None, arms: Any = ARMS, constraint: Any = 5.0, **options: Any) -> jb.Result:
    if not isinstance(constraint, (jb.Constraint, type, str)):
        constraint = jb.TotalBudget(constraint, last_pull="counts")
    policy = MUCB() if policy is None else policy
    return jb.simulate(policy, arms, constraint, **({"key": KEY} | options))


# (what is called, the argument that the line names, its value as shown)
ROWS: list[tuple[Callable[[], object], str, str]] = [
    (lambda: play(OmegaUCB(rho=-1.0)), "OmegaUCB.rho", "-1.0"),
    (lambda: play(OmegaUCB(rho=np.ones((2, 3, 4)))), "OmegaUCB.rho", "(2, 3, 4)"),
    (lambda: play(policies.EpsilonFirst(epsilon=1.5)), "EpsilonFirst.epsilon", "1.5"),
    (lambda: play(policies.PDBwK(c_rad=-1.0)), "PDBwK.c_rad", "-1.0"),
    (lambda: play(policies.BestRatioOracle([0.5, NAN], [1, 1])), "BestRatioOracle.mean_reward", "nan"),
    (lambda: play(policies.SUAK(c=0.5, horizon=2**31)), "SUAK.horizon", "2147483648"),
    (lambda: play(FixedSplit([0.0, 0.0])), "FixedSplit.weights", "0., 0."),
    (lambda: play(FixedSplit([0.5, 0.5, 0.5])), "FixedSplit.weights", "3 numbers"),
    (lambda: play(FixedSplit([3e38, 3e38])), "FixedSplit.weights", "3e+38"),
    (lambda: play([]), "policies", "none"),
    (lambda: play(OmegaUCB(rho=[0.25, 1.0, 0.25])), "policies", "OmegaUCB(rho=0.25)"),
    (lambda: play(OmegaUCB(rho=[0.25, 0.25 + 1e-10])), "policies", "OmegaUCB(rho=0.25)"),
    (lambda: play(policies.UCBB2(min_cost=[0.0, -0.0])), "policies", "UCBB2"),
    (lambda: play(jb.grid(OmegaUCB, rho=[1, 1])), "policies", "OmegaUCB(rho=1)"),
    (lambda: play([MUCB(), MUCB()]), "policies", "MUCB"),
    (lambda: play([OmegaUCB(rho=[[0.5], [1]]), OmegaUCB(rho=1)]), "policies", "OmegaUCB(rho=1)"),
    (lambda: jb.grid(OmegaUCB(), rho=[1.0]), "policy", "OmegaUCB"),
    (lambda: jb.grid(ARMS), "policy", "FiniteArms"),
    (lambda: jb.sweep(MUCB()), "spec", "MUCB"),
    (lambda: jb.tune(OmegaUCB(), ARMS, wrt="rho", key=KEY), "problem", "FiniteArms"),
    (lambda: jb.tune(3, PROBLEM, wrt="rho", key=KEY), "policy", "3"),
    (lambda: jb.statistics.paired(3, 4), "x", "3"),
    (lambda: jb.statistics.paired(play().regret, 3), "y", "3"),
    (lambda: new_policy(list, [1.0]), "Own.width", "[1.0]"),
    (lambda: new_policy(float, jb.leaf(default=np.ones(2))), "Own.width", "[1., 1.]"),
    (lambda: play("m_ucb"), "policies", "'m_ucb'"),
    (lambda: play(MUCB), "policies", "MUCB"),
    (lambda: play([MUCB(), None]), "policies", "None"),
    (lambda: play(constraint=0.0), "budget", "0.0"),
    (lambda: play(constraint=1e-9), "budget", "1e-09"),
    (lambda: play(constraint=2.0**30 + 1), "budget", "1073741825"),
    (lambda: play(constraint=[5.0, 6.0, 7.0]), "budget", "(3,)"),
    (lambda: play(constraint=jb.TotalBudget(5.0, last_pull="count")), "last_pull", "'count'"),
    (lambda: play(constraint=jb.AverageCost(c=0.0, rounds=5)), "c", "0.0"),
    (lambda: play(constraint="5.0"), "constraint", "5.0"),
    (lambda: play(constraint=jb.TotalBudget), "constraint", "TotalBudget"),
    (lambda: play(arms=None), "environment", "None"),
    (lambda: play(arms=FREE, max_rounds=300), "environment", "mean cost 0"),
    (lambda: play(replicates=0), "replicates", "0"),
    (lambda: play(replicates=1.5), "replicates", "1.5"),
    (lambda: play(replicates=2**32 + 1), "replicates", "4294967297"),
    (lambda: play(max_rounds=2**30 + 1), "max_rounds", "1073741825"),
    (lambda: play(instance_names=["a", "b"]), "instance_names", "2"),
    (lambda: play(arms=TWO, instance_names=["a", "a"]), "instance_names", "'a'"),
    (lambda: play(engine="fast"), "engine", "'fast'"),
    (lambda: play(devices=["cpu"]), "devices", "'cpu'"),
    (lambda: play(progress="yes"), "progress", "'yes'"),
    (lambda: play(key=0), "key", "0"),
    *((lambda marks=marks: play(marks=marks), "marks", str(marks)) for marks in (
        0, -1, 10_001, [], [0.5], [0.5, 0.4, 1.0], [0.5, 0.5, 1.0], [0.0, 1.0], [0.5, 1.1], "ten", 2.5, True)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "value"), ROWS)
def test_what_is_wrong_is_one_line(call: Callable[[], object], name: str, value: str) -> None:
    with warnings.catch_warnings(), pytest.raises(jb.InputError) as refusal:
        warnings.simplefilter("error")  # nothing is said before the line
        call()
    arguments, _, may_be = str(refusal.value).partition(" given")
    assert re.search(rf"\b{name}\b", arguments.partition(": ")[0]) and value in arguments
    assert " must be " in may_be and "\n" not in may_be and len(may_be) < 300


@pytest.mark.parametrize(
    ("call", "name", "problem"),
    [
        (lambda: jb.TotalBudget(10.0), "TotalBudget", "missing .* 'last_pull'"),
        (lambda: jb.Horizon(), "Horizon", "missing .* 'rounds'"),
        (lambda: OmegaUCB(roh=1.0), "OmegaUCB", "unexpected .* 'roh'; it takes rho"),
        (lambda: jb.grid(OmegaUCB, roh=[1.0]), "OmegaUCB", "unexpected .* 'roh'; it takes rho"),
        (lambda: jb.simulate(MUCB(), ARMS, key=KEY), "simulate", "missing .* 'constraint'"),
        (lambda: play(replicate=3), "simulate", "unexpected .* 'replicate'; .*replicates"),
        (lambda: jb.tune(OmegaUCB(), ARMS), "tune", "missing .* 'wrt'"),
        (lambda: jb.compare("x.csv", 3.0, MUCB(), run=3), "compare", "unexpected .* 'run'; .*runs"),
        (lambda: jb.Sweep(policies=MUCB()), "Sweep", "missing .* 'environments'"),
        (lambda: new_policy(float, jb.leaf())(), "Own", "missing .* 'width'; it takes width"),
    ],
)
def test_a_call_that_does_not_fit_is_one_line(call: Any, name: str, problem: str) -> None:
    with pytest.raises(jb.InputError, match=rf"^{name}: .*{problem}") as refusal:
        call()
    assert isinstance(refusal.value, TypeError), "what Python itself raises"
    assert "\n" not in str(refusal.value)


def test_no_two_settings_share_a_label() -> None:
    """Nearly equal ones, and those of one value per instance."""
    near = float(np.nextafter(np.float32(0.25), np.float32(1)))
    per_instance = OmegaUCB(rho=[[0.5, 0.25], [0.25, 0.5]])
    labels = play([OmegaUCB(rho=[0.25, near]), per_instance], TWO, marks=1).settings
    assert labels == (
        "OmegaUCB(rho=0.25)",
        "OmegaUCB(rho=0.25000003)",
        "OmegaUCB(rho=per instance)",
        "OmegaUCB(rho=per instance) (2)",
    )


@jb.pytree
class Second(UCB1):
    """The second arm, as a plain number."""

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, 1


def test_a_plain_number_is_an_action() -> None:
    assert play(Second(), marks=1).final["pulls"][0, 0, 0, 0] == 0


def test_an_arm_that_pays_nothing_may_be_free() -> None:
    arms = FiniteArms.bernoulli([[0.0, 0.4]], [[0.0, 0.5]])
    assert play(arms=arms, max_rounds=300, marks=1).best_rate == pytest.approx(0.8)


@pytest.mark.integration
def test_who_guards_transfers_can_use_us() -> None:
    with jax.transfer_guard("disallow"):
        guarded = [play(replicates=20, slots=slots, engine="leap") for slots in (2, None)]
    assert np.array_equal(*(x.final["pulls"] for x in guarded))


FORK = """
import os, jax, signal
import jaxbandits as jb
arms, key = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.3, 0.5]), jax.random.key(0)
if os.fork() == 0:
    signal.alarm(60)
    try:
        jb.simulate(jb.policies.UCB1(), arms, jb.Horizon(3), key=key)
    except RuntimeError as problem:
        print(problem, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told_so() -> None:
    output = python(FORK).stdout
    assert output.startswith("this process was forked after jax had started") and "spawn" in output
