"""Policies of this package that see the prompt, from nothing, at the seven budgets: settings, and
what they bring.

Settings are chosen on the training split alone (item ``settings``) and stand in :data:`CHOSEN`; the
item ``policies`` plays the test split with them.
"""

from __future__ import annotations

import csv
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import Options, Row, mean_se, simulated
from experiments.router import (
    Judged,
    World,
    after_last,
    budgeted,
    judged,
    marks,
    ours,
    seen,
    shortfall,
    world,
)
from experiments.router.data import Split
from experiments.router.features import embedded
from experiments.router.programs import frontier
from jaxbandits.environments import Delayed, FixedDelay, RequestTable, ShuffledRows
from jaxbandits.policies import Bonus, Cells, ContextualPacer, Draw, InFlight

RUN_KEY, TRIAL_KEY = jax.random.key(360), jax.random.key(362)
CHOSEN = {"alpha": 0.25, "eta": 0.01, "ridge": 100.0, "v": 0.1}  # by `settings`
GRID = {"alpha": [0.125, 0.25, 0.5], "eta": [0.005, 0.01, 0.02], "ridge": [25.0, 100.0, 400.0]}


def features(options: Options) -> np.ndarray:
    """The 25 principal components of ParetoBandit, scaled by their training split, ``[N, 25]``."""
    x, first = seen(options)[:, :-1], len(world().train.prompts)
    return (x - x[:first].mean(axis=0)) / x[:first].std(axis=0)


def tabled(study: World, rows: Split, parts: tuple[int, ...], x: np.ndarray) -> RequestTable:
    """A table for each budget, with features."""
    every = (rows.quality, rows.dollars / study.unit, x)
    quality, cost, context = (np.broadcast_to(a, (len(study.budgets), *a.shape)) for a in every)
    return RequestTable.of(quality, cost, ShuffledRows(parts), features=context)


def limit_of(study: World, table: RequestTable, rounds: int) -> jb.AverageCost:
    """The budget a request; at the smallest one at least what a table's mean is."""
    return jb.AverageCost(
        c=np.maximum(study.c, table.values()[1].min(axis=1) + 2.0**-24), rounds=rounds
    )


def settings(options: Options) -> list[Row]:
    """Which α, η, p: learn on the first half of the training split, judged on the second."""
    train = world().train
    half = (len(train.prompts) + 1) // 2
    halves = [
        Split(train.prompts[part], train.quality[part], train.dollars[part])
        for part in _halves(half)
    ]
    study = budgeted(*halves)._replace(budgets=world().budgets, unit=world().unit)
    parts = (half, len(train.prompts) - half)
    table = tabled(study, train, parts, features(options)[: len(train.prompts)])
    alpha, eta, ridge = (x.ravel() for x in np.meshgrid(*GRID.values(), indexing="ij"))
    guess = np.broadcast_to(halves[0].dollars.mean(axis=0) / study.unit, (alpha.size, 1, 3))
    c = np.broadcast_to(study.c, (alpha.size, len(study.c)))
    policy = ContextualPacer(c=c, eta=eta, ridge=ridge, explore=Bonus(alpha), cost_guess=guess)
    result, _ = simulated(
        options, "settings", policy, table, limit_of(study, table, sum(parts)), key=TRIAL_KEY,
        replicates=options.pick(1, 8, 16), marks=marks(*parts),
    )  # fmt: skip
    each = [judged(study, result.ledger, i, half) for i in range(alpha.size)]
    lost = np.array(
        [shortfall(halves[1], study.budgets, x.quality, x.dollars).mean(axis=-1) for x in each]
    )
    best = int(lost.mean(axis=1).argmin())
    rows = []
    for name, values in (("alpha", alpha), ("eta", eta), ("ridge", ridge)):
        of_value = {float(v): lost[values == v].mean() for v in np.unique(values)}
        note = "; ".join(f"{v:g}: {x:.4f}" for v, x in of_value.items())
        note = f"lost, mean of others: {note}"
        rows.append(ours(f"settings: {name}", float(values[best]), note=note))
    chosen = (alpha == CHOSEN["alpha"]) & (eta == CHOSEN["eta"]) & (ridge == CHOSEN["ridge"])
    at = np.flatnonzero(chosen)[0]
    note = f"of those chosen {lost[at].mean():.4f}; by budget {', '.join(f'{x:+.4f}' for x in lost[at])}"
    least = float(lost[best].mean())
    return [*rows, ours("settings: least that is lost", least, digits=".4f", note=note)]


