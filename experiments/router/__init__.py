"""Which router: quality over dollars on real prompts and real prices, seven budgets, intervals over
orders and prompts.

    python -m experiments router [--quick|--full] [--only ITEM] [--out DIR]

Items: fixed, learners, context, delays, prices, tuning, settings, policies, second, own. Prompts
come from the wheel ``paretobandit`` (Apache-2.0): ``python -m pip install 'jaxbandits[router]'``.
``own`` plays ``DIR/requests.csv`` of ``--data DIR``: a row for each request, columns ``quality
MODEL`` and ``dollars MODEL`` for each model.

A run learns on the 1,785 prompts of the training split and is judged on the 1,824 of the test
split, each in an order of its own. A cost of 1 is the dearest answer of all.
"""

from __future__ import annotations

import csv
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import OURS, Experiment, Options, Row, Summary, mean_se, row, simulated
from experiments.router import paretobandit, rules
from experiments.router.data import MODELS, Split, load
from experiments.router.features import embedded
from experiments.router.picture import draw_picture
from experiments.router.programs import Ridge, by_price, ceiling, fitting_price, frontier, mixture
from jaxbandits.core.checks import bad
from jaxbandits.environments import (
    Delayed,
    FixedDelay,
    Piecewise,
    RequestTable,
    ShuffledRows,
    WithNullArm,
)
from jaxbandits.policies import (
    SUAK,
    BudgetedThompson,
    FluidOracle,
    Guarded,
    InFlight,
    OmegaUCB,
    OnePhase,
    Pacer,
    PricePacer,
    PrimalDualTwoPhase,
    UCBSimplex,
    Windowed,
)

ours = functools.partial(row, published=OURS)
RUN_KEY, TRIAL_KEY = jax.random.key(360), jax.random.key(361)
# ParetoBandit's Table 1 (its repository at 9309199e,
# 01_stationary_budget_pacing/table_budget_compliance.tex): quality and its standard error, dollars
# a request, dollars over the budget.
PUBLISHED = {
    "2.9e-05": (0.793, 0.00004, 2.9e-5, 0.98),
    "8.3e-05": (0.813, 0.0005, 8.3e-5, 1.00),
    "2.3e-04": (0.859, 0.0008, 2.3e-4, 1.00),
    "6.6e-04": (0.898, 0.002, 6.5e-4, 0.98),
    "1.9e-03": (0.917, 0.0008, 1.7e-3, 0.91),
    "5.3e-03": (0.924, 0.0003, 4.7e-3, 0.89),
    "1.5e-02": (0.929, 0.0003, 1.1e-2, 0.74),
}
ALONE = {
    "Llama-3.1-8B": ("0.793", "2.9e-05"),
    "Mistral-Large": ("0.923", "5.3e-04"),
    "Gemini-2.5-Pro": ("0.932", "1.5e-02"),
}


OWN, COLUMNS = "requests.csv", ("quality", "dollars")


class World(NamedTuple):
    """The prompts of both splits, and the seven budgets."""

    train: Split
    test: Split
    budgets: np.ndarray  # dollars a request, [B]
    unit: float  # dollars of a cost of 1

    @property
    def c(self) -> np.ndarray:
        """Budgets in cost units."""
        return np.minimum(self.budgets / self.unit, 1.0)

    @property
    def labels(self) -> list[str]:
        """The names of the budgets in rows."""
        return [f"{b:.1e}" for b in self.budgets]

    @property
    def parts(self) -> tuple[int, int]:
        """How many requests are learnt from, and how many are judged."""
        return len(self.train.prompts), len(self.test.prompts)

    @property
    def price(self) -> np.ndarray:
        """What one more dollar brings on the training split, in cost units, ``[1, B]``."""
        slopes = [mixture(*self.train.means, float(b)).price for b in self.budgets]
        return np.array([slopes]) * self.unit

    @property
    def both(self) -> Split:
        """The rows of a table: the training split, then the test split."""
        quality, dollars = map(np.concatenate, zip(self.train[1:], self.test[1:], strict=True))
        return Split(self.train.prompts + self.test.prompts, quality, dollars)

    @property
    def rounds(self) -> np.ndarray:
        """Requests at the marks of a run."""
        return np.rint(marks(*self.parts) * sum(self.parts)).astype(int)

    def table(self, rows: Split, parts: tuple[int, ...]) -> RequestTable:
        """A table for each budget (an instance has orders of its own)."""
        quality, cost = (
            np.tile(x, (len(self.budgets), 1, 1)) for x in (rows.quality, rows.dollars / self.unit)
        )
        return RequestTable.of(quality, cost, ShuffledRows(parts))


