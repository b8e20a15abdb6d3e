"""What does not fit: widths of addresses and totals, memory, extremes of the constructors, traced values, actions."""

# mypy: disable-error-code="misc"
# (it infers no type for a lambda that keeps a value of its loop)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case
from benchmarks.bad_input.numbers_values import ARMS, BUDGET, LAW, censored, continuum, linear, play
from jaxbandits import environments, policies
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import pytree, static
from jaxbandits.environments import FiniteArms, Reservoir
from jaxbandits.environments.continuum.noise import Beta as BetaNoise

_KEY = jax.random.key(0)
_MANY = 2**24 + 1


@pytree
class Plays(Policy):
    """Plays one fixed action, of any type."""

    width: int = static()
    dtype: str = static(default="int32")
    plays = environments.FiniteSpec

    def init(self, spec: Any) -> Any:
        """Nothing."""
        return jnp.int32(0)

    def blank_action(self, spec: Any) -> Any:
        """The action."""
        return jnp.zeros((self.width,) if self.width else (), self.dtype)

    def update(self, state: Any, key: Any, observation: Any) -> Any:
        """Nothing."""
        return state

    def select(self, state: Any, key: Any, view: Any) -> Any:
        """The action."""
        return state, self.blank_action(None)


def _half(*shape: int) -> np.ndarray:
    return np.broadcast_to(0.5, shape)


def _penal(units: float) -> Any:
    return censored(penalty=environments.Constant(units))


_WIDTHS: dict[str, tuple[str, Callable[[], object]]] = {
    "arms": ("mean_reward", lambda: FiniteArms.bernoulli(_half(_MANY), _half(_MANY))),
    "arms with weights": (
        "reward_weights",
        lambda: FiniteArms.generalised_bernoulli(_half(_MANY, 5), _half(_MANY, 5)),
    ),
    "arms with Beta laws": ("reward_alpha", lambda: FiniteArms.beta(*[_half(_MANY)] * 4)),
    "random arms": ("arms", lambda: environments.random_bernoulli(_KEY, 1, _MANY)),
    "a reservoir": ("capacity", lambda: Reservoir.ratio(_KEY, instances=1, capacity=_MANY)),
    "a reservoir, grown": (
        "capacity",
        lambda: Reservoir.ratio(_KEY, instances=1, capacity=1).with_capacity(_MANY),
    ),
    "a live system": ("arms", lambda: jb.live.start(policies.MUCB(), environments.FiniteSpec(_MANY))),
    "resources": ("mean_cost", lambda: FiniteArms.bernoulli(_half(1, 2), _half(1, 2, 512))),
    "pairs of arm and limit": (
        "limits",
        lambda: environments.CensoredSpec.of(2**20 - 1, np.arange(1, 18) / 17, **LAW),
    ),
    "censored arms": ("arms", lambda: environments.CensoredSpec.of(2**20, [1.0], **LAW)),
    "replicates, a count": ("replicates", lambda: play(replicates=2**32 + 1)),
    "replicates, an id": ("replicates", lambda: play(replicates=[2**32])),
    "replicates, a negative id": ("replicates", lambda: play(replicates=[-1])),
    "replicates, one twice": ("replicates", lambda: play(replicates=[3, 3])),
    "replicates, a broken id": ("replicates", lambda: play(replicates=[0.5])),
    "an instance id": ("instance_ids", lambda: play(instance_ids=[2**32])),
    "max_rounds": ("max_rounds", lambda: play(max_rounds=2**30 + 1)),
    "rounds": ("rounds", lambda: play(constraint=jb.Horizon(2**30 + 1))),
    "rounds, broken": ("rounds", lambda: play(constraint=jb.Horizon(10.5))),
    "rounds of an average": ("rounds", lambda: play(constraint=jb.AverageCost(c=1.0, rounds=2**31))),
    "a budget": ("budget", lambda: play(constraint=jb.TotalBudget(2.0**30 + 1, last_pull="counts"))),
    "a budget below a tick": ("budget", lambda: play(constraint=jb.TotalBudget(1e-9, last_pull="counts"))),
    "a role": ("role", lambda: jb.core.streams.policy_words(_KEY, jnp.int32(1), 256)),
    "a horizon in a policy": ("horizon", lambda: play(policies.SUAK(c=0.5, horizon=2**31))),
    "arms to sample": ("budget", lambda: policies.arms_to_sample(1e300, beta=1.0)),
    "marks": ("marks", lambda: play(marks=10_001)),
}
_TOTALS: dict[str, tuple[str, Callable[[], object]]] = {
    "penalties × rounds": (
        "rounds: 22000000",
        lambda: play(policies.UCBReduction(), _penal(100.0), jb.Horizon(22_000_000)),
    ),
    "penalties × max_rounds": (
        "max_rounds",
        lambda: play(policies.UCBReduction(), _penal(100.0), max_rounds=22_000_000),
    ),
    "penalties revealed": (
        "rounds",
        lambda: play(policies.UCBReduction(), environments.RevealConsumption(_penal(3.0)), jb.Horizon(716_000_000)),
    ),
    "a set of 128": ("L from 1 to 127", lambda: play(Plays(128), _wide())),
    "a set of 200": ("L from 1 to 127", lambda: play(Plays(200), _wide(), jb.Horizon(5))),
    "a set of 127 × rounds": ("rounds", lambda: play(Plays(127), _wide(), jb.Horizon(2**30))),
    "a set of 127 × max_rounds": ("max_rounds", lambda: play(Plays(127), _wide(), max_rounds=2**25)),
    **{
        f"an action of type {dtype}": ("blank_action", lambda dtype=dtype: play(Plays(0, dtype)))
        for dtype in ("float32", "bool", "uint8", "int8", "uint32", "complex64", "bfloat16")
    },
    "two axes of arms": ("capacity", lambda: play(policies.SampledArms(policies.RCB(), 3))),
}


