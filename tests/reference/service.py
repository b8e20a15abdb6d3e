"""A service in plain Python: who waits, what is open, what every budget paid, and ω-UCB on what is known, in float64.

Written from docs/live.md, not from the code it is held against. Money is whole ticks in Python numbers.
"""

from __future__ import annotations

import dataclasses
import math

from tests.reference.finite import omega_interval

ONE = 1 << 24


@dataclasses.dataclass
class Budget:
    """``amount`` ticks in every period of ``every`` slots, for some arms."""

    amount: int
    every: int
    arms: set[int]
    carries: bool
    paid: dict[int, int] = dataclasses.field(default_factory=dict)  # by period: true costs
    held: dict[int, int] = dataclasses.field(default_factory=dict)  # by period: known costs and bounds of the others

    def left(self, slot: int) -> int:
        """What whoever decides in this slot knows to be left."""
        period = slot // self.every
        if self.carries:
            return self.amount * (period + 1) - sum(self.held.values())
        return self.amount - self.held.get(period, 0)

    def charge(self, book: dict[int, int], slot: int, amount: int) -> None:
        """To the period of that slot."""
        book[slot // self.every] = book.get(slot // self.every, 0) + amount

    def overspent(self) -> int:
        """The largest excess of what was really paid, over all periods."""
        total, worst = 0, 0
        for period in range(max(self.paid, default=0) + 1):
            paid = self.paid.get(period, 0)
            total += paid
            excess = total - self.amount * (period + 1) if self.carries else paid - self.amount
            worst = max(worst, excess)
        return worst


@dataclasses.dataclass
class Twin:
    """What is known, what is open, who waits."""

    bounds: list[int]
    budgets: list[Budget]
    patience: int

    def __post_init__(self) -> None:
        arms = len(self.bounds)
        self.n, self.reward, self.cost, self.open = ([0] * arms for _ in range(4))
        self.waiting: list[tuple[int, int, int, int, int, int, bool]] = []  # due, round, arm, slot, reward, cost, lost

    def affordable(self, slot: int) -> list[int]:
        """Arms that every budget can pay at their bounds."""
        return [
            k
            for k, bound in enumerate(self.bounds)
            if all(k not in budget.arms or bound <= budget.left(slot) for budget in self.budgets)
        ]

    def scores(self, round: int, rho: float) -> list[float]:
        """ω-UCB with open pulls at their arm's current means; of an arm that nothing is known of at 0 and 1."""
        found = []
        for n, reward, cost, open_ in zip(self.n, self.reward, self.cost, self.open, strict=True):
            total = n + open_
            if total == 0:
                found.append(math.inf)
                continue
            r = reward + open_ * (reward // n if n else 0)
            c = cost + open_ * (cost // n if n else ONE)
            k = 2 * rho * math.log(round)
            low = omega_interval(total, c / ONE / total, k)[0]
            found.append(omega_interval(total, r / ONE / total, k)[1] / low if low > 0 and c else math.inf)
        return found

    def play(self, round: int, slot: int, arm: int, reward: int, cost: int, delay: int) -> None:
        """Decide for an arm: its bound is held, and its true cost is paid."""
        self.open[arm] += 1
        lost = delay > self.patience
        self.waiting.append((round + min(delay, self.patience), round, arm, slot, reward, cost, lost))
        for budget in self.budgets:
            if arm in budget.arms:
                budget.charge(budget.held, slot, self.bounds[arm])
                budget.charge(budget.paid, slot, cost)

    def arrive(self, round: int, most: int) -> list[tuple[int, int, int, int, bool]]:
        """What is told after a round: (round, arm, reward, cost, lost), in order."""
        due = sorted(x for x in self.waiting if x[0] <= round)[:most]
        for request in due:
            self.waiting.remove(request)
            _, _, arm, slot, reward, cost, lost = request
            self.open[arm] -= 1
            if not lost:
                self.n[arm] += 1
                self.reward[arm] += reward
                self.cost[arm] += cost
                for budget in self.budgets:
                    if arm in budget.arms:
                        budget.charge(budget.held, slot, cost - self.bounds[arm])
        return [(x[1], x[2], x[4], x[5], x[6]) for x in due]
