"""What the ω-UCB experiment plays, as declarations: its settings, its policies, its sizes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.running import Options
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.scaled_arms import scaled_means
from jaxbandits.environments import FiniteArms, random_bernoulli, random_beta, random_generalised_bernoulli
from jaxbandits.environments.finite.random_instances import uniforms
from jaxbandits.policies import (
    CUCB,
    IUCB,
    MUCB,
    UCBBV1,
    BGreedy,
    BudgetedThompson,
    BudgetUCB,
    EpsilonFirst,
    FractionalKUBE,
    OmegaStarUCB,
    OmegaUCB,
    PDBwK,
    PDBwKWithTime,
    UCBSCPlus,
)

KEY = jax.random.key(4)
STEPS = 1.5e5  # the budget is this many times the smallest mean cost
RHOS = 2.0 ** np.arange(-6, 2)  # the grid of the sensitivity study
MARKS = np.unique(np.round(np.append(np.geomspace(0.01, 1, 21), 0.8), 6))
SHOWN = (0.1, 0.316228, 1.0)  # shares of the budget at which statements are tested


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Instances that run in one compile. ``campaign`` and ``draw`` say where each instance belongs."""

    arms: FiniteArms
    ids: np.ndarray
    campaign: np.ndarray
    draw: np.ndarray

    @property
    def least_cost(self) -> np.ndarray:
        """min_k μ^c_k, ``[instance]``."""
        return np.nanmin(self.arms.values()[1], axis=1)

    @property
    def width(self) -> np.ndarray:
        """K, ``[instance]``."""
        return np.asarray(self.arms.present).sum(axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """A line of the paper's Table 1.

    Attributes:
        name: the paper's name.
        make: its instances at a size of the experiment.
        over: what is sampled: random instances, or runs of given campaigns.
        runs: independent runs of each instance.
        policies: what is played there, names of :data:`FAMILIES`.
        published_top: the largest regret on the axis of the published figure.
    """

    name: str
    make: Callable[[Options], list[Part]]
    policies: tuple[str, ...]
    over: str = "instance"
    runs: Callable[[Options, str], int] = lambda options, family: 1
    published_top: float = np.nan


@dataclasses.dataclass(frozen=True)
class Family:
    """A policy with all its settings, played together."""

    labels: tuple[str, ...]
    make: Callable[[Part, Options], Any]


def fraction(rho: float) -> str:
    """ρ as in the paper: 1/8, 1, 2."""
    return f"1/{round(1 / rho)}" if rho < 1 else f"{rho:g}"


def omega(rho: float) -> str:
    """The name of ω-UCB in tables and legends."""
    return f"ω-UCB, ρ = {fraction(rho)}"


def omega_star(rho: float) -> str:
    """The name of ω*-UCB."""
    return f"ω*-UCB, ρ = {fraction(rho)}"


FAMILIES: dict[str, Family] = {
    "ω-UCB": Family(tuple(omega(r) for r in RHOS), lambda part, options: OmegaUCB(rho=RHOS)),
    "ω*-UCB": Family(tuple(omega_star(r) for r in RHOS), lambda part, options: OmegaStarUCB(rho=RHOS)),
    "ω-UCB, two ρ": Family((omega(0.25), omega(1)), lambda part, options: OmegaUCB(rho=np.array([0.25, 1.0]))),
    "ω*-UCB, two ρ": Family(
        (omega_star(0.25), omega_star(1)), lambda part, options: OmegaStarUCB(rho=np.array([0.25, 1.0]))
    ),
    "m-UCB": Family(("m-UCB",), lambda part, options: MUCB()),
    "c-UCB": Family(("c-UCB",), lambda part, options: CUCB()),
    "i-UCB": Family(("i-UCB",), lambda part, options: IUCB()),
    "b-greedy": Family(("b-greedy",), lambda part, options: BGreedy()),
    # as in the reference code it is handed the true minimum mean cost
    "Budget-UCB": Family(("Budget-UCB",), lambda part, options: BudgetUCB(min_cost=part.least_cost[None])),
    "UCB-SC+": Family(("UCB-SC+",), lambda part, options: UCBSCPlus()),
    "BTS": Family(("BTS",), lambda part, options: BudgetedThompson()),
    "ε-first": Family(("ε-first",), lambda part, options: EpsilonFirst()),
    "fractional KUBE": Family(("fractional KUBE",), lambda part, options: FractionalKUBE()),
    "UCB-BV1": Family(("UCB-BV1",), lambda part, options: UCBBV1(min_cost=part.least_cost[None])),
    "PD-BwK": Family(("PD-BwK",), lambda part, options: PDBwK.for_budget(steps(options) * part.least_cost, part.width)),
    "PD-BwK with time": Family(("PD-BwK with time",), lambda part, options: _with_time(part, options)),
}
OLDER = ("ε-first", "fractional KUBE", "UCB-BV1", "PD-BwK", "PD-BwK with time")
COMPETITORS = ("m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+", "BTS")
SYNTHETIC = ("ω-UCB", "ω*-UCB", *COMPETITORS)
ADS = ("ω-UCB, two ρ", "ω*-UCB, two ρ", *COMPETITORS)

_DRAWS = {
    "S-Br": (random_bernoulli, (2500, 8000, 14000)),
    "S-GBr": (random_generalised_bernoulli, (2000, 4000, 4000)),
    "S-Bt": (random_beta, (1000, 7000, 12000)),
}


def _random(draw: Callable[..., FiniteArms], arms: int) -> Callable[[Options], list[Part]]:
    def make(options: Options) -> list[Part]:
        count = options.pick(30, 100, 100)
        ids = np.arange(count)
        return [Part(draw(KEY, instances=count, arms=arms), ids, np.zeros(count, int), ids)]

    return make


def ads_file(options: Options) -> Path:
    """The Facebook ads, which are not part of the project."""
    return options.data / "facebook" / "data.csv"


WIDTHS = (9, 38, 93)  # campaigns of similar size run together: few compiles, little padding


def _ads(beta: bool) -> Callable[[Options], list[Part]]:
    def make(options: Options) -> list[Part]:
        campaigns = read_arms(ads_file(options)).instances
        draws = options.pick(4, 20, 20) if beta else 1
        parts, above = [], 0
        for width in WIDTHS[: options.pick(1, 3, 3)]:
            some = [i for i, campaign in enumerate(campaigns) if above < len(campaign.arms) <= width]
            above = width
            campaign, draw = np.repeat(some, draws), np.tile(np.arange(draws), len(some))
            reward, cost, present = scaled_means([campaigns[i] for i in campaign], width)
            arms = _beta_ads(reward, cost, present) if beta else FiniteArms.bernoulli(reward, cost, present)
            parts.append(Part(arms, 1000 * campaign + draw, campaign, draw))
        return parts

    return make


def _beta_ads(reward: np.ndarray, cost: np.ndarray, present: np.ndarray) -> FiniteArms:
    """Beta laws with 0.99 times the means; one shape parameter is drawn from U(0, 5), the other follows.

    As in the reference code, the drawn parameter is the larger of the two: β for means up to one half, else α.
    """
    instances, width = reward.shape
    u = 5 * uniforms(KEY, instances, width, 2)
    shapes = []
    for mean, kept in ((0.99 * reward, u[0]), (0.99 * cost, u[1])):
        low = mean <= 0.5
        alpha = np.where(low, kept * mean / (1 - mean), kept)
        shapes += [alpha, np.where(low, kept, kept * (1 / mean - 1))]
    reward_alpha, reward_beta, cost_alpha, cost_beta = shapes
    return FiniteArms.beta(reward_alpha, reward_beta, cost_alpha, cost_beta, present)


def _ad_runs(beta: bool) -> Callable[[Options, str], int]:
    """100 repetitions; with Beta arms 5 of each of 20 draws of their shapes. BTS, which takes as long as all others
    together, has 20."""

    def runs(options: Options, family: str) -> int:
        many = options.pick(4, 20, 20 if family == "BTS" else 100)
        return many // options.pick(4, 20, 20) if beta else many

    return runs


SETTINGS: dict[str, Setting] = {
    f"{law}-{arms}": Setting(f"{law}-{arms}", _random(draw, arms), SYNTHETIC, published_top=top)
    for law, (draw, tops) in _DRAWS.items()
    for arms, top in zip((10, 50, 100), tops, strict=True)
} | {
    name: Setting(name, _ads(beta), ADS, over="replicate", runs=_ad_runs(beta), published_top=1500)
    for name, beta in (("FB-Br", False), ("FB-Bt", True))
}

CODED = "S-GBr-10, gbr_mean_bug"  # as the reference code states its means: 0.8 times the true ones
SETTINGS[CODED] = Setting(
    CODED, _random(functools.partial(random_generalised_bernoulli, gbr_mean_bug=True), 10), ("ω-UCB, two ρ",)
)


LAWS = {"S-Br": "Bernoulli", "S-GBr": "generalised Bernoulli", "S-Bt": "Beta"}


def of_size(law: str, options: Options) -> list[str]:
    """The settings of a law that are played at this size."""
    return [f"{law}-{arms}" for arms in options.pick((10,), (10, 50), (10, 50, 100))]


def steps(options: Options) -> float:
    """Budget over smallest mean cost."""
    return options.pick(3e3, 1.5e4, STEPS)


def _with_time(part: Part, options: Options) -> PDBwKWithTime:
    """With T = B / min μ^c: as many rounds as the cheapest arm alone would take."""
    return PDBwKWithTime.for_budget(steps(options) * part.least_cost, part.width, steps(options))


def budget(part: Part, options: Options) -> jb.TotalBudget:
    """The last pull counts, as in the reference code."""
    return jb.TotalBudget(steps(options) * part.least_cost, last_pull="counts")
