"""The kernel engine has the scan's bits, interpreted on a CPU; a part of it that is wrong is
noticed.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandits as jb
from jaxbandits._engine import kernel, pool, scan
from jaxbandits._engine.cells import Cells
from jaxbandits._engine.setup import lay_out

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


def in_rows(law: Any) -> Callable[[int], Any]:
    """A world whose contexts are a row for each arm."""
    theta = np.random.default_rng(1).uniform(-0.5, 0.5, (2, 1, 3))
    return lambda arms: e.ContextualArms.logistic(*theta, law(2, arms=arms))


def sampled(arms: int) -> Case:
    world = e.Reservoir.ratio(KEY, instances=4, capacity=2 * arms, beta=1.0)
    limit = jb.TotalBudget(BUDGET, last_pull="forfeits")
    return p.SampledArms(p.RCB(), arms=arms), world, limit


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
    costs: Any = {"cost": e.Linear(0.1), "penalty": e.Linear(0.5)}
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
    "in flight": delayed,
    "beta": spent(OMEGA, lambda arms: e.random_beta(KEY, instances=4, arms=arms)),
    "general": spent(OMEGA, lambda k: e.random_generalised_bernoulli(KEY, instances=4, arms=k)),
    "drift": spent(OMEGA, changed),
    "closing": spent(OMEGA, lambda k: e.Stocked.of(bernoulli(k), pulls=[8 + i for i in range(k)])),
    "forfeits": lambda k: (OMEGA, bernoulli(k), jb.TotalBudget(BUDGET, last_pull="forfeits")),
    "rcucb": watched,
    "contexts": spent(OMEGA, in_contexts),
    "rows for arms": rounds(p.UCB1(), in_rows(e.Gaussian)),
    "sphere, rows for arms": rounds(p.UCB1(), in_rows(e.UnitSphere)),
    "reservoir": sampled,
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


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was compiled is played again."""
    jax.clear_caches()
    monkeypatch.setattr(pool, "_PROGRAMS", {})


@pytest.mark.parametrize("form", [None, (4, 1)], ids=["arms side by side", "a thread for a lane"])
def test_a_run_has_the_bits_of_scan(monkeypatch: pytest.MonkeyPatch, form: Any) -> None:
    if form:
        monkeypatch.setattr(kernel, "layout", lambda arms, slots: form)
        forget(monkeypatch)
    assert differences(CASES["omega"](3), 2) == []


def test_a_policy_of_the_user_has_them() -> None:
    assert differences(CASES["odd"](3), 2) == []


@pytest.mark.integration
@pytest.mark.sample_rows("bts", "two resources", "in flight", "sphere")
@pytest.mark.parametrize("name", CASES)
def test_every_policy_and_world_has_them(name: str) -> None:
    assert differences(CASES[name](10)) == []


# What takes long to compile for a CPU stands at ten arms only.
@pytest.mark.integration
@pytest.mark.sample_rows("20-omega")
@pytest.mark.parametrize("name", ["omega", "pd-bwk", "bts", "odd", "beta", "drift"])
@pytest.mark.parametrize("arms", [3, 20])
def test_few_arms_and_some_more_have_them(name: str, arms: int) -> None:
    assert differences(CASES[name](arms)) == []


@pytest.mark.integration
@pytest.mark.sample_rows("omega")
@pytest.mark.parametrize("name", ["omega", "m", "pd-bwk"])
def test_many_arms_have_them(name: str) -> None:
    assert differences(CASES[name](100)) == []


def wrong_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Cells.pick
    monkeypatch.setattr(Cells, "pick", lambda self, tile, at: right(self, tile, at ^ 1))


def no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes play on beyond their marks and their money."""

    def step(environment: Any, lane: Any, available: Any, goal: Any, state: Any) -> Any:
        return scan.play(environment, lane, available, state)[0]

    monkeypatch.setattr(kernel, "_step", step)


def swapped_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernel._table

    def table(ref: Any, *leaf: Any) -> Any:
        made = right(ref, *leaf)
        return made._replace(load=lambda *index: jnp.flip(made.load(*index), 0))

    monkeypatch.setattr(kernel, "_table", table)


@pytest.mark.sample_rows("wrong_gather", "no_end")
@pytest.mark.parametrize("mutant", [wrong_gather, no_end, swapped_lanes])
def test_what_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch, mutant: Any) -> None:
    mutant(monkeypatch)
    forget(monkeypatch)
    assert differences(CASES["pd-bwk"](4), 2) != []


def test_what_a_kernel_cannot_play_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    @jb.pytree
    class Waves(jb.policies.IndexPolicy):
        def score(self, arms: Any) -> jax.Array:
            return jnp.fft.fft(arms.n).real

    with pytest.raises(jb.InputError, match=r"but no kernel supports its round \(.*fft\)"):
        played((Waves(), *CASES["omega"](3)[1:]), "kernel")
    monkeypatch.setattr(kernel, "_LONGEST", 999)
    with pytest.raises(jb.InputError, match=r"round of 1,\d{3} operations, more than 999"):
        played(CASES["omega"](3), "kernel")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (rounds(p.LinUCB(), in_contexts)(3), "no kernel supports its round .*dot_general"),
        ((p.BZoom(lam=0.5, lipschitz=11.7), e.cost_valley(0.5, 0.5), jb.Horizon(9)), "no arms"),
    ],
    ids=["products of matrices", "a continuum"],
)
def test_what_has_other_bits_or_no_arms_is_refused(case: Case, reason: str) -> None:
    with pytest.raises(jb.InputError, match=reason):
        played(case, "kernel")


def test_auto_takes_it_only_once_a_device_has_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kernel.BITS_ARE_EQUAL  # with the rows of a device, this line goes
    task = lay_out(*CASES["omega"](3), key=KEY).tasks[0]
    long = dataclasses.replace(task, rounds=2 * kernel.WORTH_COMPILING)
    assert not kernel.is_faster(long)
    monkeypatch.setattr(kernel, "BITS_ARE_EQUAL", True)
    assert kernel.is_faster(long)
    assert not kernel.is_faster(task)
    many = lay_out(*CASES["omega"](100), key=KEY, engine="leap").tasks[0]
    assert not kernel.is_faster(dataclasses.replace(many, rounds=1e12))


def test_on_a_cpu_it_says_that_it_is_for_tests() -> None:
    with pytest.warns(UserWarning, match="on a CPU is interpreted"):
        lay_out(*CASES["omega"](3), key=KEY, engine="kernel")
    assert kernel.layout(10, 1 << 17) == (32, 1)
    assert kernel.layout(10, 1 << 14) == (2, 16)
    assert kernel.layout(100, 1 << 17) == (1, 128)