def _wide() -> FiniteArms:
    return FiniteArms.bernoulli(np.ones(200), np.ones(200))


_MEMORY: dict[str, tuple[str, Callable[[], object]]] = {
    "2**31 replicates": ("GiB", lambda: play(replicates=2**31)),
    "2**28 replicates at 50 marks": ("GiB", lambda: play(replicates=2**28, marks=50)),
    "2**30 slots": ("GiB", lambda: play(slots=2**30)),
    "2**33 arms in all": ("GiB", lambda: FiniteArms.bernoulli(_half(2**12, 2**21), _half(2**12, 2**21))),
    "2**33 weighted arms": (
        "GiB",
        lambda: FiniteArms.generalised_bernoulli(_half(2**12, 2**21, 5), _half(2**12, 2**21, 5)),
    ),
    "2**27 Beta arms": ("GiB", lambda: FiniteArms.beta(*[_half(2**7, 2**20)] * 4)),
    "10**12 random arms": ("GiB", lambda: environments.random_bernoulli(_KEY, 10**9, 1000)),
    "10**10 random Beta arms": ("GiB", lambda: environments.random_beta(_KEY, 10**7, 1000)),
    "10**10 weighted random arms": ("GiB", lambda: environments.random_generalised_bernoulli(_KEY, 10**7, 1000)),
    "2**32 reservoirs": ("GiB", lambda: Reservoir.ratio(_KEY, instances=2**32, capacity=2)),
    "a log of one long arm and many short": ("GiB", lambda: FiniteArms.empirical(_lopsided())),
}


def _lopsided() -> Any:
    short, long = (np.zeros(1), np.zeros(1)), (np.zeros(10**6), np.ones(10**6))
    return [[long, *[short] * 3000]] + [[short]] * 20


_BERNOULLI = {"beyond 1": 1.5, "NaN": np.nan, "∞": np.inf, "denormal": 5e-324, "below half a tick": 2.0**-26}
_SHAPES = {"0": 0.0, "∞": np.inf, "NaN": np.nan, "huge": 1e18, "10^308": 1e308, "negative": -1.0, "−0": -0.0}
_WEIGHTS = {"negative": -1.0, "NaN": np.nan, "∞": np.inf, "all 0": 0.0, "all −0": -0.0}