@functools.cache
def world() -> World:
    """The data, read once."""
    return budgeted(*load())


def budgeted(train: Split, test: Split) -> World:
    """Seven budgets, evenly in ln dollars, from the cheapest model's mean to the dearest's."""
    means = train.dollars.mean(axis=0)
    budgets = np.geomspace(means.min(), means.max(), len(PUBLISHED))
    return World(train, test, budgets, float(max(train.dollars.max(), test.dollars.max())))


def marks(first: int, second: int) -> np.ndarray:
    """Shares of a run after whole numbers of requests, among them the end of the first part."""
    learning, judging = np.linspace(0, first, 18)[1:], first + np.linspace(0, second, 20)[1:]
    return np.unique(np.rint(np.concatenate([learning, judging]))) / (first + second)


class Judged(NamedTuple):
    """A router's results on the test split; dollars are those of a request."""

    quality: np.ndarray  # [budget, order]
    dollars: np.ndarray  # [budget, order]
    # [budget, order]: share of the marks at which the mean cost so far is at most the budget
    within_budget: np.ndarray
    served: np.ndarray  # [budget, order]: share of requests that were not turned away
    # [2, budget, order, mark]: quality and dollars a request between marks, given the models if known
    window: np.ndarray


def judged(study: World, ledger: Any, setting: int, first: int) -> Judged:
    """From accounts of lanes ``[setting, budget, order, mark]``; ``first``: to learn."""
    rounds = ledger["rounds"][setting].astype(float)
    reward, spent = (
        ledger[x][setting].reshape(rounds.shape) / 2.0**24 for x in ("reward", "spent")
    )
    spent = spent * study.unit
    at = np.searchsorted(rounds[0, 0], first)
    assert rounds[0, 0, at] == first, "a mark stands at the end of the training split"
    turned = sum(ledger[x][setting] for x in ("event:skips", "event:null") if x in ledger)
    certain = [
        ledger.get(f"expected_{x}", ledger[x])[setting].reshape(rounds.shape) / 2.0**24
        for x in ("reward", "spent")
    ]
    since = [x[..., at + 1 :] - x[..., [at]] for x in (reward, spent, rounds, turned + 0 * rounds)]
    quality, dollars, turned_away = (x / since[2] for x in (since[0], since[1], since[3]))
    within_budget = (dollars <= study.budgets[: len(dollars), None, None] * (1 + 1e-6)).mean(
        axis=-1
    )
    steps = [np.diff(x, axis=-1, prepend=0) for x in (certain[0], certain[1] * study.unit, rounds)]
    return Judged(
        quality[..., -1],
        dollars[..., -1],
        within_budget,
        1 - turned_away[..., -1],
        np.stack(steps[:2]) / steps[2],
    )


# --- Players


def promptless_policies(study: World, quick: bool) -> dict[str, Any]:
    """Policies that see no prompt; each may know the budget, and whatever its source gives it."""
    c, rounds, (quality, dollars) = study.c[None], sum(study.parts), study.train.means
    quality, cost = (
        np.tile(x, (1, len(study.budgets), 1)) for x in (quality, dollars / study.unit)
    )
    basic = {
        "mixture learnt on the training split": FluidOracle(quality, cost, c=c),
        "UCB-Simplex": UCBSimplex(c=c, lam=TUNED["UCB-Simplex"]),
        "explore 50, then commit": rules.ExploreThenCommit(c=c),
        "cap": rules.Cap(preferred=2, cheapest=0),
    }
    if quick:
        return basic
    # Dollars for a million tokens read, as the package's registry says
    listed = np.array([0.1, 0.5, 1.25])
    return basic | {
        "pacer": Pacer(c=c, a=TUNED["pacer"]),
        "One-Phase": OnePhase(c=c, horizon=rounds, a=TUNED["One-Phase"]),
        "primal-dual": PrimalDualTwoPhase(c=c, horizon=rounds, a=TUNED["primal-dual"]),
        "SUAK": SUAK(c=c),
        "UCB-Simplex, guarded": Guarded(UCBSimplex(c=c, lam=TUNED["UCB-Simplex"])),
        "ω-UCB": OmegaUCB(),
        "BTS": BudgetedThompson(),
        "price tiers": rules.PriceTiers(worth=[1.0, 0.7, 0.4]),
        "r − λc": rules.NetReward(price=study.price),
        "LiteLLM adaptive": rules.AdaptiveRouter(
            cheapness=1 - (listed - listed.min()) / np.ptp(listed), prior=np.array([3, 5, 7])
        ),
    }


