"""Accountants: a total budget, a horizon."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import knapsack_lp
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Ledger, Outcome, post
from jaxbandits.core.numbers import numbers
from jaxbandits.core.protocol import Constraint, Environment, Status
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.ticks import Total

LAST_PULLS = ("counts", "forfeits")


def per_instance(
    argument: str, value: Any, environment: Environment, what: str, per_resource: bool = False
) -> np.ndarray:
    """``value`` as float64 ``[instance]``, every number finite and above 0.

    With ``per_resource``, in an environment with d resources, ``[instance, d]`` from ``[d]`` or ``[instance, d]``.

    Raises:
        InputError: naming ``argument``; ``what`` says what it may be.
    """
    array = numbers(argument, value, what)
    resources = environment.resources if per_resource else None
    core = () if resources is None else (resources,)
    instances = (environment.instances,)
    if array.shape not in (core, instances + core):
        shapes = f"[{resources}] or [{instances[0]}, {resources}]" if core else f"one number, or [{instances[0]}]"
        raise InputError(f"{argument}: an array of shape {array.shape} given; it must be {shapes} (one per instance)")
    wrong = ~(np.isfinite(array) & (array > 0))
    if wrong.any():
        raise bad(argument, float(array[wrong].flat[0]), what)
    return np.broadcast_to(array, instances + core)


@pytree
class TotalBudget(Constraint):
    """Play until ``budget`` is spent; money is the clock, and the regret is the budgeted regret.

    A lane ends as soon as spent ≥ B. The pull that exceeds the budget *counts* with its reward (the rule of Heyden et
    al., KDD 2024) or *forfeits* it (B-Zoom; RCB): then no more than the budget is ever paid, and its expected cost is
    charged to the regret.

    With d resources a lane ends when the first of them is spent; the clock is resource 0, for the
    regret too: of a lane that ends by another one it counts what of resource 0 was spent, and may be below 0.

    Args:
        budget: B > 0 in cost units, scalar or ``[instance]``; rounded down to whole ticks of 2⁻²⁴. With d resources
            ``[d]`` or ``[instance, d]``.
        last_pull: ``"counts"`` or ``"forfeits"``. Required: the papers differ.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for a budget that is not finite, not above 0 or above 2³⁰, or
            another ``last_pull``.

    Example:
        >>> import jaxbandits as jb
        >>> jb.TotalBudget(500.0, last_pull="counts").last_pull
        'counts'
    """

    budget: Any = leaf()
    last_pull: str = static()
    resources: int | None = static(default=None)  # set by prepare

    ends_with: ClassVar[Status] = Status.EXHAUSTED
    clock_name: ClassVar[str] = "spent"
    additive: ClassVar[bool] = True

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        if not isinstance(self.last_pull, str) or self.last_pull not in LAST_PULLS:
            raise bad("last_pull", self.last_pull, " or ".join(map(repr, LAST_PULLS)))
        what = f"a finite number above 0 (at least one tick, {1 / ticks.ONE:.2g}) and at most 2**30"
        budget = per_instance("budget", self.budget, environment, what, per_resource=True)
        whole = ticks.floor_from_units(np.minimum(budget, 2.0**31))
        if (whole < 1).any() or (budget > 2.0**30).any():
            raise bad("budget", float(budget[(whole < 1) | (budget > 2.0**30)][0]), what)
        return dataclasses.replace(self, budget=ticks.split(whole), resources=environment.resources)

    def _first(self, total: Total) -> Total:
        return total if self.resources is None else Total(total.whole[..., 0], total.part[..., 0])

    def end(self) -> Total:
        """The budget (of resource 0)."""
        return self._first(self.budget)

    def ended(self, ledger: Ledger) -> jax.Array:
        """Is any resource spent?"""
        return jnp.any(ticks.reached(ledger.spent, self.budget))

    def view(self, ledger: Ledger) -> Total | None:
        """Money left (a total; never below 0)."""
        return ticks.minus(self.budget, ticks.smaller(ledger.spent, self.budget))

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round under the rule of the last pull."""
        if self.last_pull == "counts":
            return post(ledger, outcome)
        over = jnp.any(ticks.exceeds(ticks.add(ledger.spent, outcome.cost), self.budget))
        booked = post(ledger, outcome, earns=~over)
        return booked._replace(spent=ticks.smaller(booked.spent, self.budget))

    def clock(self, ledger: Ledger) -> Total:
        """Money spent (of resource 0)."""
        return self._first(ledger.spent)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Σ of the conditional mean costs (of resource 0)."""
        spent = ledger["expected_spent"]
        return spent if self.resources is None else spent[..., 0]

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """max_k μ^r_k / μ^c_k, the reward per unit of money of always playing the best arm.

        With d resources, the value of the fluid LP (max Σ n_k μ^r_k with Σ n_k μ^c_kj ≤ B_j) per unit of resource 0.
        """
        if self.resources is not None:
            budget = ticks.to_units(ticks.join(self.budget))
            return knapsack_lp.fluid_values(reward, cost, budget) / budget[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nanmax(np.where(cost > 0, reward / cost, np.nan), axis=-1)


class _RoundClock(Constraint):
    """Rounds are the clock. It declares no capability: those who inherit it book in different ways."""

    rounds: Any
    ends_with: ClassVar[Status] = Status.HORIZON
    clock_name: ClassVar[str] = "rounds"

    def _whole_rounds(self, environment: Environment) -> np.ndarray:
        what = "a whole number from 1 to 2**30"
        rounds = per_instance("rounds", self.rounds, environment, what)
        wrong = (rounds != np.rint(rounds)) | (rounds > 2**30)
        if wrong.any():
            raise bad("rounds", float(rounds[wrong][0]), what)
        return rounds.astype(np.int32)

    def end(self) -> Total:
        """T."""
        return ticks.count(jnp.asarray(self.rounds))

    def clock(self, ledger: Ledger) -> Total:
        """Rounds played."""
        return ticks.count(ledger.rounds)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Rounds played, in ticks."""
        return ledger["rounds"] * ticks.ONE