def _extremes() -> list[Case]:
    found = []

    def add(name: str, says: str, call: Callable[[], object], works: bool = False) -> None:
        found.append(Case("numbers: constructors", name, lambda _: call(), says, works=works))

    for kind, x in _BERNOULLI.items():
        add(f"mean reward {kind}", "mean_reward", lambda x=x: FiniteArms.bernoulli([0.5, x], [0.5, 0.5]))
        add(f"mean cost {kind}", "mean_cost", lambda x=x: FiniteArms.bernoulli([0.5, 0.5], [0.5, x]))
        add(f"a row of {kind}", "logs[0][0]", lambda x=x: FiniteArms.empirical([[([x], [0.5])]]))
        add(f"price's reward {kind}", "reward", lambda x=x: environments.LoggedAuctions.of([1], [x]))
        add(
            f"mean cost of a table {kind}",
            "mean_cost",
            lambda x=x: Reservoir.empirical([0.5], [x], _KEY, instances=1, capacity=1),
        )
    for kind, x in _SHAPES.items():
        add(f"alpha {kind}", "reward_alpha", lambda x=x: FiniteArms.beta([x], [1.0], [1.0], [1.0]))
        add(f"cost beta {kind}", "cost_beta", lambda x=x: FiniteArms.beta([1.0], [1.0], [1.0], [x]))
        noise = BetaNoise(x)
        add(f"concentration {kind}", "concentration", lambda n=noise: continuum(reward_noise=n).check())
    add("both shapes tiny", "", lambda: FiniteArms.beta([1e-5], [1e-6], [1.0], [1.0]), works=True)
    for kind, x in _WEIGHTS.items():
        add(f"weights {kind}", "reward_weights", lambda x=x: FiniteArms.generalised_bernoulli([[x] * 5], [[1] * 5]))
    for x in (1e308, 5e-324, 1e-310):
        add(f"weights of {x:g}", "", lambda x=x: FiniteArms.generalised_bernoulli([[x] * 5], [[x] * 5]), works=True)
    add("a mean of −0", "", lambda: FiniteArms.bernoulli([-0.0], [1.0]), works=True)
    add("half a tick", "", lambda: FiniteArms.bernoulli([2.0**-24], [1.0]), works=True)
    for kind, x in {"1": 1.0, "1 when rounded": 1 - 1e-9, "NaN": np.nan, "∞": np.inf}.items():
        add(f"correlation {kind}", "correlation", lambda x=x: _copula(x))
    for kind, x in {"beyond float32": 1e39, "0 in float32": 1e-46, "0": 0.0, "∞": np.inf, "NaN": np.nan}.items():
        add(f"a limit {kind}", "", lambda x=x: environments.row_arms([[([0.5], [0.5])]], limits=[x], **LAW))
        add(f"tau_max {kind}", "", lambda x=x: censored(tau_max=x))
    add("a penalty below half a tick", "penalty", lambda: _penal(1e-9))
    add("a penalty above 100", "penalty", lambda: _penal(101.0))
    for name in ("promise", "compensation", "rate"):
        penalty = environments.FastTrack(**{name: 1e39})
        add(f"FastTrack.{name} beyond float32", f"FastTrack.{name}", lambda p=penalty: censored(penalty=p))
    for name, x in (("beta", 1e39), ("best_ratio", 1e-9), ("least_cost", 1e-9), ("least_cost", 2.0), ("beta", 1e-46)):
        add(f"{name} {x:g}", name, lambda n=name, x=x: Reservoir.ratio(_KEY, instances=1, capacity=1, **{n: x}))
    for name, x in (("low", 2.5), ("low", -1), ("high", True), ("top", 0), ("high", 2**14), ("low", 7)):
        add(f"{name} = {x!r}", name, lambda n=name, x=x: environments.LoggedAuctions.of([1, 2], [1.0, 0.0], **{n: x}))
    return found


def _copula(kappa: float) -> object:
    from scipy import stats

    return environments.copula_arms([stats.beta(2, 1)], [stats.gamma(2)], kappa, limits=[1.0], **LAW)


_TRACED: dict[str, tuple[str, Callable[[], object]]] = {
    "a key": ("key", lambda: jax.jit(lambda k: play(key=k))(_KEY)),
    "a parameter": ("traced", lambda: jax.jit(lambda x: play(policies.OmegaUCB(rho=x)))(0.5)),
    "a budget": ("traced", lambda: jax.grad(lambda x: play(constraint=jb.TotalBudget(x, last_pull="counts")))(5.0)),
    "means": ("mean_reward", lambda: jax.vmap(lambda x: play(arms=FiniteArms.bernoulli(x, x)))(jnp.ones((2, 2)))),
    "an environment": ("environment", lambda: jax.jit(lambda e: play(arms=e))(ARMS)),
    "a constraint": ("constraint", lambda: jax.jit(lambda c: play(constraint=c))(BUDGET)),
    "replicates": ("replicates", lambda: jax.jit(lambda n: play(replicates=n))(3)),
    "marks": ("marks", lambda: jax.jit(lambda x: play(marks=x))(jnp.ones(1))),
    "max_rounds": ("max_rounds", lambda: jax.jit(lambda n: play(max_rounds=n))(3)),
    "a point": ("points", lambda: jax.jit(lambda x: environments.cost_valley([0.5], lam=0.5).at(x))(jnp.ones(2))),
    "a slope": ("Linear", lambda: jax.jit(lambda x: censored(cost=environments.Linear(x)))(0.1)),
    "parameters": (
        "parameters",
        lambda: jax.jit(lambda x: continuum(parameters={"a": x}).check())(jnp.ones(2)),
    ),
    "a reservoir's key": ("key", lambda: jax.jit(lambda k: Reservoir.ratio(k, instances=1, capacity=1))(_KEY)),
}


@pytree
class Large(environments.Continuum):
    """Says that it brings more than it may."""

    def largest(self, action: Any) -> tuple[int, int]:
        """Too much."""
        return 2**31, 2**24


def _large() -> Any:
    flat = np.zeros(1, np.float32)
    return Large({}, flat + 1, flat + 1, linear, linear)


def cases() -> list[Case]:
    """All of them."""
    groups = {
        "numbers: widths": _WIDTHS,
        "numbers: totals and actions": _TOTALS,
        "numbers: memory": _MEMORY,
        "numbers: traced": _TRACED,
    }
    found = _extremes()
    for area, group in groups.items():
        found += [Case(area, name, _of(call), says) for name, (says, call) in group.items()]
    bzoom = policies.BZoom(lam=0.2, lipschitz=1.0)
    found.append(Case("numbers: totals and actions", "a bound above 127", lambda _: play(bzoom, _large()), "largest"))
    return found


def _of(call: Callable[[], object]) -> Callable[[Path], object]:
    return lambda _: call()
