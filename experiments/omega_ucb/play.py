"""What the ω-UCB experiment plays, as declarations: settings, policies, sizes; and curves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

import jaxbandits as jb
from experiments.common import Options, Row, row, simulated, swept
from experiments.omega_ucb.ads import read_ads
from jaxbandits.apps.comparison.worlds import scaled_means
from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.environments import (
    FiniteArms,
    random_bernoulli,
    random_beta,
    random_generalised_bernoulli,
)
from jaxbandits.environments.finite import uniforms
from jaxbandits.policies.base import money_left
from jaxbandits.policies.wrappers import Around

SEED = 4
KEY = jax.random.key(SEED)
STEPS = 1.5e5  # the budget is this many times the smallest mean cost
RHOS = 2.0 ** np.arange(-6, 2)  # the grid of the sensitivity study
TWO = np.array([0.25, 1.0])
MARKS = np.unique(np.round(np.append(np.geomspace(0.01, 1, 21), 0.8), 6))
SHOWN = (0.1, 0.316228, 1.0)  # shares of the budget at which statements are tested
ADS_FILE = "facebook/data.csv"  # in the folder of real data
WIDTHS = (9, 38, 93)  # campaigns of similar size run together: few compiles, little padding


def fraction(rho: float) -> str:
    """ρ as in the paper: 1/8, 1, 2."""
    return f"1/{round(1 / rho)}" if rho < 1 else f"{rho:g}"


def omega(rho: float) -> str:
    """The name of ω-UCB in tables and legends."""
    return f"ω-UCB, ρ = {fraction(rho)}"


def omega_star(rho: float) -> str:
    """The name of ω*-UCB."""
    return f"ω*-UCB, ρ = {fraction(rho)}"


OLDER = ("ε-first", "fractional KUBE", "UCB-BV1", "PD-BwK", "PD-BwK with time")
COMPETITORS = ("m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+", "BTS")
# What is played together; a policy with several ρ has a label for each.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "omegas": {"ω-UCB": tuple(map(omega, RHOS)), "ω*-UCB": tuple(map(omega_star, RHOS))},
    "two ρ": {"ω-UCB, two ρ": tuple(map(omega, TWO)), "ω*-UCB, two ρ": tuple(map(omega_star, TWO))},
    "competitors": {name: (name,) for name in COMPETITORS[:-1]},
    "BTS": {"BTS": ("BTS",)},
    "older": {name: (name,) for name in OLDER},
    "constant": {"ω-UCB, α = 0.05": ("ω-UCB, α = 0.05",)},
    "KL": {"KL-UCB-SC+": ("KL-UCB-SC+",)},
}
SYNTHETIC, ADS = ("omegas", "competitors", "BTS"), ("two ρ", "competitors", "BTS")


@jb.pytree
class ConstantAlpha(jb.policies.OmegaUCB):
    """ω-UCB with intervals of a constant level: z is the quantile of α = 0.05 (§4.1)."""

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """Ω at the time at which z = √(2ρ ln t) is 1.96."""
        return super().score(
            arms._replace(t=jnp.full_like(arms.t, jnp.exp(1.959964**2 / (2 * self.rho))))
        )


@jb.pytree
class ToldOfTime(Around):
    """The inner policy plans for T rounds, which end nothing: time is a resource to it alone."""

    policy: jb.Policy = jb.leaf()
    horizon: Any = jb.leaf(integer=True, at_least=1)

    def select(self, state: Any, key: jax.Array, view: jb.View) -> tuple[Any, jax.Array]:
        time = ticks.count(self.horizon - view.round + 1)
        left = jax.tree.map(lambda x, rounds: jnp.append(x, rounds), money_left(view), time)
        return self.policy.select(state, key, view._replace(left=left))  # type: ignore[return-value]


def paper_policies(arms: FiniteArms, options: Options) -> dict[str, Any]:
    """All policies by name, as they are played on these arms."""
    cheapest, width = least_cost(arms), np.asarray(arms.present).sum(axis=1)
    one_cost = jb.policies.PDBwK.for_budget(steps(options) * cheapest, width)
    return {
        "ω-UCB": jb.policies.OmegaUCB(rho=RHOS),
        "ω*-UCB": jb.policies.OmegaStarUCB(rho=RHOS),
        "ω-UCB, two ρ": jb.policies.OmegaUCB(rho=TWO),
        "ω*-UCB, two ρ": jb.policies.OmegaStarUCB(rho=TWO),
        "m-UCB": jb.policies.MUCB(),
        "c-UCB": jb.policies.CUCB(),
        "i-UCB": jb.policies.IUCB(),
        "b-greedy": jb.policies.BGreedy(),
        # Handed the true minimum mean cost, as in the reference code
        "Budget-UCB": jb.policies.BudgetUCB(min_cost=cheapest[None]),
        "UCB-SC+": jb.policies.UCBSCPlus(),
        "KL-UCB-SC+": jb.policies.KLUCBSCPlus(),
        "ω-UCB, α = 0.05": ConstantAlpha(),
        "BTS": jb.policies.BudgetedThompson(),
        "ε-first": jb.policies.EpsilonFirst(),
        "fractional KUBE": jb.policies.FractionalKUBE(),
        "UCB-BV1": jb.policies.UCBBV1(min_cost=cheapest[None]),
        "PD-BwK": one_cost,
        # T = B / min μ^c: as many rounds as the cheapest arm alone would take
        "PD-BwK with time": ToldOfTime(
            jb.policies.PrimalDualBwK(jb.policies.RadBounds(one_cost.c_rad)), horizon=steps(options)
        ),
    }


class Part(NamedTuple):
    """Instances that run in one program, with the campaign and the draw of the laws of each."""

    arms: FiniteArms
    campaign: np.ndarray
    draw: np.ndarray


@dataclasses.dataclass(frozen=True)
class Setting:
    """A line of the paper's Table 1."""

    name: str
    published_top: float = np.nan  # the largest regret on the axis of the published figure
    groups: tuple[str, ...] = SYNTHETIC  # what is played there, names of GROUPS
    draw: Callable[..., FiniteArms] | None = (
        None  # random instances, (key, instances=, arms=); None: the ads
    )
    arms: int = 0  # K of random instances
    beta: bool = False  # Beta ads?

    @property
    def over(self) -> str:
        """The dimension that is sampled: random instances, or runs of given campaigns."""
        return "instance" if self.draw else "replicate"