@pytree
class Horizon(_RoundClock):
    """Play ``rounds`` rounds; rounds are the clock, costs are only reported, the regret is the ordinary one.

    Args:
        rounds: T ≥ 1, scalar or ``[instance]``.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, if T is not a whole number from 1 to 2³⁰.

    Example:
        >>> import jaxbandits as jb
        >>> jb.Horizon(1000).rounds
        1000
    """

    rounds: Any = leaf(integer=True)

    additive: ClassVar[bool] = True

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        return dataclasses.replace(self, rounds=self._whole_rounds(environment))

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round."""
        return post(ledger, outcome)

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """max_k μ^r_k."""
        return np.nanmax(reward, axis=-1)


@pytree
class AverageCost(_RoundClock):
    """The average cost may exceed c at no round: Σ_{s ≤ u} c_s ≤ c·u for every u ≤ T; rounds are the clock.

    This is an audit: it never alters an action. Every round is checked in exact ticks, Σ cost ≤ ⌊c·2²⁴⌋·u, and the
    largest violation so far is part of every result (``result.violation``, exactly 0 for a policy that keeps its
    promise). Skips count as rounds. The regret is T·r* − reward with r* the value of the fluid LP.

    The view tells what may be spent in the coming round, c·t − Σ_{s<t} c_s; the horizon reaches a policy only through
    its own constructor.

    Args:
        c: bound on the average cost in (0, 1], scalar or ``[instance]``; rounded down to ticks. With d resources
            ``[d]`` or ``[instance, d]``.
        rounds: T ≥ 1, scalar or ``[instance]``.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for c outside (0, 1], for T that is not a whole number from 1 to
            2³⁰, and for c below every arm's mean cost if there is no null arm.

    Source: "anytime" knapsack constraint of the SUAK paper, §2.

    Example:
        >>> import jaxbandits as jb
        >>> jb.AverageCost(c=0.5, rounds=1000).c
        0.5
    """

    c: Any = leaf()
    rounds: Any = leaf(integer=True)

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        what = "a number in (0, 1], at least one tick of 2**-24"
        c = per_instance("c", self.c, environment, what, per_resource=True)
        whole = ticks.floor_from_units(c)
        wrong = (whole < 1) | (c > 1)
        if wrong.any():
            raise bad("c", float(c[wrong].flat[0]), what)
        least = np.nanmin(environment.values()[1], axis=1)
        if (short := least > c).any():
            may_be = (
                f"at least {least[short].flat[0]:g}, the smallest mean cost, or the environment a WithNullArm(arms)"
            )
            raise bad("c", float(c[short].flat[0]), may_be)
        return dataclasses.replace(self, c=whole.astype(np.int32), rounds=self._whole_rounds(environment))

    def audit(self) -> dict[str, Total]:
        """What was not spent of c·t so far, and the largest violation."""
        return {"slack": ticks.zero(self.c.shape), "violation": ticks.zero(self.c.shape)}

    def view(self, ledger: Ledger) -> Total | None:
        """c·t − (spent before round t): what round t may spend."""
        return ticks.add(ledger.audit["slack"], self.c)

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round and audit it."""
        slack = ticks.add(ledger.audit["slack"], self.c - outcome.cost)
        over = ticks.minus(ticks.zero(slack.part.shape), slack)
        worst = ticks.larger(ledger.audit["violation"], over)
        return post(ledger, outcome)._replace(audit={"slack": slack, "violation": worst})

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """r*: the best mean reward a round of a mixture of arms and rest whose mean cost is at most c."""
        return knapsack_lp.mixture_values(reward, cost, ticks.to_units(self.c))
