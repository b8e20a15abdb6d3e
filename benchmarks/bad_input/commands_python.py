"""Arguments of `simulate` and `compare` in Python, and policies and environments of users that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case
from benchmarks.bad_input.commands_options import put
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.environments.finite.arms import AddressedArms
from jaxbandits.policies import MUCB, IndexPolicy


def _play(**changed: Any) -> Callable[[Path], object]:
    def call(_: Path) -> object:
        given: dict[str, Any] = {
            "policies": MUCB(),
            "environment": jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3]),
            "constraint": jb.TotalBudget(5.0, last_pull="counts"),
            "key": jax.random.key(0),
            "marks": 1,
        } | changed
        return jb.simulate(**given)

    return call


def _compare(**changed: Any) -> Callable[[Path], object]:
    def call(_: Path) -> object:
        from jaxbandits.comparison.running import compare

        given: dict[str, Any] = {
            "arms": "arms.csv",
            "budget": 20.0,
            "policies": MUCB(),
            "runs": 2,
            "marks": 1,
        } | changed
        return compare(**given)

    return call


class NotRegistered(MUCB):
    """Without @jb.pytree."""


def _registered(kind: Any) -> Any:
    return jb.pytree(kind)


def _policy(**methods: Any) -> Any:
    methods.setdefault("score", lambda self, arms: arms.n * 1.0)
    return _registered(type("Mine", (IndexPolicy,), {"__annotations__": {}, **methods}))()


def _environment(**methods: Any) -> Any:
    usual = {
        "spec": FiniteSpec(arms=2),
        "instances": 1,
        "means": lambda self, arm: (jnp.int32(1 << 23), jnp.int32(1 << 23)),
        "outcome": lambda self, key, arm, n: (jnp.int32(1 << 23), jnp.int32(1 << 23)),
        "values": lambda self: (np.full((1, 2), 0.5), np.full((1, 2), 0.5)),
    }
    return _registered(type("World", (AddressedArms,), {"__annotations__": {}, **usual, **methods}))()


def _constraint(**methods: Any) -> Any:
    return _registered(type("Limit", (jb.Horizon,), {"__annotations__": {}, **methods}))(5)


def _plays(argument: str, make: Callable[..., Any], **methods: Any) -> Callable[[Path], object]:
    """Makes the class when it is called, and plays it."""
    return lambda folder: _play(**{argument: make(**methods)})(folder)


def _raises(self: Any, *args: Any) -> Any:
    return dict[str, int]()["a key that is not there"]


SCORES: dict[str, Any] = {
    "score with too few arguments": lambda self: 0.0,
    "score with too many arguments": lambda self, arms, more: 0.0,
    "score without self": lambda: 0.0,
    "score calls float": lambda self, arms: float(arms.t) * arms.n,
    "score calls int": lambda self, arms: int(arms.t) * arms.n,
    "score asks if": lambda self, arms: arms.n if arms.t > 5 else 2.0 * arms.n,
    "score takes math.log": lambda self, arms: __import__("math").log(arms.t) * arms.n,
    "score takes NumPy": lambda self, arms: np.asarray(arms.n) * 2.0,
    "score gives None": lambda self, arms: None,
    "score gives text": lambda self, arms: "high",
    "score gives two": lambda self, arms: (arms.n, arms.n),
    "score of another length": lambda self, arms: jnp.zeros(7),
    "score raises": _raises,
    "score of a name that is not there": lambda self, arms: arms.pulled,
    "score divides by zero": lambda self, arms: 1 / 0,
    "score loops over a traced number": lambda self, arms: sum(x for x in range(int(arms.n[0]))),
    "score is no function": 5,
}
WORLDS: dict[str, Any] = {
    "outcome": {
        "with too few arguments": lambda self, key: 0,
        "calls float": lambda self, key, arm, n: (float(arm), 0),
        "asks if": lambda self, key, arm, n: (jnp.int32(1), jnp.int32(1)) if arm > 0 else (jnp.int32(2), jnp.int32(1)),
        "gives one": lambda self, key, arm, n: jnp.int32(1),
        "gives None": lambda self, key, arm, n: None,
        "gives floats": lambda self, key, arm, n: (jnp.float32(0.5), jnp.float32(0.5)),
        "gives text": lambda self, key, arm, n: ("a", "b"),
        "raises": _raises,
    },
    "means": {
        "with too few arguments": lambda self: 0,
        "calls float": lambda self, arm: (float(arm), 0),
        "gives one": lambda self, arm: jnp.int32(1),
        "raises": _raises,
    },
    "values": {
        "raises": _raises,
        "with too many arguments": lambda self, more: 0,
        "gives None": lambda self: None,
        "gives text": lambda self: ("a", "b"),
        "gives one": lambda self: np.full((1, 2), 0.5),
        "of another shape": lambda self: (np.full((3, 5), 0.5), np.full((1, 2), 0.5)),
    },
    "check": {"raises": _raises, "with too many arguments": lambda self, more: 0},
    "spec": {"raises": property(_raises), "is a number": 5, "is None": None},
    "instances": {"raises": property(_raises), "is text": "two", "is 0": 0, "is negative": -1},
}
CONSTRAINTS: dict[str, Any] = {
    "prepare": {"raises": _raises, "with too few arguments": lambda self: self, "gives None": lambda self, world: None},
    "end": {"raises": _raises, "with too many arguments": lambda self, more: 0, "gives None": lambda self: None},
    "charge": {
        "raises": _raises,
        "with too few arguments": lambda self: 0,
        "gives None": lambda self, ledger, outcome: None,
    },
    "view": {"raises": _raises, "calls float": lambda self, ledger: float(ledger.rounds)},
    "clock": {"raises": _raises, "gives None": lambda self, ledger: None},
}


def cases() -> list[Case]:
    """Of `simulate`, `compare`, and classes of users."""
    return [*_arguments(), *_classes()]


def _arguments() -> list[Case]:
    area = "command: simulate in Python"
    one = MUCB()
    bad: dict[str, tuple[Any, ...]] = {
        "policies": (
            MUCB,
            [MUCB],
            [one, MUCB],
            [one, None],
            [],
            (),
            None,
            "m_ucb",
            ["m_ucb"],
            5,
            {"m": one},
            [[one]],
            NotRegistered(),
            object(),
            np.array([one], object),
            lambda: one,
        ),
        "environment": (None, "arms", 5, jb.environments.FiniteArms, [0.5], {}, one, [[0.5, 0.4], [0.9, 0.3]]),
        "constraint": (None, 5.0, "budget", jb.TotalBudget, jb.Horizon, one, [jb.Horizon(5)], {}),
        "key": (
            None,
            0,
            "key",
            jax.random.split(jax.random.key(0), 3),
            jax.random.key(0, impl="rbg"),
            [0, 1],
            np.zeros(2),
            jax.random.PRNGKey,
            jnp.zeros((3, 2), jnp.uint32),
            np.zeros(2, np.int64),
            b"0",
            0.5,
        ),
        "devices": (
            [],
            "cpu",
            ["cpu"],
            0,
            [0],
            [None],
            5.0,
            [jax.local_devices()[0], "gpu"],
            jax.local_devices,
            {"cpu": 1},
            True,
        ),
        "progress": ("yes", None, 1, 0, [True], print, {}),
        "engine": ("fast", None, 0, ["scan"], b"scan", "SCAN", "", np.array(["scan", "leap"]), True),
        "instance_names": ("a", b"a", 5, [], ["a", "b"], [None], [["a"]], [5.5], [True], object(), {}),
    }
    found = []
    for name, values in bad.items():
        for i, value in enumerate(values):
            text = f"{name} = {type(value).__name__} ({i})"
            found.append(Case(area, text, _play(**{name: value}), name))
    found.append(
        Case(area, "a traced key", lambda folder: jax.jit(lambda key: _play(key=key)(folder))(jax.random.key(0)), "key")
    )
    area = "command: compare in Python"
    of_compare: dict[str, tuple[Any, ...]] = {
        "arms": (None, 5, True, [], {}, b"arms.csv\0", MUCB(), ["arms.csv"], Path("nofile.csv"), 3.5),
        "policies": (
            MUCB,
            [MUCB],
            None,
            [],
            "m_ucb",
            [one, "bts"],
            jb.policies.SUAK if hasattr(jb.policies, "SUAK") else 5,
        ),
        "noise": (5, "gauss", ["beta"], b"beta", "", True),
        "last_pull": (None, 5, "count", ["counts"], True),
        "instances": (None, 5, "all", ["published"]),
        "progress": ("yes", 5, None),
    }
    for name, some in of_compare.items():
        for i, value in enumerate(some):
            text = f"{name} = {type(value).__name__} ({i})"
            found.append(Case(area, text, _compare(**{name: value}), name, before=put))
    return found


def _classes() -> list[Case]:
    area = "command: classes of users"
    found = []
    for name, score in SCORES.items():
        found.append(Case(area, name, _plays("policies", _policy, score=score), "Mine"))
    for method, bad in {
        "update": _raises,
        "select": _raises,
        "init": _raises,
        "check": _raises,
        "warnings": _raises,
    }.items():
        found.append(
            Case(
                area,
                f"{method} raises",
                _plays("policies", _policy, **{method: bad}),
                f"Mine.{method}",
            )
        )
    for method in ("update", "select", "init"):
        short = {method: lambda self: None}
        found.append(
            Case(
                area,
                f"{method} with too few arguments",
                _plays("policies", _policy, **short),
                f"Mine.{method}",
            )
        )
    for method, ways in WORLDS.items():
        for name, way in ways.items():
            call = _plays("environment", _environment, **{method: way})
            found.append(
                Case(area, f"{method} of a world {name}", call, "World" if method not in ("spec", "instances") else "")
            )
    for method, ways in CONSTRAINTS.items():
        for name, way in ways.items():
            call = _plays("constraint", _constraint, **{method: way})
            found.append(Case(area, f"{method} of a constraint {name}", call, "Limit" if name != "gives None" else ""))
    return found
