"""The terms of an agent, checked, as plain JSON: money, budgets, the breaker."""

from __future__ import annotations

import dataclasses
import decimal
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from jaxbandits.apps.live.clock import PERIODS, zone_of
from jaxbandits.apps.live.program import policy_text
from jaxbandits.core import InputError, bad
from jaxbandits.tools import number, positive_number, refuse, whole_number

# --- Money: whole billionths of the currency, of what is written, so that cents are cents

BILLION = 10**9
LARGEST_AMOUNT = 9 * BILLION * BILLION  # what a whole number of SQLite holds
LARGEST_COST = 10**6 * BILLION  # of a request: so that sums of them are below that
_MONEY = decimal.Context(prec=60)


def billionths(argument: str, value: Any, down: bool = False, largest: int = LARGEST_COST) -> int:
    """Money in whole billionths, as written (floats by ``repr``), rounded up or ``down``."""
    try:
        if type(value) is float:  # most are
            amount = Decimal(repr(value))
        else:
            as_written = isinstance(value, (Decimal, str, int)) and not isinstance(value, bool)
            amount = Decimal(value if as_written else repr(number(argument, value)))
        if amount.is_finite() and 0 <= amount <= largest // BILLION:
            rounding = decimal.ROUND_FLOOR if down else decimal.ROUND_CEILING
            return int(amount.scaleb(9, _MONEY).to_integral_value(rounding))
    except decimal.InvalidOperation:
        pass
    raise bad(argument, value, f"an amount of money from 0 to {largest / BILLION:g}")


def in_currency(amount: int) -> float:
    """Whole billionths as the float that prints the same amount."""
    return amount / BILLION


# --- Arguments of an agent


def check_name(argument: str, value: Any, may_be: str = "a name, as text") -> None:
    """Refuse what is not text, or empty."""
    refuse(argument, value, not isinstance(value, str) or not value, may_be)


def path_of(argument: str, value: Any) -> Path:
    """``value`` as a path, if it is one."""
    if isinstance(value, (str, os.PathLike)) and str(value) and "\0" not in str(value):
        return Path(value)
    raise bad(argument, value, "a name, as text or as a path")


@dataclasses.dataclass(frozen=True)
class Budget:
    """An amount of money, or a number of requests, that renews; unused amounts expire.

    Attributes:
        amount: what each period grants, in the money of the arms' bounds; a number, a ``Decimal``
            or its text.
        every: the length of a period: ``"day"``, ``"week"`` (from Monday) or ``"month"`` of the
            calendar in ``zone``; or a number of seconds, whose periods begin at multiples of it
            since the agent's ``start``. Of requests also ``"ever"``: a stock that is sold once.
        arms: the names of the arms that it pays for; None: all, also those that join later.
        name, zone: for messages and reports; the time zone of days, weeks and months, by its name.
        per: None, one for all; or ``"caller"``, a cap of ``amount`` for each who is named in
            ``choose(caller=…)``.
        of: ``"money"``, or ``"requests"``: then the arms close when so many were served in the
            period. Caps of callers and of requests are kept by the ledger, beside the budgets of
            money that the policy paces.

    Example:
        >>> import jaxbandits as jb
        >>> jb.live.Budget(amount=20.0, every="day", zone="Europe/Berlin").name
        'budget'
        >>> free_tier = jb.live.Budget(1500, every="day", arms=("small",), of="requests", name="free tier")
    """

    amount: Any
    every: float | str
    arms: tuple[str, ...] | None = None
    name: str = "budget"
    zone: str = "UTC"
    per: str | None = None
    of: str = "money"

    def plain(self, arms: Iterable[str]) -> dict[str, Any]:
        """The budget as plain JSON, checked for these arms, with the amount in whole billionths."""

        def must(field: str, holds: bool, may_be: str) -> None:
            refuse(f"{self.name}.{field}", getattr(self, field), not holds, may_be)

        check_name("budget.name", self.name)
        must("of", self.of in ("money", "requests"), "'money' or 'requests'")
        must("per", self.per in (None, "caller"), "None or 'caller'")
        amount = billionths(f"{self.name}.amount", self.amount, down=True, largest=LARGEST_AMOUNT)
        must("amount", amount > 0, "at least 1e-9")
        must("amount", self.of == "money" or not amount % BILLION, "a whole number of requests")
        every = self.every
        if isinstance(every, str):
            must("every", every in PERIODS, f"a number of seconds, or one of {', '.join(PERIODS)}")
            must("every", every != "ever" or self.of == "requests", "'ever' of requests only")
        else:
            every = positive_number(f"{self.name}.every", every)
        zone_of(f"{self.name}.zone", self.zone)
        must("arms", not isinstance(self.arms, str), "a list of names, or None for all")
        for arm in self.arms or ():
            refuse(f"{self.name}.arms", arm, arm not in arms, f"one of {', '.join(arms)}")
        arms_paid = None if self.arms is None else sorted(self.arms)
        return vars(self) | {"amount": amount, "every": every, "arms": arms_paid}


