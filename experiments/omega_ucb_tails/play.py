"""What is played: random instances in blocks of 200, each with keys of its own, so that a run can stop between two."""

from __future__ import annotations

import dataclasses
import inspect
import time
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.running import Options, kept
from experiments.omega_ucb.specs import STEPS
from jaxbandits.environments import FiniteArms, random_bernoulli, random_beta, random_generalised_bernoulli
from jaxbandits.environments.finite import random_instances
from jaxbandits.policies import (
    CUCB,
    IUCB,
    KLUCBSC,
    KUBE,
    MRCB,
    MUCB,
    UCBB2,
    UCBBV2,
    UCBSC,
    BGreedy,
    BudgetedThompson,
    BudgetUCB,
    FractionalKUBE,
    KLUCBSCPlus,
    OmegaStarUCB,
    OmegaUCB,
    UCBSCPlus,
)

RHOS = 2.0 ** np.linspace(-6, 1.5, 16)
FIVE = 2.0 ** np.arange(-4, 1)  # for ten times the paper's budget
LAWS: dict[str, Any] = {"S-Br": random_bernoulli, "S-GBr": random_generalised_bernoulli, "S-Bt": random_beta}
WIDTHS = (10, 50, 100)
SETTINGS = tuple(f"{law}-{arms}" for law in LAWS for arms in WIDTHS)
BLOCK = 200
TWO = (0.25, 1.0)  # of ω*-UCB
POLICIES: dict[str, Any] = {
    "BTS": BudgetedThompson(),
    "m-UCB": MUCB(),
    "c-UCB": CUCB(),
    "i-UCB": IUCB(),
    "b-greedy": BGreedy(),
    "UCB-SC+": UCBSCPlus(),
    "UCB-SC": UCBSC(),
    "KL-UCB-SC+": KLUCBSCPlus(),
    "KL-UCB-SC": KLUCBSC(),
    "UCB-B2": UCBB2(),
    "UCB-BV2": UCBBV2(),
    "KUBE": KUBE(),
    "fractional KUBE": FractionalKUBE(),
    "MRCB, L = 1": MRCB(pulls=1),
    "MRCB, L = 2": MRCB(pulls=2),
}
REST = ("c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")  # of the paper's competitors
SELDOM = ("UCB-SC", "KL-UCB-SC+", "KL-UCB-SC", "UCB-B2", "UCB-BV2", "KUBE", "fractional KUBE", "MRCB, L = 1",
          "MRCB, L = 2")  # fmt: skip
COSTLY = 0.05  # a wrong arm is a costly one if its ratio is this much below the best one's


@dataclasses.dataclass(frozen=True)
class Job:
    """A policy with all its settings, in one setting of the paper, at one budget.

    Attributes:
        setting: the paper's name, ``S-Br-10`` to ``S-Bt-100``.
        policy: ``ω-UCB``, ``ω*-UCB``, ``Budget-UCB`` (which is told the least mean cost) or a name of :data:`POLICIES`.
        decade: the budget, in powers of ten over the paper's 1.5·10⁵ · min μ^c: −1, 0 or 1.
    """

    setting: str
    policy: str
    decade: int

    @property
    def rhos(self) -> tuple[float, ...]:
        """Values of ρ; NaN for a policy without."""
        if self.policy == "ω*-UCB":
            return TWO
        if self.policy != "ω-UCB":
            return (np.nan,)
        return tuple(map(float, FIVE if self.decade > 0 else RHOS))

    def made(self, least_cost: Any) -> Any:
        """The policy, with all its settings; of Budget-UCB λ is the least mean cost ``[1, instance]``, as in the
        reference code."""
        if self.policy == "Budget-UCB":
            return BudgetUCB(min_cost=least_cost)
        of_rho = {"ω-UCB": OmegaUCB, "ω*-UCB": OmegaStarUCB}.get(self.policy)
        return of_rho(rho=np.array(self.rhos, np.float32)) if of_rho else POLICIES[self.policy]

    def blocks(self, options: Options) -> int:
        """How many blocks of instances are played."""
        if self.policy == "ω-UCB":
            above = 8 if self.setting == "S-Br-10" else 2
            return options.pick(1, 1, above if self.decade > 0 else 8 if self.setting.endswith("-100") else 16)
        if self.policy == "m-UCB":
            return options.pick(1, 1, 8 if self.decade == 0 else 4)
        return options.pick(1, 1, 2 if self.policy == "ω*-UCB" else 1)


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """What is kept of every run of a job: arrays ``[setting, instance]``.

    Attributes:
        regret: pseudo-regret when the budget is spent, units of reward.
        share: the same as a share of what the best arm would have earned.
        wrong: was more than half of the budget spent on one arm that is not the best (a lock-in)?
        costly: and is that arm's ratio at least 5 % below the best one's?
        rounds, seconds: of all of them together.
    """

    regret: np.ndarray
    share: np.ndarray
    wrong: np.ndarray
    costly: np.ndarray
    rounds: float
    seconds: float


