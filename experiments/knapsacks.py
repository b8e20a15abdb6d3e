"""Several resources: which policy, how many resources, which parameter, and whether ω-UCB's bounds
win there too.

    python -m experiments knapsacks [--quick|--full] [--only ITEM] [--out DIR]

Items: sensitivity (on instances and keys of its own), confirm (its values on others), growth
(regret over the budget, d = 1, 2, 5), large (a hundred arms, budgets up to 10⁶), kinds (another
resource binds in every instance; dear arms are dear in every resource), changing (means that change
halfway), pricing (an instance of Ferreira et al.), account (is anything overspent in 10⁹ rounds?).

The regret is the fluid optimum less the reward: no policy's mean reward is above that optimum.
Instances: Bernoulli arms with means U(0.1, 1), mean costs U(0.1, 1) of every resource, T = 2B
rounds; B_j = B, or as an item says.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import (
    OURS,
    Experiment,
    Options,
    Row,
    Summary,
    is_above,
    mean_row,
    mean_se,
    ranking,
    simulated,
)
from experiments.figures import boxes, figure, intervals, look, name_ticks, save
from jaxbandits._numerics.knapsack_lp import fluid_values
from jaxbandits.environments import FiniteArms, Piecewise, WithNullArm
from jaxbandits.policies import (
    DualMirrorDescent,
    FixedSplit,
    KnapsackOracle,
    LagrangeBwK,
    PrimalDualBwK,
    RadBounds,
    ThompsonLP,
    UCBBwK,
    WilsonBounds,
)

RUN_KEY, TRIAL_KEY = jax.random.key(340), jax.random.key(341)
# What `sensitivity` recommends; chosen on TRIAL_KEY and instances of its own
RHO, C_RAD = (0.125, 0.5)

POLICIES: dict[str, Any] = {
    "PD-BwK, rad": PrimalDualBwK(bounds=RadBounds(c_rad=C_RAD)),
    "PD-BwK, ω": PrimalDualBwK(bounds=WilsonBounds(rho=RHO)),
    "UCB-BwK, rad": UCBBwK(bounds=RadBounds(c_rad=C_RAD), update_budgets=True),
    "UCB-BwK, ω": UCBBwK(bounds=WilsonBounds(rho=RHO), update_budgets=True),
    "Thompson LP": ThompsonLP(),
    "mirror descent, ω": DualMirrorDescent(bounds=WilsonBounds(rho=RHO)),
    "LagrangeBwK": LagrangeBwK(),
}


def random_arms(
    instances: int, arms: int, resources: int, seed: int, kind: str = "independent"
) -> FiniteArms:
    """Bernoulli arms; ``correlated``: an arm's costs differ by a tenth, dear arms bring more."""
    rng = np.random.default_rng([seed, arms, resources])
    reward = rng.uniform(0.1, 1, (instances, arms))
    cost = rng.uniform(0.1, 1, (instances, arms, resources))
    if kind == "correlated":
        dear = rng.uniform(0.1, 0.9, (instances, arms))
        cost = dear[..., None] + rng.uniform(0, 0.1, cost.shape)
        reward = np.clip(dear + rng.uniform(-0.2, 0.2, dear.shape), 0.02, 1)
    return FiniteArms.bernoulli(reward, cost)


def played(
    options: Options,
    name: str,
    policies: dict[str, Any],
    *world: Any,
    runs: int,
    key: Any = RUN_KEY,
) -> jb.Result:
    """What these policies earn in all runs of a world under a limit."""
    learners = list(policies.values())
    fields: dict[str, Any] = {"key": key, "replicates": runs, "marks": 1}
    return simulated(options, name, learners, *world, **fields)[0]