TUNED = {  # by `tuning`
    "UCB-Simplex": 0.1,
    "pacer": 10.0**-3.5,
    "One-Phase": 10.0**-4.5,
    "primal-dual": 1e-10,
    "PricePacer": 2.0**-16,
}
GRIDS = {
    "UCB-Simplex": 10.0 ** np.arange(-2, 1.1, 0.5),
    "pacer": 10.0 ** np.arange(-7, -0.9, 0.5),
    "One-Phase": 10.0 ** np.arange(-7, -0.9, 0.5),
    "primal-dual": 10.0 ** np.arange(-10, -1.9),
    "PricePacer": 2.0 ** np.arange(-24, 1, 2),
}


def tuning(options: Options) -> list[Row]:
    """Which λ, a and ρ on the training split: the mean shortfall from the frontier."""
    study = world()
    first = second = len(study.train.prompts)
    rows_twice = Split(
        study.train.prompts * 2,
        np.tile(study.train.quality, (2, 1)),
        np.tile(study.train.dollars, (2, 1)),
    )
    table, rounds = study.table(rows_twice, (first, second)), first + second
    rows, orders = [], options.pick(2, 4, 8)

    def over(name: str, grid: np.ndarray) -> Any:
        c = np.broadcast_to(study.c, (grid.size, len(study.c)))
        return {
            "UCB-Simplex": lambda: UCBSimplex(c=c, lam=grid),
            "pacer": lambda: Pacer(c=c, a=grid),
            "One-Phase": lambda: OnePhase(c=c, horizon=rounds, a=grid),
            "primal-dual": lambda: PrimalDualTwoPhase(c=c, horizon=rounds, a=grid),
            "PricePacer": lambda: InFlight(PricePacer(rho=grid), bound=bounds(study)),
        }[name]()

    for name, grid in GRIDS.items():
        if name == "PricePacer":
            environment: Any = Delayed(table, FixedDelay(0), room=1)
            limit: Any = daily(study, (first, second))
        else:
            environment, limit = WithNullArm(table), jb.AverageCost(c=study.c, rounds=rounds)
        result, _ = simulated(
            options, f"tuning {name}", over(name, grid), environment, limit, key=TRIAL_KEY, replicates=orders,
            marks=marks(first, second),
        )  # fmt: skip
        records = [judged(study, result.ledger, i, first) for i in range(grid.size)]
        losses = [shortfall(study.train, study.budgets, x.quality, x.dollars) for x in records]
        mean = np.stack(losses).mean(axis=(1, 2))
        best = int(np.argmin(mean))
        note = "; ".join(f"{x:.3g}: {y:.4f}" for x, y in zip(grid, mean, strict=True))
        rows.append(ours(f"tuning: {name}", float(grid[best]), note=f"lost: {note}"))
    return rows


def shortfall(
    split: Split, budgets: np.ndarray, quality: np.ndarray, dollars: np.ndarray
) -> np.ndarray:
    """Quality lost to the best fixed mixture at the budget, ``[budget, …]``.

    A dollar too much counts twice what it could bring, or overspending along the frontier would be
    free.
    """
    spread = (slice(None), *(None,) * (quality.ndim - 1))
    best = [mixture(*split.means, float(b)) for b in budgets]
    best_quality, price = (
        np.array([getattr(x, name) for x in best])[spread] for name in ("quality", "price")
    )
    return best_quality + 2 * price * np.maximum(dollars - budgets[spread], 0) - quality


