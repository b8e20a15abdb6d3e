"""What is no world is refused in one line that names the argument; one table for the room."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits import policies as p
from jaxbandits._engine.setup import lay_out
from jaxbandits.environments import (
    Constant,
    ContextualArms,
    Continuum,
    Delayed,
    FastTrack,
    FiniteArms,
    FixedDelay,
    Gaussian,
    Linear,
    LoggedAuctions,
    Piecewise,
    RequestTable,
    Reservoir,
    Stocked,
    WithNullArm,
    copula_arms,
    cost_valley,
    drift,
    g1,
    random_bernoulli,
    reward_hill,
    row_arms,
)
from jaxbandits.environments.noise import Beta
from tests.contract.worlds import KEY, world

NAN, HALVES, ONES, EVEN = float("nan"), [0.5, 0.5], np.ones((2, 5)), stats.beta(1, 1)
bernoulli, beta, general = FiniteArms.bernoulli, FiniteArms.beta, FiniteArms.generalised_bernoulli
empirical, linear, table = FiniteArms.empirical, ContextualArms.linear, RequestTable.of
piecewise, walk = Piecewise.of, drift.random_walk
COUNTS = jb.TotalBudget(5.0, last_pull="counts")
TWO = bernoulli([0.5, 0.4], [0.5, 0.4])
STOCK = Stocked.of(TWO, pulls=5)
SMALL = g1(["PosCorr", "NegCorr"], arms=3, limits=4)
CONTEXTS = linear([[0.5, 0.1, 0.0]] * 2, [[0.5, 0.0, 0.1]] * 2, Gaussian(2))


def play(policy: Any, environment: Any, limit: Any = None, **more: Any) -> None:
    jb.simulate(policy, environment, limit or jb.Horizon(10), key=KEY, marks=1, **more)


def games(**change: Any) -> None:
    game: dict[str, Any] = {"limits": [0.4, 0.5, 1.0], "tau_max": 1.0}
    game |= {"cost": Linear(0.1), "penalty": FastTrack()}
    row_arms(**({"rows": [[([1.0], [0.3])]]} | game | change))


def laws(reward: Any, consumption: Any, kappa: Any = 0.0) -> None:
    costs: Any = {"cost": Linear(0.1), "penalty": Linear(1.0)}
    copula_arms(reward, consumption, kappa, limits=[1.0], **costs)


def rows(*logs: Any) -> None:
    costs: Any = {"cost": Linear(0.1), "penalty": Constant(1.0)}
    row_arms(list(logs), limits=[1.0], **costs)


def continua(**more: Any) -> None:
    fields: dict[str, Any] = {"lipschitz_reward": 0.5, "lipschitz_cost": 0.0}
    fields |= {"parameters": {"level": [0.3, 0.8]}} | more
    line = Continuum.of(lambda x, at: 0.25 + 0.5 * x, lambda x, at: at["level"], **fields)
    limit = jb.TotalBudget(9.0, last_pull="forfeits")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lay_out(p.BZoom(lam=0.3, lipschitz=10.0), line, limit, key=KEY)


def ratio(**changes: Any) -> None:
    Reservoir.ratio(KEY, **({"instances": 2, "capacity": 24} | changes))


def dips(x: jax.Array) -> jax.Array:
    return jnp.where(x < 0.5, x, x - 0.4)


def late(**fields: Any) -> None:
    play(p.InFlight(p.OmegaUCB()), Delayed(bernoulli([0.5] * 3, [0.5] * 3), **fields))


def renewing(**change: Any) -> None:
    fields: dict[str, Any] = {"amount": [1.5], "every": [2], "requests": [5, 9]} | change
    play(p.InFlight(p.OmegaUCB()), Delayed(TWO), jb.Renewing(**fields))


def two(second: bool) -> FiniteArms:
    return bernoulli(HALVES, HALVES, [True, second])


UNEVEN = pd.DataFrame({"arm": [0, 1], "instance": [0, 1], "reward": 0.5, "cost": 0.5})
REFUSED = [
    # finitely many arms
    (lambda: bernoulli([0.5, 1.5], HALVES), "mean_reward: 1.5 given"),
    (lambda: bernoulli([0.5, NAN], HALVES), "mean_reward: nan given"),
    (lambda: bernoulli(HALVES, [0.5, -0.1]), "mean_cost: -0.1 given"),
    (lambda: bernoulli(HALVES, [0.5]), r"mean_reward, mean_cost: shapes \(2,\) and \(1,\)"),
    (lambda: bernoulli([], []), r"mean_reward, mean_cost: shapes \(0,\)"),
    (lambda: bernoulli(["a", "b"], HALVES), r"mean_reward: \['a', 'b'\] given"),
    (lambda: bernoulli(HALVES, HALVES, [False] * 2), "present: an instance without"),
    (lambda: bernoulli(HALVES, HALVES, [True] * 3), r"present: shape \(3,\)"),
    (lambda: general(-ONES, ONES), "reward_weights: "),
    (lambda: general(*[ONES[:, :4]] * 2), r"reward_weights, cost_weights: \(2, 4\) given"),
    (lambda: beta([0.0], [1.0], [1.0], [1.0]), "reward_alpha: 0.0 given"),
    (lambda: beta(HALVES, [1.0], [1.0], [1.0]), "reward_alpha, reward_beta, cost_alpha, cost_b"),
    (lambda: empirical([[([0.5], [])]]), r"logs\[0\]\[0\]: shapes"),
    (lambda: empirical([[([1.5], [0.5])]]), r"logs\[0\]\[0\] rewards: 1.5 given"),
    (lambda: empirical([[([0.5], [NAN])]]), r"logs\[0\]\[0\] costs: nan given"),
    (lambda: empirical(pd.DataFrame({"arm": [1], "reward": [1]})), "'columns arm, reward' given.* with cost"),
    (lambda: empirical(UNEVEN), "logs: 'an instance without some arm' given"),
    (lambda: empirical(UNEVEN.assign(arm=["a", None])), "logs: 'a row without its arm or instance'"),
    (lambda: random_bernoulli(KEY, 3, 1.5), "arms: 1.5 given"),
    (lambda: random_bernoulli(KEY, 0, 3), "instances: 0 given"),
    # arms that close
    (lambda: Stocked.of(TWO), "pulls, money, shown: none given"),
    (lambda: Stocked.of(TWO, pulls=[1.5, 2]), "pulls: .* whole numbers"),
    (lambda: Stocked.of(TWO, pulls=[1, 2, 3]), "pulls: .* of the shape"),
    (lambda: Stocked.of(TWO, money=[0.0, 1.0]), "money: .* above 0"),
    (lambda: Stocked.of(TWO, shown=[[1, 0]]), "shown: .*bool"),
    (lambda: Stocked.of(TWO, shown=[[True, False]] * 2, at=[1]), "at: .* increasing"),
    (lambda: Stocked.of(TWO, shown=[[True, False]] * 2), "at: 'shape"),
    (lambda: Stocked.of(STOCK, pulls=3), "world: 'Stocked' given"),
    (lambda: Stocked.of(Reservoir.ratio(KEY, instances=2, capacity=4), pulls=3), "world: 'Reservoir'"),
    (lambda: play(p.MUCB(), Stocked.of(TWO, money=5.0), COUNTS, engine="leap"), "Stocked does not define"),
    (lambda: play(p.MRCB(pulls=2), STOCK, COUNTS), r"MRCB.blank_action: .* Stocked"),
    (lambda: jb.gradients.score_function.estimate(p.MUCB(), STOCK, COUNTS, key=KEY), "environment: 'Stocked'"),
    (lambda: jb.gradients.exact.estimate(p.SoftElim(), STOCK, COUNTS), "environment: 'Stocked'"),
    # means that change
    (lambda: piecewise([]), "worlds"),
    (lambda: piecewise([world("bernoulli"), world("beta")], at=[3]), "worlds"),
    (lambda: piecewise([world("bernoulli")] * 2), "at"),
    (lambda: piecewise([world("bernoulli")] * 3, at=[9, 9]), "at"),
    (lambda: piecewise([world("bernoulli")] * 2, at=[[3], [4]]), "at"),
    (lambda: Piecewise.bernoulli([[0.1, 0.2]], HALVES), "at, every"),
    (lambda: Piecewise.bernoulli([[0.1, 0.2]], [[0.5] * 3], every=3), "mean_reward, mean_cost"),
    (lambda: walk(KEY, [0.5], 2.0, 5), "size"),
    (lambda: walk(KEY, [1.5], 0.1, 5), "start"),
    (lambda: drift.sinusoidal([0.5], [0.6], 5, 0), "period"),
    (lambda: drift.linear([0.5], [[0.6, 0.5]], 5), "first, last"),
    (lambda: piecewise([two(True), two(False)], at=[5]).check(), "come or go"),
    (lambda: play(p.UCB1(), WithNullArm(piecewise([TWO, TWO], at=[5]))), "the other way"),
    # a continuum, and auctions
    (lambda: continua(parameters={"level": [0.3, 1.2]}), "mean_cost: 1.2 at x = 0 in instance 1"),
    (lambda: continua(parameters={"level": [NAN]}), "mean_cost: nan at x = 0 in instance 0"),
    (lambda: continua(parameters={"level": [0.0]}), "an arm with mean cost 0 given"),
    (lambda: continua(parameters={"level": 0.5}), "parameters: .* arrays"),
    (lambda: continua(parameters={"level": [0.5], "other": [1, 2]}), "parameters: .* of one length"),
    (lambda: continua(lipschitz_reward=-1.0), "lipschitz_reward: -1.0 given"),
    (lambda: continua(lipschitz_cost=[1, 2, 3]), "lipschitz_cost: .* one number"),
    (lambda: continua(cost_noise=Beta(0.0)), "Beta.concentration: 0.0 given"),
    (lambda: continua(remembered=0), "remembered: 0 given"),
    (lambda: cost_valley([1.5], 0.5), "centre: "),
    (lambda: cost_valley([0.5], 0.0), "lam: 0.0 given"),
    (lambda: cost_valley([0.5], 0.9), "lam: .* from 0 to 0.8"),
    (lambda: cost_valley([0.5, 0.6, 0.7], [0.1, 0.2]), "lam: .* one number"),
    (lambda: cost_valley([0.2, 0.6], 0.5).at([1.2]), r"points: 1.2"),
    (lambda: cost_valley([0.2, 0.6], 0.5).at(np.zeros((3, 2))), "points: .* an array"),
    (lambda: reward_hill([0.3]).at([0.5]), r"cost_noise: NoNoise\(\) given"),
    (lambda: LoggedAuctions.of([1.5], [1.0]), "price: 1.5 given"),
    (lambda: LoggedAuctions.of([1], [1.5]), "reward: 1.5 given"),
    (lambda: LoggedAuctions.of([], []), "price, reward: shapes"),
    (lambda: LoggedAuctions.of([3], [1.0], low=7), "low, high: "),
    # tables of requests, contexts
    (lambda: table([[0.5]], [[0.5, 0.5]]), r"shapes \(1, 1\) and \(1, 2\)"),
    (lambda: table([[1.5]], [[0.5]]), "reward: 1.5 given"),
    (lambda: table([[0.5] * 2] * 2, [[0.5, 0.0], [0.5, 1e-9]]).check(), "cost: 5e-10 given"),
    (lambda: table([[0.5]] * 3, [[0.5]] * 3, features=[[1.0]] * 4), "features: 'shape"),
    (lambda: linear(np.zeros((3, 3)), np.zeros((3, 4)), Gaussian(3)), r"reward: .* \[3, 4\]"),
    (lambda: play(p.LinUCB(), TWO), "'no contexts' given"),
    (lambda: play(p.LinUCB(), WithNullArm(CONTEXTS), COUNTS, max_rounds=9), "wait forever"),
    (lambda: play(p.LinearRate(), WithNullArm(CONTEXTS)), "LinearRate, which would wait forever"),
    (lambda: play(p.ContextualPacer(), CONTEXTS, COUNTS), "constraint: one without a pace"),
    (lambda: play(p.LinUCB(), CONTEXTS, jb.Horizon(20_000_000)), "rounds: 20000000 given"),
    (lambda: play(p.LinUCB(shared=True), CONTEXTS), "shared: True given"),
    (lambda: play(p.LinUCB(cost_guess=[0.1] * 3), CONTEXTS), "cost_guess: '3 numbers' given"),
    (lambda: play(p.Windowed(p.LinUCB(), window=5), CONTEXTS), "LinUCB' given"),
    # reservoirs
    (lambda: ratio(beta=0.0), "beta: 0.0 given"),
    (lambda: ratio(beta="flat"), "beta: 'flat' given"),
    (lambda: ratio(beta=[1.0] * 3), r"beta: an array of shape \(3,\)"),
    (lambda: ratio(least_cost=0.6), "least_cost: 0.6 given; .* at most 0.5"),
    (lambda: ratio(least_cost=1.5, best_ratio=0.1), "least_cost: 1.5 given; .* at most 1,"),
    (lambda: ratio(best_ratio=np.inf), "best_ratio: inf given"),
    (lambda: ratio(capacity=0), "capacity: 0 given"),
    (lambda: ratio(instances=0), "instances: 0 given"),
    (lambda: Reservoir.empirical([0.5], [0.0], KEY, instances=1, capacity=2), "mean_cost: 0.0 given"),
    # answers that come late, budgets that renew
    (lambda: late(room=0), "^room: 0 given"),
    (lambda: late(law=FixedDelay(-1)), "^rounds: -1 given"),
    (lambda: late(groups=((3,),)), r"^groups: \(3,\) given; .* from 0 to 2"),
    (lambda: renewing(amount=[1.0, 1.0], every=[1, 1]), "^environment: '[^']*' given"),
    (lambda: renewing(amount=[0.0]), "^amount: 0.0 given"),
    (lambda: renewing(every=[0]), "^every: "),
    (lambda: renewing(requests=[-1, 4]), "^requests: -1.0 given"),
    (lambda: renewing(expected=[1, 2, 3]), "^expected: .* shape of requests"),
    (lambda: play(p.InFlight(p.PricePacer()), Delayed(TWO)), "it must be Renewing"),
    # censored games
    (lambda: games(limits=[0.0, 0.5]), r"limits: 0.0 given; .*\(0, tau_max\]"),
    (lambda: games(limits=[0.5, 1.5]), "limits: 1.5 given"),
    (lambda: games(limits=[0.5, NAN]), "limits: nan given"),
    (lambda: games(limits=[0.5, 0.3]), r"limits: \[0.5, 0.3\] given; .* increasing"),
    (lambda: games(limits=[]), "limits: .* at least one"),
    (lambda: games(limits="abc"), "limits: 'abc' given"),
    (lambda: games(penalty=Linear(-1.0)), "penalty: .* from 0 to 100"),
    (lambda: games(penalty=dips), "penalty: .* increasing from limit 0.4 to 0.5"),
    (lambda: games(penalty=3.0), "penalty: 3.0 given"),
    (lambda: games(cost=Linear(1.5)), r"cost: 1.0[0-9]* given"),
    (lambda: games(cost=lambda x: x - 0.1), r"cost: -0.1[0-9]* given"),
    (lambda: games(cost=dips), "cost: .* increasing in the consumption"),
    (lambda: games(cost=np.array([1.0])), "cost: .* a JAX function"),
    (lambda: games(cost=Linear("x")), "'x'"),
    (lambda: games(cost=lambda x: jnp.sum(x)), "cost: a function that maps shape"),
    (lambda: games(tau_max=-1.0), "tau_max: -1.0 given"),
    (lambda: laws([stats.norm()], [EVEN]), r"reward\[0\]\[0\]: .* a law on \[0, 1\]"),
    (lambda: laws([EVEN], [stats.norm()]), r"consumption\[0\]\[0\]: .* a law on \[0, ∞\)"),
    (lambda: laws([0.5], [EVEN]), r"reward\[0\]\[0\]: 0.5 given"),
    (lambda: laws([EVEN, EVEN], [EVEN]), "with as many of each"),
    (lambda: laws([EVEN], [EVEN], 1.0), "correlation: 1.0 given"),
    (lambda: laws([EVEN], [EVEN], [0.0, 0.1]), "correlation: .* of shape"),
    (lambda: rows(), r"rows: \[\] given"),
    (lambda: rows([([1.0], [1.0, 2.0])]), "both must be"),
    (lambda: rows([([1.5], [1.0])]), r"rows\[0\]\[0\] rewards: 1.5 given"),
    (lambda: rows([([1.0], [-1.0])]), "consumptions: -1.0 given"),
    (lambda: rows([([1.0], [NAN])]), "consumptions: nan given"),
    (lambda: g1(["Poscorr"]), "names: 'Poscorr' given"),
    (lambda: play(p.RCUCB("literal"), SMALL), "wrapped as RevealConsumption"),
    (lambda: play(p.ZRCUCB("literal", horizon=10), SMALL), "RevealConsumption"),
    (lambda: play(p.RCUCB("leagl"), SMALL), "survival: 'leagl' given"),
    (lambda: play(p.UCBReduction("two"), SMALL), "width: 'two' given"),
    (lambda: play(p.ThompsonReduction("local"), SMALL), "scaling: 'local' given"),
    (lambda: play(p.ZRCUCB("legal", horizon=10), g1(arms=2, limits=10)), r"limits: .* 2\*\*depth"),
    (lambda: play(p.ZRCUCB("legal", horizon=10, alpha=1.0), SMALL), "ZRCUCB.alpha: 1.0 given"),
    (lambda: play(p.RCUCB("legal", alpha=0.0), SMALL), "RCUCB.alpha: 0.0 given"),
    (lambda: play(p.OmegaUCB(), SMALL), "OmegaUCB is for environments with a FiniteSpec"),
    (lambda: play(p.RCUCB("legal"), TWO), "RCUCB is for environments with a CensoredSpec"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[row[1][:30] for row in REFUSED])
def test_what_is_no_world_is_refused_in_one_line(make: Any, message: str) -> None:
    with pytest.raises(jb.InputError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)