def _halves(half: int) -> tuple[slice, slice]:
    return slice(None, half), slice(half, None)


def centres(x: np.ndarray, number: int) -> np.ndarray:
    """k-means, Lloyd's steps from rows drawn at random."""
    rng = np.random.default_rng(36)
    at = x[rng.choice(len(x), number, replace=False)]
    for _ in range(50):
        near = ((x[:, None] - at[None]) ** 2).sum(axis=-1).argmin(axis=1)
        at = np.array(
            [x[near == i].mean(axis=0) if (near == i).any() else at[i] for i in range(number)]
        )
    return at


def players(options: Options, study: World) -> dict[str, tuple[Any, np.ndarray, int, int]]:
    """(policy, features, requests that answers are late, orders) of each row."""
    x, first = features(options), len(study.train.prompts)
    length = np.log([1 + len(prompt) for prompt in study.both.prompts])[:, None]
    length = (length - length[:first].mean()) / length[:first].std()
    cells = Cells(centres(x[:first], 32))
    many, few = options.pick(4, 64, 1000), options.pick(2, 16, 100)
    return {
        "ContextualPacer": (pacer(study), x, 0, many),
        "no guess": (pacer(study, cost_guess=None), x, 0, few),
        "draws": (pacer(study, explore=Draw(CHOSEN["v"])), x, 0, few),
        "32 cells": (pacer(study, features=cells, ridge=None), x, 0, few),
        "length alone": (pacer(study, ridge=4.0), length, 0, few),
        "no context": (pacer(study, ridge=4.0), 0 * length, 0, few),
        "100 late": (pacer(study), x, 100, few),
        "1,000 late": (pacer(study), x, 1000, options.pick(1, 4, 16)),
    }


def pacer(study: World, **options: Any) -> ContextualPacer:
    """With what was chosen, and the models' mean prices on the training split as a guess."""
    guess = (study.train.means[1] / study.unit)[None, None]
    usual: dict[str, Any] = {x: CHOSEN[x] for x in ("eta", "ridge")}
    usual |= {"explore": Bonus(CHOSEN["alpha"]), "cost_guess": guess}
    return ContextualPacer(c=study.c[None], **usual | options)


def policies(options: Options) -> list[Row]:
    """The test split: quality over the best mixture at the same dollars, over orders."""
    study = world()
    promised_gaps = {1: 0.01, 2: 0.02}
    return [
        each
        for name, player in players(options, study).items()
        for each in gaps(options, study, f"policies: {name}", *player, promised_gaps=promised_gaps)
    ]


def gaps(
    options: Options,
    study: World,
    item: str,
    policy: Any,
    x: np.ndarray,
    late: int,
    orders: int,
    promised_gaps: dict[int, float],
) -> list[Row]:
    """A policy at each budget; ``promised_gaps`` are promised there, elsewhere −0.003 is."""
    parts, means = study.parts, study.test.means
    table = tabled(study, study.both, parts, x)
    limit: Any = limit_of(study, table, sum(parts))
    environment: Any = table
    if late:
        environment, policy = Delayed(table, FixedDelay(late), room=late + 1), InFlight(policy)
        limit = jb.AverageCost(c=np.asarray(limit.c)[:, None], rounds=sum(parts))
    result, _ = simulated(
        options, item.replace(":", ""), policy, environment, limit, key=RUN_KEY, replicates=orders,
        marks=marks(*parts),
    )  # fmt: skip
    # A model's mean, which the ledger has as expected, says nothing of whose prompts it was given
    booked = {k: x for k, x in result.ledger.items() if not k.startswith("expected_")}
    record = judged(study, booked, 0, parts[0])
    gap, rows = record.quality - frontier(*means, record.dollars), []
    as_good, ahead = soon(study, record)
    for i, label in enumerate(study.labels):
        mean, error = mean_se(gap[i])
        paid, paid_error = mean_se(record.dollars[i] / study.budgets[i])
        low, high = mean - 1.96 * error, mean + 1.96 * error
        threshold = promised_gaps.get(i, -0.003)
        is_kept = low >= threshold and paid + 1.96 * paid_error <= 1.05
        is_broken = high < threshold or paid - 1.96 * paid_error > 1.05
        note = (
            f"from {low:+.4f} to {high:+.4f} over {orders} orders, the worst {gap[i].min():+.4f}; "
            f"quality {record.quality[i].mean():.4f} at {paid:.3f} ± {paid_error:.3f} of the budget; "
            f"as good as the mixture after {as_good[i]}, ahead of it in all after {ahead[i]}; "
            f"yes: at least {threshold:+.3f}, and at most 1.05 of the budget"
        )
        holds = True if is_kept else False if is_broken else None
        named = f"{item} − best mixture at its dollars, ${label}"
        rows.append(ours(named, mean, holds=holds, digits="+.4f", note=note))
    return rows


