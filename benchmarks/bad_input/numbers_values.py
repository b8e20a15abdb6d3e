"""What is no number, or none that fits, wherever a number is due: policies, constraints, environments, ``simulate``."""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case
from jaxbandits import environments, policies

NO_NUMBERS: dict[str, Any] = {
    "text": "0.5",
    "other digits": "٣",
    "bytes": b"1",
    "True": True,
    "NumPy's True": np.True_,
    "a complex number": 1j,
    "a date": datetime.date(2020, 1, 1),
    "datetime64": np.datetime64("2020-01-01"),
    "timedelta64": np.timedelta64(3, "s"),
    "a Decimal": decimal.Decimal("0.5"),
    "a Fraction": fractions.Fraction(1, 2),
    "an object array": np.array([0.5], object),
    "a list of text": ["0.5"],
    "a bool in a list": [True, 0.5],
    "None in a list": [None],
    "a ragged list": [0.5, [1.0, 2.0]],
    "a dictionary": {"a": 1},
    "a set": {0.5},
    "a function": len,
    "a key": jax.random.key(0),
    "a masked array": np.ma.array([0.5, 0.5], mask=[False, True]),
    "structured": np.zeros(2, dtype=[("a", "f4")]),
    "complex array": jnp.zeros(2, jnp.complex64),
    "a huge whole number": 10**400,
    "NaN": float("nan"),
    "−∞": -float("inf"),
    "below the range": -1.0,
}
_F32 = {"beyond float32": 1e39, "0 in float32": 1e-50, "denormal in float32": 1e-40}

KEY = jax.random.key(0)
ARMS = environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
BUDGET = jb.TotalBudget(5.0, last_pull="counts")


def play(policy: Any = None, arms: Any = ARMS, constraint: Any = BUDGET, **options: Any) -> jb.Result:
    """A call of ``simulate`` that must not get as far as compiling."""
    options = {"key": KEY, "marks": 1} | options
    return jb.simulate(policy or policies.OmegaUCB(), arms, constraint, **options)


def linear(x: jax.Array, parameters: Any) -> jax.Array:
    """Means of a continuum."""
    return 0.2 + 0.5 * x


def continuum(**options: Any) -> Any:
    """A small one."""
    slopes = {"lipschitz_reward": 1.0, "lipschitz_cost": 1.0}
    return environments.Continuum.of(linear, linear, **(slopes | options))


LAW = {"cost": environments.Linear(0.1), "penalty": environments.Linear(0.1)}


def censored(**options: Any) -> Any:
    """One arm, one limit."""
    return environments.row_arms([[([0.5], [0.5])]], limits=[1.0], **(LAW | options))