@dataclasses.dataclass(frozen=True)
class Breaker:
    """Pauses an arm after so many failures in a row.

    Then one request tries it. If that fails too, the next pause is three times as long. A success
    ends the pause.

    Attributes:
        failures: how many in a row.
        pause, longest: seconds of the first pause, and of the longest one.

    Source: the half-open circuit breaker of M. Nygard, *Release It!* (2007).

    Example:
        >>> import jaxbandits as jb
        >>> [jb.live.Breaker(pause=60.0, longest=1000.0).seconds(trips) for trips in (1, 2, 3, 4)]
        [60.0, 180.0, 540.0, 1000.0]
    """

    failures: int = 3
    pause: float = 300.0
    longest: float = 4 * 3600.0

    def plain(self) -> dict[str, Any]:
        """The breaker as plain JSON, checked."""
        return {
            "failures": whole_number("breaker.failures", self.failures, 1),
            "pause": positive_number("breaker.pause", self.pause),
            "longest": positive_number("breaker.longest", self.longest),
        }

    def seconds(self, trips: int) -> float:
        """How long the first, second, … pause in a row is."""
        return min(self.pause * 3.0 ** min(trips - 1, 100), self.longest)


def checked_terms(arguments: Mapping[str, Any], arms: Iterable[str]) -> dict[str, Any]:
    """The arguments of an agent as plain JSON, checked; budgets may name these ``arms``."""
    terms = dict(arguments)
    for name, value in arguments.items():
        if name == "policy":
            terms["policy"] = policy_text(value)
        elif name == "arms":
            if not isinstance(value, Mapping) or not value:
                must = "a bound for each name, such as {'small': 0.01, 'large': 0.2}"
                raise bad("arms", value, must)
            for arm in value:
                check_name("arms", arm, "names, as text")
            bounds = {arm: billionths(f"arms[{arm!r}]", bound) for arm, bound in value.items()}
            terms["arms"] = bounds
        elif name == "budgets":
            if not isinstance(value, Iterable) or not all(isinstance(x, Budget) for x in value):
                raise bad("budgets", value, "a list of jb.live.Budget")
            terms["budgets"] = [budget.plain(arms) for budget in value]
            if len(set(names := [x["name"] for x in terms["budgets"]])) < len(names):
                raise InputError(f"budgets: {names} given; it must be a list of different names")
        elif name == "breaker":
            if not isinstance(value, (Breaker, type(None))):
                raise bad(name, value, "a jb.live.Breaker, or None")
            terms[name] = value and value.plain()
        elif name == "hold" and value != "bound":
            if isinstance(value, str) or not 0 < number("hold", value) < 1:
                raise bad("hold", value, "'bound', or a quantile above 0 and below 1")
            terms["hold"] = float(value)
        elif name == "lost" and value not in ("bound", "mean"):
            raise bad("lost", value, "'bound' or 'mean'")
        elif name == "context" and value is not None:
            terms["context"] = whole_number("context", value, 1, 2**16)
        elif name in ("retention", "reward_bound"):
            terms[name] = positive_number(name, value)
        elif name == "start":
            terms[name] = number(name, value)
    return terms