def played(job: Job, options: Options) -> Outcomes:
    """All blocks of a job; those that the output folder has are not played again."""
    parts = [_block(job, block, options) for block in range(job.blocks(options))]
    regret, share, wrong, costly = (
        np.concatenate([part[name] for part in parts], axis=1) for name in ("regret", "share", "wrong", "costly")
    )
    rounds, seconds = (float(sum(part["cost"][i] for part in parts)) for i in (0, 1))
    return Outcomes(regret, share, wrong, costly, rounds, seconds)


def _block(job: Job, block: int, options: Options) -> dict[str, np.ndarray]:
    law, arms = job.setting.rsplit("-", 1)
    count, steps = (
        options.pick(40, 100, 100 if job.policy == "BTS" else BLOCK),
        options.pick(2e3, STEPS, STEPS) * 10.0**job.decade,
    )

    def make() -> dict[str, np.ndarray]:
        began = time.perf_counter()
        world: FiniteArms = LAWS[law](jax.random.key(21_000 + block), instances=count, arms=int(arms))
        reward, cost = world.values()
        budget = steps * cost.min(axis=1)
        constraint = jb.TotalBudget(budget, last_pull="counts")
        policy = job.made(cost.min(axis=1)[None])
        result = jb.simulate(policy, world, constraint, key=jax.random.key(22_000 + block), marks=1)
        regret = result.regret.values[:, :, 0, -1]
        wrong, costly = lock_ins(result.final["pulls"][:, :, 0], reward, cost)
        rounds = float(result.ledger["rounds"][..., -1].sum())
        took = time.perf_counter() - began
        print(f"  {job}, block {block}: {rounds:.3g} rounds in {took:.1f} s", flush=True)
        share = regret / (result.best_rate * budget)
        return {"regret": regret, "share": share, "wrong": wrong, "costly": costly, "cost": np.array([rounds, took])}

    policy, drawn = job.made(1.0), inspect.getsource(random_instances)  # which instances there are follows from the key
    depends_on = [*jax.tree.leaves(policy), policy, drawn, f"{job.setting} {count} {steps} {block}"]
    return kept(options, f"{job.setting}_{job.policy}_{job.decade}_{block}", depends_on, make)


def lock_ins(pulls: np.ndarray, reward: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(more than half of the spending on one arm that is not the best; and on a costly one), ``[setting, instance]``.

    Args:
        pulls: ``[setting, instance, arm]``.
        reward, cost: true means, ``[instance, arm]``.
    """
    ratio = reward / cost
    spent = pulls * cost
    most = spent.argmax(axis=-1)
    alone = spent.max(axis=-1) > 0.5 * spent.sum(axis=-1)
    reached = np.take_along_axis(np.broadcast_to(ratio, spent.shape), most[..., None], axis=-1)[..., 0]
    best = ratio.max(axis=-1)
    return alone & (reached < best), alone & (reached <= (1 - COSTLY) * best)
