"""What is given by accident or by a stranger: one line that names the argument, and no warning before it."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.environments import FiniteArms
from jaxbandits.policies import MUCB

ARMS = FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
KEY = jax.random.key(0)


def play(policy: Any = None, arms: Any = ARMS, budget: Any = 5.0, key: Any = KEY, **changes: Any) -> Any:
    return jb.simulate(policy or MUCB(), arms, jb.TotalBudget(budget, last_pull="counts"), key=key, **changes)


def deleted() -> jax.Array:
    key = jax.random.key(1)
    key.delete()
    return key


def stating(given: Any) -> FiniteArms:
    """Arms whose ``largest`` gives that."""
    cls = type("World", (FiniteArms,), {"__annotations__": {}, "largest": lambda self, action: given})
    return jb.pytree(cls)(ARMS.law, ARMS.mean_reward, ARMS.mean_cost, ARMS.present)


def a_sweep(**changes: Any) -> Any:
    given: dict[str, Any] = {"policies": MUCB(), "environments": ARMS, "budgets": [5.0]}
    return jb.Sweep(**given | changes, constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"))


CASES = {
    "a deleted key": (lambda: play(key=deleted()), "key: a deleted array given"),
    "largest None": (lambda: play(arms=stating(None)), r"World\.largest: fails: TypeError"),
    "seconds beyond any": (lambda: jb.sweep(a_sweep(block_seconds=10**400), "out"), "block_seconds: "),
    "a cost beyond any": (lambda: FiniteArms.bernoulli([[0.1]], [[1.797e308]]), "mean_cost: 1.797e"),
    "a masked parameter": (lambda: play(MUCB(alpha=np.ma.array([1.0, 2.0], mask=[False, True]))), r"MUCB\.alpha: "),
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