LAWS = {"S-Br": "Bernoulli", "S-GBr": "generalised Bernoulli", "S-Bt": "Beta"}
_DRAWS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "S-Br": (random_bernoulli, (2500, 8000, 14000)),
    "S-GBr": (random_generalised_bernoulli, (2000, 4000, 4000)),
    "S-Bt": (random_beta, (1000, 7000, 12000)),
}
CODED = "S-GBr-10, gbr_mean_bug"  # as the reference code states its means: 0.8 times the true ones
_ALL = [
    *(
        Setting(f"{law}-{arms}", top, draw=draw, arms=arms)
        for law, (draw, tops) in _DRAWS.items()
        for arms, top in zip((10, 50, 100), tops, strict=True)
    ),
    Setting("FB-Br", 1500, ADS),
    Setting("FB-Bt", 1500, ADS, beta=True),
    Setting(
        CODED,
        groups=("two ρ",),
        draw=functools.partial(random_generalised_bernoulli, gbr_mean_bug=True),
        arms=10,
    ),
]
SETTINGS = {setting.name: setting for setting in _ALL}


def of_size(law: str, options: Options) -> list[str]:
    """The settings of a law that are played at this size."""
    return [f"{law}-{arms}" for arms in options.pick((10,), (10, 50), (10, 50, 100))]


def steps(options: Options) -> float:
    """Budget over smallest mean cost."""
    return options.pick(3e3, 1.5e4, STEPS)


def least_cost(arms: FiniteArms) -> np.ndarray:
    """min_k μ^c_k, ``[instance]``."""
    return np.nanmin(arms.values()[1], axis=1)


def budget(arms: FiniteArms, options: Options) -> jb.TotalBudget:
    """The budget of each instance; the last pull counts, as in the reference code."""
    return jb.TotalBudget(steps(options) * least_cost(arms), last_pull="counts")


@functools.cache
def _ads(beta: bool, options: Options) -> list[Part]:
    campaigns = read_ads(options.data / ADS_FILE)[0]
    draws = options.pick(4, 20, 20) if beta else 1
    parts, above = [], 0
    for width in WIDTHS[: options.pick(1, 3, 3)]:
        selection = [
            i for i, campaign in enumerate(campaigns) if above < len(campaign.arms) <= width
        ]
        above = width
        campaign, draw = np.repeat(selection, draws), np.tile(np.arange(draws), len(selection))
        reward, cost, present = scaled_means([campaigns[i] for i in campaign], width)
        arms = (
            _beta_ads(reward, cost, present)
            if beta
            else FiniteArms.bernoulli(reward, cost, present)
        )
        parts.append(Part(arms, campaign, draw))
    return parts


def _beta_ads(reward: np.ndarray, cost: np.ndarray, present: np.ndarray) -> FiniteArms:
    """Beta laws with 0.99 times the means; one shape parameter is drawn from U(0, 5), the other
    follows.

    As in the reference code, the drawn parameter is the larger of the two: β for means up to one
    half, else α.
    """
    instances, width = reward.shape
    u = 5 * uniforms(KEY, instances, width, 2)
    shapes = []
    for mean, shape in ((0.99 * reward, u[0]), (0.99 * cost, u[1])):
        low = mean <= 0.5
        alpha = np.where(low, shape * mean / (1 - mean), shape)
        shapes += [alpha, np.where(low, shape, shape * (1 / mean - 1))]
    reward_alpha, reward_beta, cost_alpha, cost_beta = shapes
    return FiniteArms.beta(reward_alpha, reward_beta, cost_alpha, cost_beta, present)


