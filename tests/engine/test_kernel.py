"""The kernel engine has the scan's bits, interpreted on a CPU; a part of it that is wrong is
noticed.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandits as jb
from jaxbandits._engine import kernel

pytestmark = pytest.mark.filterwarnings("ignore:engine. 'kernel' on a CPU:UserWarning")
p, e = jb.policies, jb.environments
Case = tuple[Any, Any, Any]
BUDGET, KEY = 40.0, jax.random.key(3)
OMEGA = p.OmegaUCB(rho=0.25)


@jb.pytree
class Odd(jb.policies.IndexPolicy):
    """A user's own: it sorts, scatters, branches, loops, and draws from jax's own keys."""

    def score(self, arms: Any) -> jax.Array:
        mean = arms.reward / jnp.maximum(arms.n, 1.0)
        order = jnp.argsort(-mean)
        rank = jnp.zeros(mean.shape, jnp.int32).at[order].set(jnp.arange(mean.size))
        best = jnp.take_along_axis(mean, order, 0)[0]

        def grows(now: Any) -> Any:
            return (now[0] < 1.0) & (now[1] < 20)

        x, _ = lax.while_loop(grows, lambda now: (now[0] * 1.5 + 0.05, now[1] + 1), (best, 0))
        x = lax.cond(x > 1.2, lambda: x * 0.5, lambda: x)
        total = lax.fori_loop(0, 3, lambda i, so_far: so_far + mean[i], 0.0)
        ratio = mean / (arms.cost / jnp.maximum(arms.n, 1.0) + 0.1)
        return jnp.where(arms.n > 0, ratio + x / (1.0 + rank) + 0.01 * total, jnp.inf)

    def select(self, state: Any, key: jax.Array, view: Any) -> Any:
        state, best = super().select(state, key, view)
        coin, other = jax.random.split(jax.random.fold_in(key, view.round))
        arm = jax.random.randint(other, (), 0, view.available.size)
        return state, jnp.where(jax.random.uniform(coin) < 0.2, arm, best)


def bernoulli(arms: int) -> Any:
    return e.random_bernoulli(KEY, instances=4, arms=arms)


def in_contexts(arms: int) -> Any:
    rng = np.random.default_rng(0)
    weights = (np.c_[np.full(arms, 0.5), rng.uniform(-0.3, 0.3, (arms, 2))] for _ in range(2))
    reward, cost = weights
    return e.ContextualArms.linear(reward=reward, cost=cost, contexts=e.UnitSphere(2))


def spent(policy: Any, make: Callable[[int], Any] = bernoulli) -> Callable[[int], Case]:
    return lambda arms: (policy, make(arms), jb.TotalBudget(BUDGET, last_pull="counts"))


def cheapest(kind: Any) -> Callable[[int], Case]:
    def case(arms: int) -> Case:
        world = bernoulli(arms)
        policy = kind(min_cost=world.values()[1].min(axis=1)[None])
        return policy, world, jb.TotalBudget(BUDGET, last_pull="counts")

    return case


def average(policy: Any) -> Callable[[int], Case]:
    return lambda arms: (policy, e.WithNullArm(bernoulli(arms)), jb.AverageCost(c=0.5, rounds=100))


def rounds(policy: Any, make: Callable[[int], Any] = bernoulli) -> Callable[[int], Case]:
    return lambda arms: (policy, make(arms), jb.Horizon(rounds=100))


def resources(number: int) -> Callable[[int], Case]:
    def case(arms: int) -> Case:
        rng = np.random.default_rng(0)
        means = rng.uniform(0.1, 1, (4, arms)), rng.uniform(0.1, 1, (4, arms, number))
        limit = jb.TotalBudget(np.full(number, BUDGET), last_pull="counts", rounds=80)
        return p.PrimalDualBwK(), e.FiniteArms.bernoulli(*means), limit

    return case


def changed(arms: int) -> Any:
    other = e.random_bernoulli(jax.random.key(9), instances=4, arms=arms)
    return e.Piecewise.of([bernoulli(arms), other], at=[31])


def delayed(arms: int) -> Case:
    world = e.Delayed(bernoulli(arms), e.FixedDelay(3), room=4)
    return p.InFlight(OMEGA), world, jb.TotalBudget(np.full((4, 1), BUDGET), last_pull="counts")


def watched(arms: int) -> Case:
    rng = np.random.default_rng(0)
    logs = [
        list(zip(rng.random((arms, 20)), rng.gamma(2.0, 0.25, (arms, 20)), strict=True))
        for _ in range(2)
    ]
    costs = {"cost": e.Linear(0.1), "penalty": e.Linear(0.5)}
    world = e.row_arms(logs, limits=np.arange(1, 4) / 3, **costs)
    return p.RCUCB(survival="legal"), world, jb.Horizon(rounds=30)


CASES: dict[str, Callable[[int], Case]] = {
    "omega": spent(OMEGA),
    "m": spent(p.MUCB()),
    "sc": spent(p.UCBSCPlus()),
    "kl-sc": spent(p.KLUCBSCPlus()),
    "pd-bwk": lambda arms: spent(p.PDBwK.for_budget(BUDGET, arms))(arms),
    "bts": spent(p.BudgetedThompson()),
    "soft-elim": spent(p.SoftElim()),
    "b2": spent(p.UCBB2()),
    "kube": spent(p.KUBE()),
    "m-rcb": spent(p.MRCB()),
    "budget": cheapest(p.BudgetUCB),
    "elimination": spent(p.Elimination()),
    "soft": spent(p.SoftIndex(OMEGA, temperature=0.1)),
    "odd": spent(Odd()),
    "ucb1": rounds(p.UCB1()),
    "two resources": resources(2),
    "five resources": resources(5),
    "suak": average(p.SUAK(c=0.5)),
    "one-phase": average(p.OnePhase(c=0.5, horizon=100)),
    "two-phase": average(p.PrimalDualTwoPhase(c=0.5, horizon=100)),
    "simplex": average(p.UCBSimplex(c=0.5)),
    "guarded": average(p.Guarded(p.OnePhase(c=0.5, horizon=100))),
    "discounted": spent(p.Discounted(OMEGA, gamma=0.95)),
    "windowed": spent(p.Windowed(OMEGA, window=20)),
    "cusum": spent(p.Restarting(OMEGA, p.CUSUM(threshold=5.0, first=20))),
    "glr": rounds(p.Restarting(p.UCB1(), p.GLR())),
    "floored": lambda arms: spent(p.Floored(OMEGA, share=np.full(arms, 0.2 / arms)))(arms),
    "in flight": delayed,
    "beta": spent(OMEGA, lambda arms: e.random_beta(KEY, instances=4, arms=arms)),
    "general": spent(OMEGA, lambda k: e.random_generalised_bernoulli(KEY, instances=4, arms=k)),
    "drift": spent(OMEGA, changed),
    "closing": spent(OMEGA, lambda k: e.Stocked.of(bernoulli(k), pulls=[8 + i for i in range(k)])),
    "forfeits": lambda k: (OMEGA, bernoulli(k), jb.TotalBudget(BUDGET, last_pull="forfeits")),
    "rcucb": watched,
    "context omega": spent(OMEGA, in_contexts),
    "context rate": spent(p.LinearRate(), in_contexts),
    "context ucb": rounds(p.LinUCB(), in_contexts),
    "context pacer": lambda k: (
        p.ContextualPacer(c=0.3, ridge=4.0),
        e.WithNullArm(in_contexts(k)),
        jb.AverageCost(c=0.3, rounds=100),
    ),
}


def played(case: Case, engine: str, replicates: int = 4) -> jb.Result:
    options: dict[str, Any] = {"key": jax.random.key(1), "replicates": replicates, "marks": 7}
    return jb.simulate(*case, **options, engine=engine)


def differences(case: Case, replicates: int = 4) -> list[str]:
    """Names of what is not scan's, bit for bit."""
    results = played(case, "scan", replicates), played(case, "kernel", replicates)
    assert set(results[1].about.engines) == {"kernel"}
    one, other = ({**x.ledger, **x.final, "ended": x.ended} for x in results)
    return [name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)]


@pytest.mark.parametrize("form", [None, (4, 1)], ids=["arms side by side", "a thread for a lane"])
def test_a_run_has_the_bits_of_scan(monkeypatch: pytest.MonkeyPatch, form: Any) -> None:
    if form:
        monkeypatch.setattr(kernel, "layout", lambda arms, slots: form)
    assert differences(CASES["omega"](3), 2) == []


def test_a_policy_of_the_user_has_them() -> None:
    assert differences(CASES["odd"](3), 2) == []
