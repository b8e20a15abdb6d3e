"""Accountants: a total budget, a horizon."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandits import ticks
from jaxbandits.errors import InputError, bad
from jaxbandits.protocol import (
    Constraint,
    Environment,
    Ledger,
    Outcome,
    Status,
    leaf,
    post,
    pytree,
    static,
)
from jaxbandits.ticks import Total

LAST_PULLS = ("counts", "forfeits")


def per_instance(argument: str, value: Any, environment: Environment, what: str) -> np.ndarray:
    """``value`` as float64 ``[instance]``, every number finite and above 0, or an :class:`InputError`."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise bad(argument, value, what) from None
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != environment.instances):
        raise InputError(
            f"{argument}: an array of shape {array.shape} given; it must be one number, or one for each of the "
            f"{environment.instances} instances"
        )
    wrong = ~(np.isfinite(array) & (array > 0))
    if wrong.any():
        raise bad(argument, float(array[wrong].flat[0]), what)
    return np.broadcast_to(array, (environment.instances,))


@pytree
class TotalBudget(Constraint):
    """Play until ``budget`` is spent; money is the clock, and the regret is the budgeted regret.

    A lane ends as soon as spent ≥ B. The pull that exceeds the budget *counts* with its reward (the rule of Heyden et
    al., KDD 2024) or *forfeits* it (B-Zoom; RCB): then no more than the budget is ever paid, and its expected cost is
    charged to the regret.

    Args:
        budget: B > 0 in cost units, scalar or ``[instance]``; rounded down to whole ticks of 2⁻²⁴.
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

    ends_with: ClassVar[Status] = Status.EXHAUSTED
    clock_name: ClassVar[str] = "spent"

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        if self.last_pull not in LAST_PULLS:
            raise bad("last_pull", self.last_pull, " or ".join(map(repr, LAST_PULLS)))
        what = f"a finite number above 0 (at least one tick, {1 / ticks.ONE:.2g}) and at most 2**30"
        budget = per_instance("budget", self.budget, environment, what)
        whole = ticks.floor_from_units(np.minimum(budget, 2.0**31))
        if (whole < 1).any() or (budget > 2.0**30).any():
            raise bad("budget", float(budget[(whole < 1) | (budget > 2.0**30)][0]), what)
        return dataclasses.replace(self, budget=ticks.split(whole))

    def end(self) -> Total:
        """The budget."""
        return self.budget

    def view(self, ledger: Ledger) -> Total | None:
        """Money left (a total; never below 0)."""
        return ticks.minus(self.budget, ticks.smaller(ledger.spent, self.budget))

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round under the rule of the last pull."""
        if self.last_pull == "counts":
            return post(ledger, outcome)
        over = ticks.exceeds(ticks.add(ledger.spent, outcome.cost), self.budget)
        booked = post(ledger, outcome, earns=~over)
        return booked._replace(spent=ticks.smaller(booked.spent, self.budget))

    def clock(self, ledger: Ledger) -> Total:
        """Money spent."""
        return ledger.spent

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Σ of the conditional mean costs."""
        return ledger["expected_spent"]

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """max_k μ^r_k / μ^c_k, the reward per unit of money of always playing the best arm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nanmax(np.where(cost > 0, reward / cost, np.nan), axis=-1)


@pytree
class Horizon(Constraint):
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

    ends_with: ClassVar[Status] = Status.HORIZON
    clock_name: ClassVar[str] = "rounds"

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        what = "a whole number from 1 to 2**30"
        rounds = per_instance("rounds", self.rounds, environment, what)
        wrong = (rounds != np.rint(rounds)) | (rounds > 2**30)
        if wrong.any():
            raise bad("rounds", float(rounds[wrong][0]), what)
        return dataclasses.replace(self, rounds=rounds.astype(np.int32))

    def end(self) -> Total:
        """T."""
        return ticks.count(jnp.asarray(self.rounds))

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round."""
        return post(ledger, outcome)

    def clock(self, ledger: Ledger) -> Total:
        """Rounds played."""
        return ticks.count(ledger.rounds)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Rounds played, in ticks."""
        return ledger["rounds"] * ticks.ONE

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """max_k μ^r_k."""
        return np.nanmax(reward, axis=-1)