def regrets(
    options: Options,
    name: str,
    policies: dict[str, Any],
    arms: FiniteArms,
    budget: int,
    runs: int,
    key: Any = RUN_KEY,
    money: np.ndarray | None = None,
) -> np.ndarray:
    """Fluid optimum − reward of 2B rounds, ``[setting, instance, run]``.

    ``money``: of every resource, ``[instance, resource]``; by default B.
    """
    if money is None:
        assert arms.resources is not None
        money = np.full((arms.instances, arms.resources), float(budget))
    rounds = 2 * budget
    limit = jb.TotalBudget(money, last_pull="forfeits", rounds=rounds)
    result = played(options, name, policies, WithNullArm(arms), limit, runs=runs, key=key)
    reward = result.ledger["expected_reward"][..., -1] / 2.0**24
    fluid = fluid_values(*arms.values(), money, np.full(arms.instances, float(rounds)))
    return fluid[None, :, None] - reward


def with_oracle(policies: dict[str, Any], arms: FiniteArms) -> dict[str, Any]:
    """The policies and the LP oracle of these arms."""
    reward, cost = arms.values()
    return policies | {"LP oracle": KnapsackOracle(reward[None], cost[None])}


def sensitivity(options: Options) -> list[Row]:
    """Which ρ, C_rad, ε and η: regret relative to the fluid optimum, on instances of its own."""
    budget, instances = options.pick((60, 3), (500, 20), (1000, 40))
    grid = 2.0 ** np.arange(*options.pick((-4, 1, 4), (-8, 2, 1), (-8, 2, 1)))
    candidates: dict[str, Any] = {
        "PD-BwK, ω: ρ": PrimalDualBwK(bounds=WilsonBounds(rho=grid)),
        "PD-BwK, rad: C_rad": PrimalDualBwK(bounds=RadBounds(c_rad=grid)),
        "UCB-BwK, ω: ρ": UCBBwK(bounds=WilsonBounds(rho=grid), update_budgets=True),
        "UCB-BwK, rad: C_rad": UCBBwK(bounds=RadBounds(c_rad=grid), update_budgets=True),
        "mirror descent, ω: ρ": DualMirrorDescent(bounds=WilsonBounds(rho=grid)),
        "mirror descent: η": DualMirrorDescent(bounds=WilsonBounds(rho=RHO), eta=grid * 8),
        "PD-BwK, ω: a of ε": PrimalDualBwK(bounds=WilsonBounds(rho=RHO), rate=grid * 8),
    }
    rows, usual = Summary(), [(1, budget), (2, budget), (5, budget)]
    places = options.pick([(2, budget)], usual, [*usual, (2, 10 * budget)])
    picture, axes = figure(1, len(places), (4.2 * len(places), 4.2))
    for axis, (d, budget) in zip(axes, places, strict=True):
        arms = random_arms(instances, options.pick(5, 10, 10), d, seed=1)
        name = f"sensitivity {d} {budget}"
        runs = options.pick(4, 4, 4 if budget == 1000 else 1)
        regret = regrets(options, name, candidates, arms, budget, runs, TRIAL_KEY)
        fluid = fluid_values(
            *arms.values(), np.full((instances, d), float(budget)), np.full(instances, 2.0 * budget)
        )
        share = (
            (regret / fluid[None, :, None]).mean(-1).reshape(len(candidates), grid.size, instances)
        )
        for (parameter, _), of_grid in zip(candidates.items(), share, strict=True):
            values = grid * (8 if parameter.endswith(("η", "ε")) else 1)
            best = int(np.argmin(of_grid.mean(-1)))
            gap = of_grid - of_grid[best]
            mean, error = mean_se(gap, axis=-1)
            good = [
                float(v) for v, m, e in zip(values, mean, error, strict=True) if m - 1.96 * e <= 0
            ]
            noise = f"within noise of it {min(good):g} to {max(good):g}"
            note = f"of those tried; {noise}; regret {of_grid[best].mean():.4f}"
            rows.add(
                f"sensitivity: d = {d}, B = {budget}, {parameter}",
                float(values[best]),
                note=note,
                published=OURS,
            )
            intervals(axis, values, of_grid, label=parameter, capsize=2, marker="o", markersize=3)
        axis.set(xscale="log", xlabel="parameter", title=f"d = {d}, B = {budget:,}", ylim=(0, None))
    axes[0].set_ylabel("regret, share of the fluid optimum")
    save(
        picture,
        options.out / "sensitivity.png",
        "Ten arms: which parameter",
        legend=axes[:1],
        columns=4,
    )
    return rows


