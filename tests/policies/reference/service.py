"""A service in plain Python: who waits, what is open, what every budget paid, and ω-UCB on what is
known, in float64.

Written from docs/live.md, not from the code it is held against. Money is whole ticks in Python
numbers.
"""

from __future__ import annotations

import dataclasses
import math

from tests.policies.reference.budgeted import omega_interval

ONE = 1 << 24


@dataclasses.dataclass
class Budget:
    """``amount`` ticks in every period of ``every`` slots, for some arms."""

    amount: int
    every: int
    arms: set[int]
    carries: bool
    paid: dict[int, int] = dataclasses.field(default_factory=dict)  # by period: true costs
    # By period: known costs and bounds of the others
    held: dict[int, int] = dataclasses.field(default_factory=dict)

    def balance(self, slot: int) -> int:
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
        self.waiting: list[
            tuple[int, int, int, int, int, int, bool]
        ] = []  # due, round, arm, slot, reward, cost, lost

    def affordable(self, slot: int) -> list[int]:
        """Arms that every budget can pay at their bounds."""
        return [
            k
            for k, bound in enumerate(self.bounds)
            if all(k not in budget.arms or bound <= budget.balance(slot) for budget in self.budgets)
        ]

    def scores(self, round: int, rho: float) -> list[float]:
        """ω-UCB with open pulls at their arm's means; unknown arms at 0 and 1."""
        indices = []
        for n, reward, cost, open_ in zip(self.n, self.reward, self.cost, self.open, strict=True):
            total = n + open_
            if total == 0:
                indices.append(math.inf)
                continue
            r = reward + open_ * (reward // n if n else 0)
            c = cost + open_ * (cost // n if n else ONE)
            k = 2 * rho * math.log(round)
            low = omega_interval(total, c / ONE / total, k)[0]
            indices.append(
                omega_interval(total, r / ONE / total, k)[1] / low if low > 0 and c else math.inf
            )
        return indices

    def play(self, round: int, slot: int, arm: int, reward: int, cost: int, delay: int) -> None:
        """Decide for an arm: its bound is held, and its true cost is paid."""
        self.open[arm] += 1
        is_lost = delay > self.patience
        self.waiting.append(
            (round + min(delay, self.patience), round, arm, slot, reward, cost, is_lost)
        )
        for budget in self.budgets:
            if arm in budget.arms:
                budget.charge(budget.held, slot, self.bounds[arm])
                budget.charge(budget.paid, slot, cost)

    def arrive(self, round: int, limit: int) -> list[tuple[int, int, int, int, bool]]:
        """What is told after a round: (round, arm, reward, cost, lost), in order."""
        due = sorted(x for x in self.waiting if x[0] <= round)[:limit]
        for request in due:
            self.waiting.remove(request)
            _, _, arm, slot, reward, cost, is_lost = request
            self.open[arm] -= 1
            if not is_lost:
                self.n[arm] += 1
                self.reward[arm] += reward
                self.cost[arm] += cost
                for budget in self.budgets:
                    if arm in budget.arms:
                        budget.charge(budget.held, slot, cost - self.bounds[arm])
        return [(x[1], x[2], x[4], x[5], x[6]) for x in due]


def expected_left(slot: int, arrived: int, every: int, expected: list[int]) -> int:
    """Requests expected until a budget renews, when ``arrived`` of this slot have come before."""
    end = (slot // every + 1) * every
    return max(sum(expected[slot + 1 : end]) + max(expected[slot] - arrived, 0), 1)


def with_returns(twin: Twin, pacer: Pacer, slot: int) -> list[float]:
    """Ticks left of every budget, if open requests cost their arms' means."""
    means = [c for _, c in pacer.means(twin)]
    back = [
        n * max(bound - c * ONE, 0)
        for n, bound, c in zip(twin.open, twin.bounds, means, strict=True)
    ]
    return [budget.balance(slot) + sum(back[k] for k in budget.arms) for budget in twin.budgets]


def even_line(budget: Budget, slot: int, arrived: int, expected: list[int]) -> float:
    """What an even pace lets a budget spend now, in ticks."""
    first = slot // budget.every * budget.every
    whole = max(sum(expected[first : first + budget.every]), 1)
    reserve = budget.amount * (expected_left(slot, arrived, budget.every, expected) - 1) / whole
    return budget.balance(slot) - reserve


@dataclasses.dataclass
class Pacer:
    """Prices of money, in float64."""

    eta: float
    start: float = 0.1
    rho: float = 0.25
    price: list[float] | None = None

    def play(self, twin: Twin, round: int, targets: list[float], can: list[int]) -> list[float]:
        """Net worth of every arm at the prices of this round."""
        old = self.price or [math.inf] * len(targets)
        first = [self.start / target for target in targets]
        self.price = [
            a if self.price is None else min(b, 1 / t)
            for a, b, t in zip(first, old, targets, strict=True)
        ]
        k, net = 2 * self.rho * math.log(round), []
        for arm, (n, c) in enumerate(self.means(twin)):
            if n == 0:
                net.append(math.inf)
                continue
            r = twin.reward[arm] + twin.open[arm] * (
                twin.reward[arm] // twin.n[arm] if twin.n[arm] else 0
            )
            dear = sum(
                p for p, budget in zip(self.price, twin.budgets, strict=True) if arm in budget.arms
            )
            net.append(omega_interval(n, r / ONE / n, k)[1] - dear * omega_interval(n, c, k)[0])
        return net

    def means(self, twin: Twin) -> list[tuple[int, float]]:
        """(pulls, mean cost) of every arm, open ones counted in; the bound of an arm that is new."""
        rows = []
        for n, cost, open_, bound in zip(twin.n, twin.cost, twin.open, twin.bounds, strict=True):
            c = cost + open_ * (cost // n if n else ONE)
            rows.append((n + open_, c / ONE / (n + open_) if n + open_ else bound / ONE))
        return rows

    def move(self, twin: Twin, targets: list[float], arm: int) -> None:
        """The prices after a decision; arm −1: the policy rests."""
        assert self.price is not None
        paid = self.means(twin)[arm][1] if arm >= 0 else 0.0
        for j, (target, budget) in enumerate(zip(targets, twin.budgets, strict=True)):
            share = paid if arm in budget.arms else 0.0
            step = self.price[j] * math.exp(min(self.eta * (share / target - 1), 1))
            self.price[j] = min(max(step, min(self.start * 2.0**-10, 1) / target), 1 / target)