def bounds(study: World) -> np.ndarray:
    """The dearest answer of each model, in cost units."""
    return np.maximum(study.train.dollars.max(0), study.test.dollars.max(0)) / study.unit


def daily(study: World, parts: tuple[int, int], days: int = 3) -> jb.Renewing:
    """The budget as dollars a day, three days a split: on a test day ``budgets`` a request."""
    requests = [part // days for part in parts for _ in range(days)]
    assert sum(requests) == sum(parts)
    return jb.Renewing(amount=study.c[:, None] * (parts[1] // days), every=[1], requests=requests)


# --- Items


def fixed(options: Options) -> list[Row]:
    """One model always, mixtures, and the best choice for every request: exact, nothing is played."""
    study = world()
    (quality, dollars), rows = study.test.means, []
    for (name, (printed, paid)), mean, cost in zip(ALONE.items(), quality, dollars, strict=True):
        item = f"fixed: always {name}"
        is_so = f"{mean:.3f}" == printed
        is_paid = f"{cost:.1e}" == paid
        note = "judged quality; mean of the test split"
        rows += [
            row(f"{item}, quality", mean, published=printed, holds=is_so, note=note),
            row(f"{item}, dollars", cost, published=paid, holds=is_paid, digits=".3e"),
        ]
    for b, (label, (q, _, d, _)) in zip(study.budgets, PUBLISHED.items(), strict=True):
        best, plan = mixture(quality, dollars, float(b)), mixture(*study.train.means, float(b))
        listing = f"{', '.join(f'{x:.3f}' for x in best.shares)} of the three models and of none"
        shares = plan.shares[:-1]
        best_choice = ceiling(study.test.quality, study.test.dollars, float(b))
        at_those = float(frontier(quality, dollars, np.array(d)))
        note = f"ParetoBandit's published {q} at ${d:g} less the best mixture at those dollars, {at_those:.4f}"
        learnt = f"fixed: mixture learnt on the training split at ${label}"
        rows += [
            ours(f"fixed: best mixture at ${label}", best.quality, note=listing),
            ours(learnt, float(shares @ quality), note=f"at ${shares @ dollars:.3g}"),
            ours(f"fixed: best choice for every request at ${label}", best_choice),
            ours(
                f"fixed: published − best mixture, ${label}", q - at_those, note=note, digits="+.4f"
            ),
        ]
    return rows


def play_lanes(options: Options, study: World, name: str, policy: Any) -> Judged:
    """A promptless policy at every budget, in orders of its own."""
    parts, runs = study.parts, options.pick(8, 32, 64)
    environment = WithNullArm(study.table(study.both, parts))
    limit = jb.AverageCost(c=study.c, rounds=sum(parts))
    result, _ = simulated(
        options, name, policy, environment, limit, key=RUN_KEY, replicates=runs, marks=marks(*parts)
    )
    return judged(study, result.ledger, 0, parts[0])


def learner_records(options: Options) -> dict[str, Judged]:
    """Results of every promptless policy at every budget."""
    study = world()
    return {
        name: play_lanes(options, study, name, policy)
        for name, policy in promptless_policies(study, options.quick).items()
    }


def record_rows(study: World, item: str, record: Judged) -> list[Row]:
    """Quality and spending at each budget, and requests until it is as good as the mixture."""
    rows, means, soonest = Summary(), study.test.means, until(study, record)
    for i, label in enumerate(study.labels):
        gap = record.quality[i].mean() - mixture(*means, float(record.dollars[i].mean())).quality
        note = (
            f"less the best mixture at its dollars {gap:+.4f}; {100 * record.served[i].mean():.1f} % served; "
            f"as good as the mixture at the budget after {soonest[i]}"
        )
        at = f"{item} at ${label}: "
        rows.mean(f"{at}quality", record.quality[i], OURS, digits=".4f", note=note)
        within_budget = 100 * record.within_budget[i].mean()
        note = f"the mean so far within the budget at {within_budget:.0f} % of marks"
        ratio = record.dollars[i] / study.budgets[i]
        rows.mean(f"{at}dollars over the budget", ratio, OURS, digits=".3f", note=note)
    return rows


def until(study: World, record: Judged, within: float = 0.01) -> list[str]:
    """Requests after which no window of some 100 loses more than ``within`` to the mixture."""
    losses = shortfall(study.both, study.budgets, *record.window.mean(axis=2))
    after = after_last(study, losses > within)
    return ["never" if np.isinf(x) else f"{x:.0f} requests" for x in after]


def after_last(study: World, fails: np.ndarray) -> np.ndarray:
    """Requests after which it does not fail again, of ``[…, mark]``; ``inf``: at the last mark."""
    ends = np.concatenate([[0], study.rounds[:-1], [np.inf]])
    marks_until = np.arange(1, fails.shape[-1] + 1)
    return ends[np.where(fails, marks_until, 0).max(axis=-1)]


def learners_(options: Options) -> list[Row]:
    """Policies that see no prompt, at seven budgets."""
    study, records = world(), learner_records(options)
    rows = [
        line
        for name, record in records.items()
        for line in record_rows(study, f"learners: {name}", record)
    ]
    if options.quick:
        draw_picture(options.out / "router.png", study, records, {})
    return rows


class Choices(NamedTuple):
    """The choices of routers that see prompts, by budget and order, on the test split."""

    model: np.ndarray  # i64[budget, order, N]
    record: Judged | None  # None for those that do not learn as they go


def seen(options: Options) -> np.ndarray:
    """What a contextual router sees of the prompts, ``[N, 26]``."""
    prompts = world().both.prompts
    return paretobandit.pca_features(embedded(prompts, options.out / "runs" / "embeddings.npz"))


def contextual(options: Options) -> dict[str, Choices]:
    """ParetoBandit; a linear router fitted to the training split; a threshold on length."""
    study = world()
    first, context = len(study.train.prompts), seen(options)
    return {
        "ParetoBandit": _learning(options, study, context),
        "linear, shown all": Choices(
            _linear(study, context[:first], context[first:])[:, None], None
        ),
        "longer prompts to the dearer": Choices(_by_length(study)[:, None], None),
    }


def _learning(options: Options, study: World, context: np.ndarray) -> Choices:
    first, requests = len(study.train.prompts), study.both
    orders, rounds = options.pick(2, 8, 20), len(requests.prompts)
    table = study.table(requests, (first, rounds - first))
    path = options.run_path("ParetoBandit.npz")
    if path and path.is_file():
        order, model = (np.load(path)[x] for x in ("order", "model"))
    else:
        order = np.zeros((len(study.budgets), orders, rounds), np.int64)
        model = np.zeros_like(order)
        for b, budget in enumerate(study.budgets):
            for o in range(orders):
                order[b, o] = table.rows(RUN_KEY, rounds, replicate=o, instance=b)
                model[b, o] = paretobandit.choices(context, requests, order[b, o], float(budget), o)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, order=order, model=model)
    quality, dollars = (x[order, model] for x in (requests.quality, requests.dollars))
    by_prompt = np.zeros((*order.shape[:2], rounds - first), np.int64)
    np.put_along_axis(by_prompt, order[..., first:] - first, model[..., first:], axis=-1)
    return Choices(by_prompt, record_of(study, quality, dollars))


def record_of(study: World, quality: np.ndarray, dollars: np.ndarray) -> Judged:
    """Results from the quality and the dollars of each round, ``[budget, order, round]``."""
    totals = [
        np.cumsum(x, axis=-1)[..., study.rounds - 1] / s
        for x, s in ((quality, 1.0), (dollars, study.unit))
    ]
    ledger = {"reward": totals[0] * 2.0**24, "spent": totals[1] * 2.0**24}
    ledger["rounds"] = np.broadcast_to(study.rounds, totals[0].shape)
    first = len(study.train.prompts)
    return judged(study, {name: x[None] for name, x in ledger.items()}, 0, first)


def _linear(study: World, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Ridge regressions on the training split and the price that meets the budget there."""
    model = Ridge.fitted(before, study.train.quality, study.train.dollars, penalty=1.0)
    guess, test_guess = model.predictions(before), model.predictions(after)
    prices = [fitting_price(*guess, float(b), paid=study.train.dollars) for b in study.budgets]
    cheapest = int(np.argmin(study.train.dollars.mean(0)))
    return np.array(
        [
            by_price(*test_guess, p) if np.isfinite(p) else np.full(len(after), cheapest)
            for p in prices
        ]
    )


def _by_length(study: World) -> np.ndarray:
    """The mixture's two models; the dearer one for the longest prompts that are affordable."""
    models = []
    for b in study.budgets:
        plan = mixture(*study.train.means, float(b)).shares[:-1]
        pair = np.flatnonzero(plan > 0)
        cheap, dear = pair[0], pair[-1]
        length, later = (
            np.array([len(x) for x in split.prompts]) for split in (study.train, study.test)
        )
        by = np.argsort(-length, kind="stable")
        paid = study.train.dollars[:, cheap].sum() + np.cumsum(
            (study.train.dollars[:, dear] - study.train.dollars[:, cheap])[by]
        )
        fits = int((paid <= b * len(length)).sum())
        limit = length[by[fits - 1]] if fits else np.inf
        models.append(np.where(later >= limit, dear, cheap))
    return np.array(models)


def context_gain(
    study: World, model: np.ndarray, draws: int = 2000
) -> tuple[float, float, float, float]:
    """(quality less the best fixed mixture's at the same dollars; 95 % interval; dollars a
    request).

    ``model`` [order, N] of one budget. Bootstrap over prompts and over orders; the mixture is found
    anew each time.
    """
    rng = np.random.default_rng(36)
    orders, n = model.shape
    # [order, N]
    quality, dollars = (x[np.arange(n), model] for x in (study.test.quality, study.test.dollars))
    # All, then draws
    prompts = np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), draws)]) / n
    of_order = np.concatenate(
        [np.ones((1, orders)), rng.multinomial(orders, np.full(orders, 1 / orders), draws)]
    )
    totals = [np.einsum("do,od->d", of_order / orders, x @ prompts.T) for x in (quality, dollars)]
    models = prompts @ study.test.quality, prompts @ study.test.dollars  # [draw, K]
    lines = zip(*totals, *models, strict=True)
    gaps = np.array([q - mixture(all_q, all_d, float(d)).quality for q, d, all_q, all_d in lines])
    low, high = np.quantile(gaps[1:], [0.025, 0.975])
    return float(gaps[0]), float(low), float(high), float(totals[1][0])