def confirm(options: Options) -> list[Row]:
    """The recommended values beside half and twice of them (ε: larger), on fresh instances."""
    budget, instances, runs = options.pick((60, 3, 4), (300, 20, 4), (1000, 40, 4))
    factors, epsilons = np.array([1.0, 0.5, 2.0]), np.array([0.0, 1 / 32, 1 / 8])
    rho, c_rad = WilsonBounds(rho=RHO * factors), RadBounds(c_rad=C_RAD * factors)
    candidates: dict[str, tuple[Any, np.ndarray]] = {
        "PD-BwK, ω: ρ": (PrimalDualBwK(bounds=rho), RHO * factors),
        "UCB-BwK, ω: ρ": (UCBBwK(bounds=rho, update_budgets=True), RHO * factors),
        "mirror descent, ω: ρ": (DualMirrorDescent(bounds=rho), RHO * factors),
        "PD-BwK, rad: C_rad": (PrimalDualBwK(bounds=c_rad), C_RAD * factors),
        "UCB-BwK, rad: C_rad": (UCBBwK(bounds=c_rad, update_budgets=True), C_RAD * factors),
        "PD-BwK, ω: a of ε": (PrimalDualBwK(bounds=WilsonBounds(rho=RHO), rate=factors), factors),
        "UCB-BwK, ω: ε": (
            UCBBwK(bounds=WilsonBounds(rho=RHO), epsilon=epsilons, update_budgets=True),
            epsilons,
        ),
    }
    rows = Summary()
    for d in options.pick((2,), (1, 2, 5), (1, 2, 5)):
        arms = random_arms(instances, options.pick(5, 10, 10), d, seed=7)
        policies = {name: policy for name, (policy, _) in candidates.items()}
        regret = regrets(options, f"confirm {d}", policies, arms, budget, runs).mean(-1)
        for (parameter, (_, values)), (recommended, *alternatives) in zip(
            candidates.items(), regret.reshape(len(candidates), 3, -1), strict=True
        ):
            for value, alternative in zip(values[1:], alternatives, strict=True):
                excess = alternative - recommended
                item = f"confirm: d = {d}, B = {budget}, {parameter}, {value:g} − {values[0]:g}"
                note = f"of {recommended.mean():.4g}; yes: {values[0]:g} loses less"
                holds = is_above(excess, errors=1.96)
                rows.mean(item, excess, OURS, holds=holds, note=note, digits=".4g")
    return rows


def _chosen(options: Options) -> dict[str, Any]:
    """All policies; in a quick run two, since each takes ten seconds to compile."""
    few = {name: POLICIES[name] for name in ("PD-BwK, ω", "Thompson LP")}
    return options.pick(few, POLICIES, POLICIES)


def growth(options: Options) -> list[Row]:
    """Regret over the budget, exponents with intervals, rankings at the largest budget."""
    budgets = options.pick([30, 60], [100, 300, 1000], [100, 1000, 10_000])
    places = options.pick(
        [(5, 2)],
        [(5, 1), (5, 2), (5, 5), (20, 2)],
        [(5, 1), (5, 2), (5, 5), (20, 1), (20, 2), (20, 5)],
    )
    instances, runs = options.pick((3, 4), (20, 4), (40, 2))
    return budget_curves(
        options,
        "growth",
        [(k, d, budgets, list(_chosen(options)), instances) for k, d in places],
        runs,
        seed=2,
    )


def large(options: Options) -> list[Row]:
    """A hundred arms, and budgets up to 10⁶, on instances of their own, with fewer runs."""
    selection = ["PD-BwK, ω", "UCB-BwK, ω", "Thompson LP", "mirror descent, ω"]
    usual = [(100, 2, [100, 1000], list(POLICIES), 10), (5, 2, [1000, 10_000], selection, 10)]
    full = [(100, d, [1000, 10_000], list(POLICIES), 24) for d in (1, 2, 5)]
    budgets = [10_000, 100_000, 1_000_000]
    full += [
        (5, 1, budgets, list(POLICIES), 24),
        (5, 2, budgets, selection, 12),
        (5, 5, budgets, list(POLICIES), 24),
    ]
    places = options.pick([(20, 2, [30, 60], selection, 3)], usual, full)
    return budget_curves(options, "large", places, options.pick(4, 2, 1), seed=5)


