"""What the B-Zoom experiment plays: the two families of the paper, and its eight policies."""

from __future__ import annotations

import functools
import sys
import time
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.running import Options, kept
from jaxbandits.environments import Continuum, cost_valley, reward_hill
from jaxbandits.policies import UCB1, UCBBV1, SinglePhaseBZoom, SinglePhaseZooming

KEY = jax.random.key(16)
BUDGETS = (50_000, 100_000, 500_000)
LAMBDAS = (0.05, 0.1, 0.25, 0.5)
SIZES = (5, 10, 15)
COLUMNS = ("BZ", "Z", "BV1-5", "BV1-10", "BV1-15", "UCB1-5", "UCB1-10", "UCB1-15")
FIXED_COST = 0.5  # of Table 2
CAPACITY = 48


class Cells(NamedTuple):
    """One column of a table: every number ``[budget, λ, instance]`` (Table 2: one λ)."""

    pulls: np.ndarray
    reward: np.ndarray
    regret: np.ndarray
    full: int  # lanes that filled their capacity
    seconds: float


def sizes(options: Options) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    """(budgets, λ, instances of a cell)."""
    budgets = options.pick((2_000, 5_000), (20_000, 50_000, 100_000), BUDGETS)
    return budgets, options.pick((0.1, 0.5), LAMBDAS, LAMBDAS), options.pick(20, 100, 100)


class Design(NamedTuple):
    """All cells of a table as instances of one world, in C order of (budget, λ, instance)."""

    shape: tuple[int, int, int]
    budget: np.ndarray
    lam: np.ndarray
    centre: np.ndarray
    points: np.ndarray  # [instance, 15]: the random points; the first 5 and 10 of them for K = 5 and 10


def design(budgets: tuple[int, ...], lambdas: tuple[float, ...], instances: int, seed: int) -> Design:
    """Cells and their random instances: every cell has instances of its own, as in the paper."""
    shape = (len(budgets), len(lambdas), instances)
    budget, lam, _ = (x.ravel() for x in np.meshgrid(budgets, lambdas, range(instances), indexing="ij"))
    rng = np.random.default_rng(seed)
    return Design(shape, budget.astype(float), lam, rng.random(budget.size), rng.random((budget.size, 15)))


def table1_world(plan: Design) -> Continuum:
    """Cost valleys."""
    return cost_valley(plan.centre, plan.lam)


def ratio_slope(world: Continuum) -> np.ndarray:
    """The largest slope of μ_r/μ_c, ``[instance]``."""
    return world.slopes(lambda reward, cost: reward / cost)


def simulate(policy: Any, world: Any, budget: np.ndarray, shape: tuple[int, ...], **more: Any) -> Cells:
    """One column."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        # Here λ, L and the capacity are chosen on purpose, also where they are wrong.
        warnings.filterwarnings("ignore", message=".*(lipschitz|lam):.*")
        result = jb.simulate(
            policy,
            world,
            jb.TotalBudget(budget, last_pull="forfeits"),
            key=KEY,
            marks=1,
            progress=sys.stderr.isatty(),
            **more,
        )
    seconds = time.perf_counter() - began
    full = int((result.ended == jb.Status.CAPACITY).sum())

    def laid_out(x: Any) -> np.ndarray:
        return np.asarray(x)[0, :, 0, -1].reshape(shape).astype(float)

    return Cells(laid_out(result.rounds), laid_out(result.reward), laid_out(result.regret), full, seconds)


def b_zoom(plan: Design, lipschitz: np.ndarray, capacity: int = CAPACITY) -> SinglePhaseBZoom:
    """B-Zoom with its true λ and a Lipschitz constant per instance."""
    return SinglePhaseBZoom(budget=plan.budget[None], lam=plan.lam[None], lipschitz=lipschitz[None], capacity=capacity)


def zooming(plan: Design, lipschitz: Any, scale: Any = 1.0, capacity: int = CAPACITY) -> SinglePhaseZooming:
    """Zooming as the paper runs it."""
    slope = np.broadcast_to(lipschitz, plan.lam.shape)
    scale = np.broadcast_to(scale, plan.lam.shape)
    return SinglePhaseZooming(
        budget=plan.budget[None], lam=plan.lam[None], lipschitz=slope[None], scale=scale[None], capacity=capacity
    )


def width_factor(lam: np.ndarray) -> np.ndarray:
    """(1/λ)(1 + 1/λ): what "the same radius as B-Zoom" would mean for Zooming."""
    return (1 / lam) * (1 + 1 / lam)


@functools.cache
def table1(options: Options) -> tuple[Design, dict[str, Cells]]:
    """All of Table 1; the items that need it share it, also from an earlier run into the same folder."""
    plan = design(*sizes(options), seed=1)
    world = table1_world(plan)
    zoom, zoomed = b_zoom(plan, ratio_slope(world)), zooming(plan, 0.05)

    def play() -> dict[str, np.ndarray]:
        played: dict[str, Cells] = {}
        for name, policy in (("BZ", zoom), ("Z", zoomed)):
            played[name] = simulate(policy, world, plan.budget, plan.shape)
            say(name, played[name])
        reward, cost = world.means_at(plan.points)
        thrice = np.tile(plan.lam, len(SIZES))[None]
        for name, finite in (("BV1", UCBBV1(min_cost=thrice)), ("UCB1", UCB1())):
            for column, cells in on_random_points(name, finite, reward, cost, plan.budget, plan.shape).items():
                played[column] = cells._replace(regret=against_continuum(world, cells, plan))
        return {f"{column} {field}": np.asarray(x) for column, c in played.items() for field, x in c._asdict().items()}

    depends_on = [*plan[1:], *jax.tree.leaves((zoom, zoomed)), zoom, zoomed, UCBBV1(min_cost=1.0), UCB1(), world]
    found = kept(options, "table1", depends_on, play)
    return plan, {
        column: Cells(
            **{field: found[f"{column} {field}"] for field in ("pulls", "reward", "regret")},
            full=int(found[f"{column} full"]),
            seconds=float(found[f"{column} seconds"]),
        )
        for column in COLUMNS
    }


def bz_alone(options: Options) -> np.ndarray:
    """Pulls of Table 1's column BZ, ``[budget, λ, instance]``, without the other columns: the same numbers."""
    plan = design(*sizes(options), seed=1)
    world = table1_world(plan)
    zoom = b_zoom(plan, ratio_slope(world))

    def play() -> dict[str, np.ndarray]:
        cells = simulate(zoom, world, plan.budget, plan.shape)
        say("BZ", cells)
        return {"pulls": cells.pulls}

    return kept(options, "table1_BZ", [*plan[1:], *jax.tree.leaves(zoom), zoom, world], play)["pulls"]


