"""What is given by accident or by a stranger: one line that names the argument, and no warning
before it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.environments import FiniteArms, Reservoir, TableDelay
from jaxbandits.policies import MUCB, UCB1, FixedSplit

ARMS = FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
KEY = jax.random.key(0)


def play(
    policy: Any = None, arms: Any = ARMS, budget: Any = 5.0, key: Any = KEY, **changes: Any
) -> Any:
    return jb.simulate(
        policy or MUCB(), arms, jb.TotalBudget(budget, last_pull="counts"), key=key, **changes
    )


FREE = FiniteArms.bernoulli([[0.5, 0.4]], [[0.0, 0.5]])
TWO = FiniteArms.bernoulli([[0.5, 0.4]] * 2, [[0.9, 0.3]] * 2)
CASES = {
    "an arm that pays and costs nothing": (
        lambda: play(arms=FREE, max_rounds=300),
        "mean cost 0 given",
    ),
    "weights of nothing": (
        lambda: play(FixedSplit([0.0, 0.0])),
        r"FixedSplit\.weights: .* not all of them 0",
    ),
    "a weight too many": (
        lambda: play(FixedSplit([0.5, 0.5, 0.5])),
        r"FixedSplit\.weights: .* 2 weights, one for each",
    ),
    "weights beyond any sum": (
        lambda: play(FixedSplit([3e38, 3e38])),
        r"FixedSplit\.weights: 3e\+38",
    ),
    "one name for two": (
        lambda: play(arms=TWO, instance_names=["a", "a"]),
        "instance_names: 'a' given",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_line(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = CASES[name]
    with warnings.catch_warnings(record=True) as before:
        warnings.simplefilter("always")
        with pytest.raises(jb.InputError, match=message) as problem:
            call()
    assert not before and "\n" not in str(problem.value) and not list(tmp_path.iterdir())


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


def test_delays_of_any_size_of_weight() -> None:
    assert (
        TableDelay.of([1e308, 0, 1e308]).cumulated.tolist()
        == TableDelay.of([1, 0, 1]).cumulated.tolist()
    )


def test_no_mean_of_a_reservoir_is_above_one() -> None:
    for best in (2.0, 1e3, 1e6, 9e6):
        arms = Reservoir.ratio(KEY, instances=1, capacity=4, best_ratio=best, least_cost=1 / best)
        assert all(np.nanmax(x) <= 1 for x in arms.values())


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
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert (
        done.stdout.startswith("this process was forked after jax had started")
        and "spawn" in done.stdout
    )