class Curves(NamedTuple):
    """The curves of the requested policies of a setting: arrays ``(instance, replicate, mark)`` by
    policy.

    ``regret`` is in units of reward, ``share`` that of the best arm's reward for the same budget.
    A random instance has one run; of a given campaign ``replicate`` counts the runs, or the draws
    of its laws.
    """

    setting: Setting
    regret: dict[str, xarray.DataArray]
    share: dict[str, xarray.DataArray]

    @property
    def over(self) -> str:
        """The dimension that was sampled."""
        return self.setting.over

    def at(self, share: float, *names: str) -> xarray.DataArray:
        """Regret at a share of the budget: of one policy, or of several on their common runs."""
        samples = [self.regret[name].sel(mark=share, drop=True) for name in names]
        if len(names) == 1:
            return samples[0]
        aligned = xarray.concat(
            samples, "policy", join="inner", coords="minimal", compat="override"
        )
        return aligned.assign_coords(policy=list(names))


def curves(setting: str, options: Options, groups: Iterable[str] | None = None) -> Curves:
    """The curves of some groups of a setting, by default of all, played once or read from disk."""
    regret: dict[str, xarray.DataArray] = {}
    share: dict[str, xarray.DataArray] = {}
    for group in groups or SETTINGS[setting].groups:
        labels = [label for labels in GROUPS[group].values() for label in labels]
        values, possible, _ = _outcome(setting, group, options)
        for label, x in zip(labels, values, strict=True):
            coords = {
                "instance": np.arange(x.shape[0]),
                "replicate": np.arange(x.shape[1]),
                "mark": MARKS,
            }
            regret[label] = xarray.DataArray(x, coords, ("instance", "replicate", "mark"))
            share[label] = regret[label] / possible[..., None]
    return Curves(SETTINGS[setting], regret, share)


def seconds_row(
    prefix: str,
    settings: Iterable[str],
    options: Options,
    groups: Iterable[str] | None = None,
    note: str = "",
) -> Row:
    """Wall-clock seconds and rounds of a figure's simulations; runs on disk were only read."""
    cost = [
        _outcome(s, group, options)[2] for s in settings for group in groups or SETTINGS[s].groups
    ]
    seconds, rounds = (sum(run[quantity] for run in cost) for quantity in ("seconds", "rounds"))
    item = f"{prefix}seconds of simulation, compile included"
    return row(item, seconds, note=f"{rounds:.3g} rounds{note}", digits=".0f")


Outcome = tuple[np.ndarray, np.ndarray, dict[str, float]]


@functools.cache
def _outcome(setting: str, group: str, options: Options) -> Outcome:
    """(regret ``[label, instance, replicate, mark]``, the best arm's reward, costs)."""
    configuration = SETTINGS[setting]
    if configuration.draw is None:
        return _on_ads(configuration, group, options)
    world = configuration.draw(KEY, instances=options.pick(30, 100, 100), arms=configuration.arms)
    learners = paper_policies(world, options)
    group_policies = {name: learners[name] for name in GROUPS[group]}
    fields = {"policies": group_policies, "constraint": budget(world, options), "marks": MARKS}
    name = f"{setting} {group}"
    data = swept(options, name, environments=world, seed=SEED, over="instance", **fields)
    reward, cost = world.values()
    best = (reward / cost).max(axis=1) * steps(options) * least_cost(world)
    return data["regret"].values[:, 0, 0], best[:, None], data.attrs


def _on_ads(setting: Setting, group: str, options: Options) -> Outcome:
    """100 repetitions, with Beta arms 5 of each of 20 draws; BTS has 20, KL-UCB-SC+ 10."""
    parts, total = _ads(setting.beta, options), {"seconds": 0.0, "rounds": 0.0}
    campaigns = np.unique(np.concatenate([part.campaign for part in parts]))
    draws = 1 + max(int(part.draw.max()) for part in parts)
    runs = options.pick(4, 20, {"BTS": 20, "KL": 10}.get(group, 100)) // (
        draws if setting.beta else 1
    )
    labels = sum(len(labels) for labels in GROUPS[group].values())
    regret = np.zeros((labels, campaigns.size, draws, runs, MARKS.size))
    possible = np.zeros((campaigns.size, draws))
    for i, (arms, campaign, draw) in enumerate(parts):
        learners = paper_policies(arms, options)
        group_policies = [learners[name] for name in GROUPS[group]]
        name = f"{setting.name} {group} {i}"
        keywords: dict[str, Any] = {"key": KEY, "replicates": runs, "marks": MARKS}
        keywords["instance_ids"] = (
            1000 * campaign + draw
        ).tolist()  # which ads are played together must change nothing
        result, cost = simulated(
            options, name, group_policies, arms, budget(arms, options), **keywords
        )
        place = np.searchsorted(campaigns, campaign)
        regret[:, place, draw] = result.regret.values
        possible[place, draw] = result.best_rate * steps(options) * least_cost(arms)
        total = {quantity: total[quantity] + cost[quantity] for quantity in total}
    # Runs of one draw of the laws are not independent of each other: their mean is one observation
    if draws > 1:
        return regret.mean(axis=3), possible, total
    return regret[:, :, 0], possible, total