def on_random_points(
    name: str, policy: Any, reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, shape: tuple[int, ...]
) -> dict[str, Cells]:
    """The columns for K = 5, 10, 15 of the 15 points ``[instance, 15]``, as one world with absent arms."""
    present = np.repeat(np.arange(reward.shape[1])[None] < np.array(SIZES)[:, None], reward.shape[0], axis=0)
    wide_reward, wide_cost = (np.tile(x, (len(SIZES), 1)) for x in (reward, cost))
    finite = jb.environments.FiniteArms.bernoulli(wide_reward, wide_cost, present)
    cells = simulate(policy, finite, np.tile(budget, len(SIZES)), (len(SIZES), *shape))
    say(f"{name}, all K", cells)
    return {
        f"{name}-{k}": Cells(cells.pulls[i], cells.reward[i], cells.regret[i], cells.full, cells.seconds / len(SIZES))
        for i, k in enumerate(SIZES)
    }


def against_continuum(world: Continuum, cells: Cells, plan: Design) -> np.ndarray:
    """Realised regret against the best point of the whole continuum (a finite bandit knows its own best arm only)."""
    reward, cost = world.values()
    best = (reward / cost).max(axis=1).reshape(cells.reward.shape)
    return best * plan.budget.reshape(cells.reward.shape) - cells.reward


def say(name: str, cells: Cells) -> None:
    """One line of progress."""
    rate = cells.pulls.sum() / cells.seconds / 1e6
    full = f", {cells.full} lanes full" if cells.full else ""
    print(
        f"  {name}: {cells.pulls.sum():.3g} rounds in {cells.seconds:.0f} s, {rate:.1f} million a second{full}",
        flush=True,
    )


def table2_world(plan: Design, peak: float) -> Continuum:
    """Reward hills at a fixed cost."""
    return reward_hill(plan.centre, peak=peak, cost=FIXED_COST)


TABLE2 = ("Z", "UCB1-5", "UCB1-10", "UCB1-15")
PRINTED_PEAK, FITTED_PEAK = 0.2, 0.1


@functools.cache
def table2(options: Options, peak: float, slope: float) -> tuple[Design, dict[str, Cells]]:
    """All of Table 2 with a peak of the reward and a Lipschitz constant for Zooming."""
    budgets, _, instances = sizes(options)
    plan = design(budgets, (FIXED_COST,), instances, seed=2)
    world = table2_world(plan, peak)
    played: dict[str, Cells] = {}
    played["Z"] = simulate(zooming(plan, slope), world, plan.budget, plan.shape)
    say(f"peak {peak:g}, Z", played["Z"])
    reward, _ = world.means_at(plan.points)
    # Every pull costs 0.5: as many rounds as a budget of B/0.5 with a cost of 1.
    played |= on_random_points("UCB1", UCB1(), reward, np.ones_like(reward), plan.budget / FIXED_COST, plan.shape)
    return plan, played