# (what the line must name, the call)
_PARAMETERS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "rho": ("OmegaUCB.rho", lambda v: play(policies.OmegaUCB(rho=v))),
    "min_cost": ("min_cost", lambda v: play(policies.UCBBV1(min_cost=v))),
    "c_rad": ("c_rad", lambda v: play(policies.PDBwK(c_rad=v))),
    "scale": ("scale", lambda v: play(policies.RCB(exploration=policies.LogExploration(scale=v)))),
    "mean_reward of an oracle": ("mean_reward", lambda v: play(policies.BestRatioOracle(v, [0.5, 0.5]))),
    "budget": ("budget", lambda v: play(constraint=jb.TotalBudget(v, last_pull="counts"))),
    "rounds": ("rounds", lambda v: play(constraint=jb.Horizon(v))),
    "c": ("c:", lambda v: play(constraint=jb.AverageCost(c=v, rounds=5))),
    "grid": ("rho", lambda v: play(jb.grid(policies.OmegaUCB, rho=v))),
}
_OPTIONS: dict[str, tuple[str, Callable[[Any], object]]] = {
    name: (name, lambda v, name=name: play(**{name: v}))
    for name in ("replicates", "marks", "max_rounds", "slots", "chunk", "instance_ids")
}
_WORLDS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "mean_reward": ("mean_reward", lambda v: environments.FiniteArms.bernoulli(v, [0.5, 0.5])),
    "mean_cost": ("mean_cost", lambda v: environments.FiniteArms.bernoulli([0.5, 0.5], v)),
    "reward_alpha": ("reward_alpha", lambda v: environments.FiniteArms.beta([1, v], [1, 1], [1, 1], [1, 1])),
    "weights": ("weights", lambda v: environments.FiniteArms.generalised_bernoulli([[v] * 5], [[1] * 5])),
    "present": ("present", lambda v: environments.FiniteArms.bernoulli([0.5, 0.5], [0.5, 0.5], v)),
    "logs": ("logs", lambda v: environments.FiniteArms.empirical([[([0.5], [v])]])),
    "rows": ("rows", lambda v: environments.row_arms([[([v], [0.5])]], limits=[1.0], **LAW)),
    "limits": ("limits", lambda v: environments.g1(limits=v)),
    "slope": ("slope", lambda v: censored(cost=environments.Linear(v))),
    "penalty": ("Constant", lambda v: censored(penalty=environments.Constant(v))),
    "tau_max": ("tau_max", lambda v: censored(tau_max=v)),
    "best_ratio": (
        "best_ratio",
        lambda v: environments.Reservoir.ratio(jax.random.key(0), instances=2, capacity=2, best_ratio=v),
    ),
    "capacity": ("capacity", lambda v: environments.Reservoir.ratio(jax.random.key(0), instances=2, capacity=v)),
    "lipschitz": ("lipschitz_reward", lambda v: continuum(lipschitz_reward=v).check()),
    "parameters": ("parameters", lambda v: continuum(parameters={"a": v}).check()),
    "centre": ("centre", lambda v: environments.cost_valley(v, lam=0.5)),
    "points": ("points", lambda v: environments.cost_valley([0.5], lam=0.5).at(v)),
    "price": ("price", lambda v: environments.LoggedAuctions.of(price=v, reward=[1.0])),
    "instances": ("instances", lambda v: environments.random_bernoulli(jax.random.key(0), v, 3)),
    "left": ("left", lambda v: jb.live.start(policies.MUCB(), environments.FiniteSpec(2), left=v)),
}
_MAY_BE = {  # right, or refused for its shape only
    ("parameters", "−∞"),
    ("parameters", "NaN"),
    ("parameters", "below the range"),
    ("parameters", "a masked array"),
}


def _cases(area: str, arguments: dict[str, tuple[str, Callable[[Any], object]]], step: int) -> Iterator[Case]:
    """Every argument with some of the kinds; the start moves on, so that every kind is met."""
    for place, (argument, (says, call)) in enumerate(arguments.items()):
        kinds = list(NO_NUMBERS.items())
        for kind, value in kinds[place % step :: step]:
            if (argument, kind) in _MAY_BE:
                continue
            named = says if kind not in ("NaN", "−∞", "below the range") or argument not in ("slope", "penalty") else ""
            yield Case(area, f"{argument}: {kind}", _called(call, value), named)


def _called(call: Callable[[Any], object], value: Any) -> Callable[[Path], object]:
    return lambda _: call(value)


def cases() -> list[Case]:
    """Everywhere, some of the kinds each."""
    found = [
        *_cases("numbers: parameters", _PARAMETERS, 2),
        *_cases("numbers: options", _OPTIONS, 2),
        *_cases("numbers: environments", _WORLDS, 3),
    ]
    for argument in ("rho", "min_cost", "c_rad", "scale"):
        says, call = _PARAMETERS[argument]
        for kind, value in _F32.items():
            found.append(Case("numbers: float32", f"{argument}: {kind}", _called(call, value), says))
    for argument in ("best_ratio", "lipschitz", "slope", "penalty"):
        says, call = _WORLDS[argument]
        for kind, value in _F32.items():
            found.append(Case("numbers: float32", f"{argument}: {kind}", _called(call, value), says))
    return found
