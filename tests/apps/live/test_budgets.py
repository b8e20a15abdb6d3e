"""The account of a budget and the pace of its traffic, by themselves."""

from __future__ import annotations

from jaxbandits.apps.live.budgets import Account, Budget, Pace, Traffic
from jaxbandits.core import ticks


def test_a_changed_budget_that_carries_over_grants_no_period_twice() -> None:
    """In its third day 10 a day have granted 30; at 20 a day from now on it is 10 + 10 + 20, of which 12 are paid."""
    before, after = (Account(Budget(x, 100.0, carry_over=True), 0.0, 1.0) for x in (10.0, 20.0))
    before.decided(50.0)
    before.charge(50.0, 12 * ticks.ONE)
    assert before.left(250.0) == 18 * ticks.ONE
    after.follow(before, [], [], 250.0)
    assert after.left(250.0) == 28 * ticks.ONE and after.left(350.0) == 48 * ticks.ONE


def test_a_pace_counts_the_requests_that_it_has_seen() -> None:
    pace, account = Pace(Traffic([10, 20], slot=100.0), 0.0), Account(Budget(1.0, 200.0), 0.0, 1.0)

    def ahead(now: float) -> tuple[int, int]:
        return tuple(int(x[0]) for x in pace.ahead([account], now))  # type: ignore[return-value]

    assert ahead(5.0) == (30, 30)
    for seen in range(1, 13):  # two more than this slot should bring
        pace.decided(5.0 + seen)
        assert ahead(20.0) == (max(10 - seen, 0) + 20, 30)
    assert ahead(150.0) == (20, 30)  # what an earlier slot brought is over
