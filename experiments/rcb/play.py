"""What the RCB study plays: reservoirs, policies by name, and regrets with their local exponents.

Points that differ in β, budget or belief are instances of one call: they share a compiled program.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from jaxbandits.environments import Reservoir, bernoulli_outcome, uniform_outcome
from jaxbandits.policies import (
    RCB,
    ArmIncreasing,
    IndexPolicy,
    OmegaStarUCB,
    OmegaUCB,
    SampledArms,
    UCBVRatio,
    UCBVReward,
    arms_to_sample,
    room_needed,
)

ARMS_KEY, RUN_KEY = jax.random.key(15), jax.random.key(16)
BEST, LEAST = 2.0, 0.1  # ρ*, λ
BETAS = (0.5, 1.0, 2.0)
FORMULAS: dict[str, IndexPolicy] = {
    "RCB": RCB(),
    "UCB-V (reward)": UCBVReward(),
    "UCB-V (ratio)": UCBVRatio(),
    "ω-UCB": OmegaUCB(),
    "ω*-UCB": OmegaStarUCB(),
}
OUTCOMES = {"Bernoulli": bernoulli_outcome, "uniform": uniform_outcome}
CLOCK: dict[str, list[float]] = {}  # name: [wall seconds, processor seconds, rounds]
SHARES = (0.01, 0.1, 1.0)


class Point(NamedTuple):
    """One place of the study: a reservoir's β, a budget, how often."""

    beta: float
    budget: float
    replicates: int


class Lanes(NamedTuple):
    """The runs of a point: arrays ``[replicate, mark]`` or ``[replicate]``."""

    budget: np.ndarray  # [mark]: what may be spent by then
    regret: np.ndarray
    infinite: np.ndarray  # share of all pulls made while the pulled arm's index was infinite (RCB, 𝓔 = ln t)
    opened: np.ndarray  # arms pulled

    @property
    def last(self) -> np.ndarray:
        """Regret at the end."""
        return self.regret[:, -1]


def sampled(formula: str, budget: Any, believed: Any, multiplier: Any = 1.0) -> SampledArms:
    """K arms by the rule; UCB-V on rewards takes the horizon B/λ for its own, as it knows no costs."""
    horizon = np.asarray(budget) / LEAST if formula == "UCB-V (reward)" else budget
    return SampledArms(FORMULAS[formula], np.atleast_2d(arms_to_sample(horizon, believed, multiplier)))


def increasing(formula: str, believed: Any) -> ArmIncreasing:
    """The arm-increasing rule."""
    return ArmIncreasing(FORMULAS[formula], np.atleast_2d(believed))


def play(
    name: str,
    points: Sequence[Point],
    policy: Callable[[np.ndarray, np.ndarray], Any],
    options: Options,
    *,
    outcomes: str = "Bernoulli",
    shares: Sequence[float] = SHARES,
    arms: Reservoir | None = None,
    rounds: float = 7.0,
) -> list[list[Lanes]]:
    """By setting, by point. ``policy``, or a list, is made from the points' β and budgets, ``[1, instance]`` each.

    Several policies play at once: one compiles while another plays. ``rounds`` is how many a unit of budget may
    pay for: the room of growing sets (doubled if that was not enough).
    """
    counts = [point.replicates for point in points]
    beta = np.repeat([point.beta for point in points], counts)
    budget = np.repeat([point.budget for point in points], counts)
    made = policy(beta[None, :], budget[None, :])
    if arms is None:
        arms = Reservoir.ratio(
            ARMS_KEY, instances=beta.size, capacity=1, beta=beta, best_ratio=BEST, least_cost=LEAST,
            outcomes=OUTCOMES[outcomes],
        )  # fmt: skip
    result, room = jb.rerun_larger(
        lambda room: _timed(name, made, arms.with_capacity(room), budget, shares, options),
        _room(made, budget, rounds, options),
        most=1 << 20,
    )
    found = _lanes(result, arms.with_capacity(room), budget, np.cumsum([0, *counts]))
    if options.full:  # many minutes may lie between here and the summary
        for point, lanes in zip(points, found[0], strict=True):
            mean, se = mean_se(lanes.regret)
            told = f"B {lanes.budget.tolist()}, R {np.round(mean, 1).tolist()} ± {np.round(se, 2).tolist()}"
            print(f"    {point}: {told}")
    return found


def _room(policies: Any, budget: np.ndarray, rounds: float, options: Options) -> int:
    """K, or what the increasing rule will need."""
    needed = 0
    for policy in policies if isinstance(policies, list) else [policies]:
        if isinstance(policy, SampledArms):
            needed = max(needed, int(np.max(policy.arms)))
            continue
        beta = np.broadcast_to(policy.beta, np.broadcast_shapes(np.shape(policy.beta), (1, budget.size)))
        pairs = zip(np.tile(budget, len(beta)), beta.ravel(), strict=True)
        needed = max(needed, *(room_needed(rounds * b, x) for b, x in pairs))
    # In a quick run all calls share two programs; else room is a multiple of 8.
    return (128 if needed <= 128 else 320 if needed <= 320 else needed) if options.quick else -(-needed // 8) * 8


def _timed(
    name: str, policies: Any, arms: Reservoir, budget: np.ndarray, shares: Sequence[float], options: Options
) -> jb.Result:
    clock, processor = time.perf_counter(), time.process_time()
    result = jb.simulate(
        policies,
        arms,
        jb.TotalBudget(budget, last_pull="forfeits"),
        key=RUN_KEY,
        marks=tuple(shares),
        slots=64 if options.quick else None,
        progress=sys.stderr.isatty(),
    )
    took = time.perf_counter() - clock, time.process_time() - processor
    count = float(result.ledger["rounds"][..., -1].sum())
    CLOCK[name] = [a + b for a, b in zip(CLOCK.get(name, [0.0] * 3), (*took, count), strict=True)]
    if options.full:
        print(f"  {name}, {arms.capacity} arms: {count:.3g} rounds in {took[0]:.0f} s", flush=True)
    return result


def timings() -> list[Row]:
    """How fast each policy was."""
    found = []
    for name, (wall, processor, rounds) in CLOCK.items():
        note = f"{rounds:.3g} rounds, {1e9 * processor / rounds:.0f} ns of processor a round, compile included"
        found.append(row(f"seconds: {name}", wall, note=note, digits=".1f"))
        print(f"  {name}: {wall:.1f} s, {note}", flush=True)
    return found


def _lanes(result: jb.Result, arms: Reservoir, budget: np.ndarray, ends: np.ndarray) -> list[list[Lanes]]:
    full = result.ended == jb.Status.CAPACITY
    assert not full.any(), f"{full.sum()} lanes were full"
    _, cost = arms.first_arms(arms.capacity)
    found: list[list[Lanes]] = []
    for i in range(len(result.settings)):
        pulls, rounds = result.final["pulls"][i, :, 0], result.ledger["rounds"][i, :, 0, -1]
        needed = np.log(rounds[:, None]) / (2 * cost**2)  # pulls until c̄ > √(ln t / 2n), at the end
        infinite = np.minimum(pulls, needed).sum(axis=1) / pulls.sum(axis=1)
        opened = (pulls > 0).sum(axis=1)
        regret = result.regret.values[i, :, 0]
        spent = budget[:, None] * np.asarray(result.marks)
        found.append([Lanes(spent[a], regret[a:b], infinite[a:b], opened[a:b]) for a, b in itertools.pairwise(ends)])
    return found