def context(options: Options) -> list[Row]:
    """Does context pay? Routers that see the prompt beside the best mixture at their dollars."""
    study, routers, rows = world(), contextual(options), Summary()
    points: dict[str, Any] = {}
    for name, choices in routers.items():
        points[name] = [
            context_gain(study, model, options.pick(200, 1000, 2000)) for model in choices.model
        ]
        for (gap, low, high, dollars), budget, label in zip(
            points[name], study.budgets, PUBLISHED, strict=True
        ):
            holds = True if low > 1e-6 else False if high < -1e-6 else None
            note = (
                f"from {low:+.4f} to {high:+.4f} (bootstrap over prompts and orders, 95 %) at {dollars / budget:.3f} "
                "of the budget; yes: context pays"
            )
            item = f"context: {name} − best mixture at its dollars, ${label}"
            rows.append(ours(item, gap, holds=holds, digits="+.4f", note=note))
    record = routers["ParetoBandit"].record
    assert record is not None
    rows += record_rows(study, "context: ParetoBandit", record)
    for i, (label, (q, error, _, ratio)) in enumerate(PUBLISHED.items()):
        for quantity, values, published, printed in (
            ("quality", record.quality[i], q, error),
            ("dollars over the budget", record.dollars[i] / study.budgets[i], ratio, 0.0),
        ):
            value, se = mean_se(values)
            rounding = 0.0005 if quantity == "quality" else 0.005
            # the printed error of the ratio is not given: ours, for as many orders
            margin = 2 * np.hypot(se, printed or se) + rounding
            agrees = bool(abs(value - published) <= margin)
            item = f"context: ParetoBandit's {quantity} at ${label}, ours and published"
            rows.add(item, value, se, published=published, holds=agrees, digits=".4f")
    draw_picture(options.out / "router.png", study, learner_records(options), points)
    return rows