def budget_curves(
    options: Options,
    item: str,
    places: Sequence[tuple[int, int, list[int], list[str], int]],
    runs: int,
    seed: int,
) -> list[Row]:
    """Regret over the budget. A place: K, d, budgets, policies beside the oracle, instances."""
    rows = Summary()
    picture, axes = figure(
        -(-len(places) // 3),
        min(3, len(places)),
        (4.4 * min(3, len(places)), 4 * -(-len(places) // 3)),
    )
    for axis, (k, d, budgets, names, instances) in zip(axes, places, strict=False):
        arms = random_arms(instances, k, d, seed)
        policies = with_oracle({name: POLICIES[name] for name in names}, arms)
        # [budget, policy, instance]
        table = np.stack(
            [
                regrets(options, f"{item} {k} {d} {b}", policies, arms, b, runs).mean(-1)
                for b in budgets
            ]
        )
        for p, name in enumerate(policies):
            intervals(axis, budgets, table[:, p], label=name, capsize=2, **look(name))
            for b, x in zip(budgets, table[:, p], strict=True):
                note = f"median {np.median(x):.4g}, largest {np.max(x):.5g}"  # few runs may make the mean
                rows.mean(
                    f"{item}: K = {k}, d = {d}, B = {b}, {name}", x, published=OURS, note=note
                )
            if name == "LP oracle":
                continue  # what it loses does not grow
            slope = np.log(
                np.maximum(table[-1, p].mean(), 1e-9) / np.maximum(table[-2, p].mean(), 1e-9)
            )
            draws = np.random.default_rng(0).integers(instances, size=(2000, instances))
            ends = table[-2:, p][:, draws].mean(-1)
            step = np.log(budgets[-1] / budgets[-2])
            low, high = np.quantile(
                np.log(np.maximum(ends[1], 1e-9) / np.maximum(ends[0], 1e-9)) / step, [0.025, 0.975]
            )
            note = f"from {low:.2f} to {high:.2f} (bootstrap over instances, 95 %), B = {budgets[-2]} to {budgets[-1]}"
            rows.add(
                f"{item}: K = {k}, d = {d}, exponent of {name}",
                slope / step,
                note=note,
                published=OURS,
            )
        rows.append(
            ranking(
                f"{item}: K = {k}, d = {d}, ranking at B = {budgets[-1]}",
                dict(zip(policies, table[-1], strict=True)),
            )
        )
        for b, x in zip(budgets, table, strict=True):
            rows += bounds_row(
                f"{item}: K = {k}, d = {d}, B = {b}", dict(zip(policies, x, strict=True))
            )
        axis.set(
            xscale="log", yscale="log", title=f"K = {k}, d = {d}", xlabel="budget of each resource"
        )
    axes[0].set_ylabel("regret (fluid optimum − reward)")
    save(
        picture,
        options.out / f"{item}.png",
        "Several resources and time: regret over the budget",
        legend=axes[:1],
        columns=4,
    )
    return rows


def bounds_row(item: str, regret: dict[str, np.ndarray]) -> list[Row]:
    """Does ω-UCB's bound lose less than rad? Paired over instances."""
    rows = Summary()
    for name in ("PD-BwK", "UCB-BwK"):
        if f"{name}, rad" not in regret:
            continue
        gap = regret[f"{name}, rad"] - regret[f"{name}, ω"]
        note = f"of {regret[f'{name}, rad'].mean():.4g}; yes: ω-UCB's bound loses less"
        holds = is_above(gap, errors=1.96)
        rows.mean(f"{item}: {name}, rad − ω", gap, OURS, holds=holds, note=note, digits=".4g")
    return rows


def kinds(options: Options) -> list[Row]:
    """Another resource binds in every instance; dear arms are dear in all resources and bring more."""
    budget, instances, runs = options.pick((60, 3, 4), (1000, 20, 4), (10_000, 40, 2))
    rows: list[Row] = []
    k, d = options.pick((5, 2), (10, 3), (10, 3))
    for kind in ("binding", "correlated"):
        arms = random_arms(instances, k, d, seed=3, kind=kind)
        money = np.full((instances, d), float(budget))
        if kind == "binding":  # in instance i resource i mod d is short, or time alone
            for i, j in itertools.product(range(instances), range(d)):
                money[i, j] = budget / 2 if j == i % (d + 1) else 2.0 * budget
        policies = with_oracle(POLICIES, arms)
        regret = regrets(options, kind, policies, arms, budget, runs, money=money).mean(-1)
        losses = dict(zip(policies, regret, strict=True))
        rows += [
            mean_row(f"kinds: {kind}, B = {budget}, {name}", x, published=OURS)
            for name, x in losses.items()
        ]
        rows.append(ranking(f"kinds: {kind}, ranking at B = {budget}", losses))
        rows += bounds_row(f"kinds: {kind}, B = {budget}", losses)
    return rows


def changing(options: Options) -> list[Row]:
    """Halfway another resource becomes the short one; or rewards do, up or down, with money for a
    third of the rounds.

    The yardstick is the best fixed mixture in hindsight, which needs the whole run's means: the
    fluid optimum at the means of the two halves. LagrangeBwK is proved to earn a share of it
    against any adversary, the others are not.
    """
    budget, instances, runs = options.pick((60, 4, 4), (1000, 20, 4), (10_000, 40, 2))
    k, d, rows = options.pick(5, 10, 10), 2, Summary()
    chosen = _chosen(options)
    picture, axes = figure(1, 2, (11, 4.6))
    for axis, kind in zip(axes, ("binding", "rewards"), strict=True):
        rng = np.random.default_rng([4, k])
        reward, cost = rng.uniform(0.1, 1, (instances, k)), rng.uniform(0.1, 1, (instances, k, d))
        if kind == "binding":  # the first half spends resource 0, the second resource 1
            rounds, weight = 2 * budget, np.array([1.0, 0.3])
            halves = [(reward, cost * weight), (reward, cost * weight[::-1])]
        else:  # in every other instance rewards double, in the others they fall to a tenth
            rounds, up = 6 * budget, np.arange(instances)[:, None] % 2 == 0
            halves = [(reward / 2, cost), (np.where(up, reward, reward / 20), cost)]
        worlds = [WithNullArm(FiniteArms.bernoulli(*half)) for half in halves]
        environment = Piecewise.of(worlds, at=[rounds // 2 + 1])
        money = np.full((instances, d), float(budget))
        limit = jb.TotalBudget(money, last_pull="forfeits", rounds=rounds)
        result = played(options, f"changing {kind}", chosen, environment, limit, runs=runs)
        mean = [np.mean(x, axis=0) for x in zip(*halves, strict=True)]
        best = fluid_values(mean[0], mean[1], money, np.full(instances, float(rounds)))
        share = result.ledger["expected_reward"][..., -1].mean(-1) / 2.0**24 / best
        groups = {"binding": np.full(instances, True)}
        if kind == "rewards":
            groups = {"rewards up": up[:, 0], "rewards down": ~up[:, 0]}
        setting = f"B = {budget}, T = {rounds}"
        for group, members in groups.items():
            shares = dict(zip(chosen, share[:, members], strict=True))
            for name, x in shares.items():
                item = f"changing: {group}, {name}, share of the best fixed mixture"
                rows.mean(item, x, published=OURS, note=setting)
            rows.append(
                ranking(
                    f"changing: {group}, ranking",
                    {name: 1 - x for name, x in shares.items()},
                    setting,
                )
            )
        boxes(axis, share, (look(name)["color"] for name in chosen))
        axis.axhline(1, color="black", linewidth=1)
        name_ticks(axis, range(len(chosen)), [name.replace(", ", ",\n") for name in chosen])
        axis.tick_params(axis="x", rotation=45)
        title = (
            "the resource that is short changes"
            if kind == "binding"
            else "rewards change, up or down"
        )
        axis.set(title=title, ylabel="reward / best fixed mixture's", ylim=(0, None))
    save(
        picture,
        options.out / "changing.png",
        f"A world that changes halfway, K = {k}, d = {d}, B = {budget:,}",
    )
    return rows


PRICES, DEMAND = np.array([29.9, 34.9, 39.9, 44.9]), np.array([0.8, 0.6, 0.3, 0.1])


def pricing(options: Options) -> list[Row]:
    """The one product of Ferreira, Simchi-Levi and Wang (2018): four prices, a stock of αT, a buyer
    a round or none.

    Revenue as a share of the fluid optimum. The instance is theirs; of their figure no numbers
    could be read.
    """
    sold = [np.repeat([1.0, 0.0], [round(10 * q), round(10 * (1 - q))]) for q in DEMAND]
    arms = FiniteArms.empirical(
        [[(p / PRICES[-1] * x, x[:, None]) for p, x in zip(PRICES, sold, strict=True)]]
    )
    policies = {"TS-fixed": ThompsonLP(update_budgets=False), "TS-update": ThompsonLP()}
    policies |= {
        name: POLICIES[name] for name in ("UCB-BwK, rad", "UCB-BwK, ω", "PD-BwK, rad", "PD-BwK, ω")
    }
    rows, runs = [], options.pick(20, 200, 500)
    for alpha, rounds in itertools.product(
        (0.25, 0.5), options.pick([100], [100, 1000], [100, 1000, 10_000])
    ):
        limit = jb.TotalBudget([alpha * rounds], last_pull="forfeits", rounds=rounds)
        result = played(options, f"pricing {alpha} {rounds}", policies, arms, limit, runs=runs)
        best = fluid_values(*arms.values(), np.array([[alpha * rounds]]), np.array([float(rounds)]))
        share = dict(zip(policies, result.reward.values[:, 0, :, -1] / best, strict=True))
        place = f"pricing: α = {alpha}, T = {rounds}"
        rows += [
            mean_row(f"{place}, {x}, share of the fluid optimum", y, published=OURS)
            for x, y in share.items()
        ]
        rows.append(ranking(f"{place}, ranking", {x: 1 - y for x, y in share.items()}))
    return rows


def account(options: Options) -> list[Row]:
    """10⁹ rounds of many short runs, which end by different resources: their spending, in exact
    ticks.

    Where the last pull forfeits, no resource may be above its budget; where it counts, none by more
    than that pull.
    """
    rows, goal, instances, runs = (
        Summary(),
        options.pick(1e5, 1e7, 1e9),
        200,
        options.pick(1, 20, 200),
    )
    for d, last_pull in itertools.product((2, 5), ("forfeits", "counts")):
        rounds, over, accounts, seed = 0.0, 0, 0, itertools.count()
        while rounds < goal / 4:
            rng = np.random.default_rng([6, d, next(seed)])
            arms = random_arms(instances, 5, d, seed=6)
            money = rng.uniform(50, 1000, (instances, d))
            limit = jb.TotalBudget(
                money, last_pull=last_pull, rounds=rng.integers(200, 4000, instances)
            )
            policies = [FixedSplit(np.ones(5)), PrimalDualBwK(bounds=RadBounds(c_rad=C_RAD))]
            result = jb.simulate(
                policies, arms, limit, key=jax.random.key(next(seed)), replicates=runs, marks=1
            )
            room = 1 if last_pull == "counts" else 0  # a coin of 1 more, at most
            allowance = np.floor(money * 2.0**24)[None, :, None, :] + room * 2.0**24 - room
            spent = result.ledger["spent"][..., -1, :]
            rounds += float(result.ledger["rounds"].sum())
            over, accounts = over + int((spent > allowance).sum()), accounts + spent.size
        note = f"of {accounts} accounts in {rounds:.4g} rounds, d = {d}"
        rows.add(
            f"account: overspent, last pull {last_pull}, d = {d}",
            over,
            note=note,
            published=0,
            holds=over == 0,
        )
    return rows


EXPERIMENT = Experiment.of(
    "knapsacks",
    (sensitivity, confirm, growth, large, kinds, changing, pricing, account),
    any_size=lambda row: row.published in ("", OURS, "0"),
    not_in_quick=("confirm", "large", "pricing", "account"),  # compilations of their own
)