def soon(study: World, record: Judged) -> list[list[str]]:
    """Requests until no window of some 100 loses more than 0.01 to the mixture at the budget, as
    :func:`~experiments.router.until` says it; and until, from the first request on, more was gained
    in all than the best mixture gains of the same prompts at the same dollars, and stays so.

    Of each budget, with 95 % intervals: bootstrap over orders.
    """
    rng, orders = np.random.default_rng(36), record.quality.shape[1]
    draws = rng.multinomial(orders, np.full(orders, 1 / orders), 500)
    of_order = np.concatenate([np.ones((1, orders)), draws]) / orders
    window = np.einsum("do,xbom->xbdm", of_order, record.window)
    worse = shortfall(study.both, study.budgets, *window) > 0.01
    rounds, behind = study.rounds, np.zeros_like(worse)
    quality, dollars = np.cumsum(window * np.diff(rounds, prepend=0), axis=-1) / rounds
    for m, n in enumerate(rounds):
        learnt = min(int(n), len(study.train.prompts))
        # Each split comes whole, the training split first
        shares = [learnt / n, 1 - learnt / n]
        mean_quality, mean_dollars = (
            np.average([a.mean(axis=0), b.mean(axis=0)], axis=0, weights=shares)
            for a, b in zip(study.train[1:], study.test[1:], strict=True)
        )
        mixture = frontier(mean_quality, mean_dollars, dollars[..., m])
        behind[..., m] = quality[..., m] < mixture + 1e-6
    return [[_interval(x) for x in after_last(study, fails)] for fails in (worse, behind)]


def _interval(after: np.ndarray) -> str:
    """The first, and in brackets the 95 % of the others."""
    ends = np.quantile(after[1:], [0.025, 0.975], method="inverted_cdf")
    first, low, high = ("never" if np.isinf(x) else f"{x:.0f}" for x in (after[0], *ends))
    return f"{first} ({low} to {high})"


SECOND = "routellm"  # routellm/evals of github.com/lm-sys/RouteLLM at 0b64fda (Apache-2.0): all its CSV files
# Dollars for a token read and written: Mixtral-8x7B, GPT-4-1106
RATES = np.array([[0.6e-6, 0.6e-6], [1e-5, 3e-5]])


def second(options: Options) -> list[Row]:
    """Other prompts and models: is the answer right, of Mixtral-8x7B and GPT-4 on 2,000 and 2,000
    of MMLU and GSM8K.

    Nothing is chosen on them. Dollars are list prices of a prompt's length, four letters a token,
    and of an answer of one token, or of what was written.
    """
    lines: list[tuple[str, list[bool], list[float]]] = []
    for path in sorted((options.data / SECOND).glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                models = [
                    name
                    for name in line
                    if name in ("mistralai/Mixtral-8x7B-Instruct-v0.1", "gpt-4-1106-preview")
                ]
                if len(models) == 2:
                    written = [max(len(line.get(f"{m}_response") or "") / 4, 1.0) for m in models]
                    lines.append((line["prompt"], [line[m] == "True" for m in models], written))
    sample = np.random.default_rng(36).choice(len(lines), 4000, replace=False)
    prompts = [lines[i][0] for i in sample]
    quality = np.array([lines[i][1] for i in sample], float)
    tokens = np.array([[len(lines[i][0]) / 4] * 2 for i in sample])
    dollars = tokens * RATES[:, 0] + np.array([lines[i][2] for i in sample]) * RATES[:, 1]
    halves = [Split(prompts[part], quality[part], dollars[part]) for part in _halves(2000)]
    study = budgeted(*halves)
    vectors = embedded(prompts, options.out / "runs" / "second.npz")
    middle = vectors[:2000].mean(axis=0)
    axes = np.linalg.svd(vectors[:2000] - middle, full_matrices=False)[2][:25]
    x = (vectors - middle) @ axes.T
    x = x / x[:2000].std(axis=0)
    best = frontier(*study.test.means, study.budgets)
    rows = [
        ours(f"second: best mixture at ${label}", quality, digits=".4f")
        for label, quality in zip(study.labels, best, strict=True)
    ]
    player = pacer(study), x, 0, options.pick(4, 32, 300)
    return rows + gaps(options, study, "second: ContextualPacer", *player, promised_gaps={})