def delays(options: Options) -> list[Row]:
    """Outcomes 0 to 1,000 requests late; the budget as dollars a day."""
    study, rows = world(), []
    parts = study.parts
    policies: dict[str, Any] = {
        "PricePacer": PricePacer(rho=TUNED["PricePacer"]),
        "explore 50, then commit": rules.ExploreThenCommit(c=study.c[None]),
        "r − λc": rules.NetReward(price=study.price),
    }
    table, limit = study.table(study.both, parts), daily(study, parts)
    for late in options.pick([100], [0, 10, 100, 1000], [0, 10, 100, 1000]):
        environment = Delayed(table, FixedDelay(late), room=late + 1)
        for name, policy in list(policies.items())[: options.pick(1, 3, 3)]:
            result, _ = simulated(
                options, f"{name}, {late} late", InFlight(policy, bound=bounds(study)), environment, limit, key=RUN_KEY,
                replicates=options.pick(4, 8, 16), marks=marks(*parts),
            )  # fmt: skip
            record = judged(study, result.ledger, 0, parts[0])
            rows += record_rows(study, f"delays: {name}, {late} requests late", record)
    return rows


def own_log(options: Options) -> list[Row]:
    """Your log, ``DIR/requests.csv``: mixtures of your models, a learner, the ceiling."""
    path = options.data / OWN
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    titles = lines[0] if lines else {}
    names = [x.removeprefix("quality ") for x in titles if x.startswith("quality ")]
    if len(names) < 2 or any(f"dollars {name}" not in titles for name in names):
        wanted = "a CSV file with columns 'quality MODEL' and 'dollars MODEL' for each model"
        raise bad(str(path), "other columns", wanted)
    quality, dollars = (
        np.array([[float(x[f"{quantity} {n}"]) for n in names] for x in lines])
        for quantity in COLUMNS
    )
    train, test = (
        Split([""] * len(part), quality[part], dollars[part])
        for part in np.split(np.arange(len(lines)), [len(lines) // 2])
    )
    study, rows = budgeted(train, test), []
    for name, q, d in zip(names, *test.means, strict=True):
        note = f"at ${d:.3g} a request"
        rows.append(ours(f"own: always {name}: quality", q, digits=".4f", note=note))
    for b, label in zip(study.budgets, study.labels, strict=True):
        best = mixture(*test.means, float(b))
        shares = zip(best.shares, [*names, "none"], strict=True)
        note = f"{', '.join(f'{100 * x:.0f} % {n}' for x, n in shares if x > 0)}; "
        best_choice = ceiling(test.quality, test.dollars, float(b))
        note += f"the best choice for every request: {best_choice:.4f}"
        rows.append(ours(f"own: best mixture at ${label}", best.quality, digits=".4f", note=note))
    policy = UCBSimplex(c=study.c[None], lam=TUNED["UCB-Simplex"])
    return rows + record_rows(study, "own: UCB-Simplex", play_lanes(options, study, "own", policy))


# Of its price: $0.10 for a million tokens in place of the mean of 1.25 and 10
PHASES, DROP = (3, 0.1 / 5.625)
TIGHT = {"tight": 3.0e-4, "moderate": 6.62e-4, "loose": 1.87e-3}
# Published: 58c1a81d
RATIOS = {"tight": (1.01, 0.95, 1.04), "moderate": (0.99, 0.65, 1.00), "loose": (0.96, 0.23, 0.95)}


def prices(options: Options) -> list[Row]:
    """The dearest model's price falls to a 56th for a third of the test split, and comes back."""
    study = world()._replace(budgets=np.array(list(TIGHT.values())))
    first, second = study.parts
    phase = second // PHASES
    usual = study.table(study.both, (first, second))
    falls = np.where(np.arange(len(MODELS)) == 2, DROP, 1.0)
    cheap = Split(study.both.prompts, study.both.quality, study.both.dollars * falls)
    at = (first + phase + 1, first + 2 * phase + 1)
    moves = study.both, cheap, study.both
    environment = Piecewise.of([WithNullArm(study.table(x, (first, second))) for x in moves], at=at)
    c, limit = study.c[None], jb.AverageCost(c=study.c, rounds=first + second)
    policies: dict[str, Any] = {
        "pacer": (Pacer(c=c, a=TUNED["pacer"]), environment),
        "pacer, window 300": (Windowed(Pacer(c=c, a=TUNED["pacer"]), window=300), environment),
        "UCB-Simplex": (UCBSimplex(c=c, lam=TUNED["UCB-Simplex"]), environment),
        "cap": (rules.Cap(preferred=2, cheapest=0), environment),
        "explore 50, then commit": (rules.ExploreThenCommit(c=c), environment),
    }
    if not options.quick:
        x, usual_price = contexts.features(options), np.ones(3)
        told = [np.hstack([x, np.tile(p, (len(x), 1))]) for p in (usual_price, falls, usual_price)]
        for name, observed in {"": told, ", not told": [x] * PHASES}.items():
            seen_by = zip(moves, observed, strict=True)
            tables = [contexts.tabled(study, rows, study.parts, y) for rows, y in seen_by]
            learner = contexts.pacer(study, priced=observed is told)
            policies[f"ContextualPacer{name}"] = learner, Piecewise.of(tables, at=at)
    ends = np.array([first + i * phase for i in range(PHASES + 1)]) / (first + second)
    outcomes: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, (policy, place) in policies.items():
        result, _ = simulated(
            options, f"prices, {name}", policy, place, limit, key=RUN_KEY, replicates=options.pick(4, 16, 32),
            marks=ends,
        )  # fmt: skip
        reward, spent = (
            np.diff(result.ledger[x][0] / 2.0**24, axis=-1) / phase for x in ("reward", "spent")
        )
        outcomes[name] = reward, spent * study.unit / study.budgets[:, None, None]
    if not options.quick:
        orders = options.pick(0, 8, 20)
        outcomes["ParetoBandit"] = _priced(study, seen(options), usual, orders, phase)
    rows = Summary()
    for name, (quality, ratio) in outcomes.items():
        for i, label in enumerate(TIGHT):
            for p, phase_name in enumerate(("before", "while cheap", "after")):
                value, error = mean_se(ratio[i, :, p])
                judged_quality, its_error = mean_se(quality[i, :, p])
                reference: Any = RATIOS[label][p] if name == "ParetoBandit" else OURS
                agrees = None
                if reference != OURS:
                    agrees = bool(abs(value - reference) <= 2 * np.hypot(error, error) + 0.005)
                note = f"quality {judged_quality:.4f} ± {its_error:.2g}"
                item = f"prices: {name}, {label}, {phase_name}: dollars over the budget"
                rows.add(
                    item, value, error, published=reference, holds=agrees, digits=".3f", note=note
                )  # fmt: skip
    return rows


def _priced(
    study: World, context: np.ndarray, table: RequestTable, orders: int, phase: int
) -> tuple[np.ndarray, np.ndarray]:
    """ParetoBandit, told the new price: (quality, spending) ``[budget, order, phase]``."""
    first, rounds = len(study.train.prompts), len(study.both.prompts)
    means = np.zeros((2, len(study.budgets), orders, PHASES))
    for b, budget in enumerate(study.budgets):
        for o in range(orders):
            order = table.rows(RUN_KEY, rounds, replicate=o, instance=b)
            factor = np.ones(rounds)
            factor[first + phase : first + 2 * phase] = DROP
            model = paretobandit.choices(
                context, study.both, order, float(budget), o, dearest=factor
            )
            paid = study.both.dollars[order, model] * np.where(model == 2, factor, 1.0)
            for quantity, x in enumerate((study.both.quality[order, model], paid / budget)):
                means[quantity, b, o] = x[first:].reshape(PHASES, phase).mean(axis=1)
    return means[0], means[1]


from experiments.router import contexts  # noqa: E402  # it takes the world and its accounts from here

EXPERIMENT = Experiment(
    "router",
    {
        "fixed": fixed,
        "learners": learners_,
        "context": context,
        "delays": delays,
        "prices": prices,
        "tuning": tuning,
        "settings": contexts.settings,
        "policies": contexts.policies,
        "second": contexts.second,
        "own": own_log,
    },
    needs={"own": OWN, "second": contexts.SECOND},
    not_in_quick=("context", "tuning", "settings", "policies", "second"),
    any_size=lambda row: row.item.startswith("fixed"),
)
