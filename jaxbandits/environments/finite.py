"""Finitely many arms with costs, their distributions, and the null arm.

A law goes from 64 random bits and an arm to ticks, one uniform per outcome, through an inverse CDF.
Its parameters are whole ticks, and the means that are stated are those of the law as it is
simulated.
"""

from __future__ import annotations

import dataclasses
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._provenance import remembered
from jaxbandits.constraints import a_round
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import SMALLEST, bad, refuse, whole_number
from jaxbandits.core.protocol import Environment, Feedback, Outcome, Pulled
from jaxbandits.core.pytrees import leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.specs import Spec as Spec
from jaxbandits.core.tables import (
    MOST_ARMS,
    MOST_IN_A_SET,
    alike,
    check_unit,
    fits,
    is_arm,
    logged,
    presence,
    tables,
    ticks32,
)
from jaxbandits.environments.noise import coin

# --- Laws of (reward, cost)


class Law:
    """A joint law of reward and cost per arm.

    With several resources the cost is a vector ``[d]`` and so is everything that describes it, on a
    last axis.
    """

    @abstractmethod
    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, cost) of a pull of ``arm``, in ticks; word 0: reward, next words: cost."""

    def cost_steps(self) -> tuple[Any, Any]:
        """Host: (step, most), ticks over ``[I, K]``: cost = k · step ≤ most. One cost only."""
        return 1, ticks.ONE


def _steps_of(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """:meth:`Law.cost_steps` of costs that are listed on the last axis."""
    return np.gcd.reduce(cost, axis=-1), cost.max(axis=-1)


@pytree
class BernoulliLaw(Law):
    """Independent rewards and costs of 0 or 1: r = 1 iff U < μ^r, exact since μ is whole ticks."""

    reward: ArrayLike = leaf()  # i32[I, K]: μ^r in ticks
    cost: ArrayLike = leaf()  # i32[I, K]

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean = self.cost[arm]
        cost_words = words[1] if mean.ndim == 0 else words[1 : 1 + mean.shape[0]]
        return coin(self.reward[arm], words[0]), coin(mean, cost_words)

    def cost_steps(self) -> tuple[Any, Any]:
        return ticks.ONE, ticks.ONE


@pytree
class QuarterLaw(Law):
    """Independent outcomes 0, ¼, ½, ¾, 1; leaves are P(x ≤ j/4), j = 0 … 3, in ticks."""

    reward: ArrayLike = leaf()  # i32[I, K, 4]
    cost: ArrayLike = leaf()  # i32[I, K, 4]

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _quarters(self.reward, arm, words[0]), _quarters(self.cost, arm, words[1])

    def cost_steps(self) -> tuple[Any, Any]:
        return ticks.ONE // 4, ticks.ONE


def _quarters(cumulative: Any, arm: jax.Array, word: jax.Array) -> jax.Array:
    u = streams.uniform_ticks(word)
    steps = [(u >= cumulative[arm, j]).astype(jnp.int32) for j in range(4)]
    return (steps[0] + steps[1] + steps[2] + steps[3]) * (ticks.ONE // 4)


@pytree
class BetaLaw(Law):
    """Independent Beta laws, drawn from tables of their quantile functions.

    The shapes are kept for those who ask how outcomes depend on them.
    """

    reward: ArrayLike = leaf()  # i32[I, K, G]: knots in ticks
    cost: ArrayLike = leaf()  # i32[I, K, G]
    reward_alpha: ArrayLike = leaf()  # f32[I, K]
    reward_beta: ArrayLike = leaf()
    cost_alpha: ArrayLike = leaf()
    cost_beta: ArrayLike = leaf()

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _quantile(self.reward, arm, words[0]), _quantile(self.cost, arm, words[1])


def _quantile(knots: Any, arm: jax.Array, word: jax.Array) -> jax.Array:
    cell, fraction = beta.cell_of(word)
    return beta.interpolate(knots[arm, cell], knots[arm, cell + 1], fraction)


@pytree
class RowsLaw(Law):
    """Rows of a real log, reward and cost resampled together: one uniform chooses the row."""

    reward: ArrayLike = leaf()  # i32[I, K, R] ticks
    cost: ArrayLike = leaf()  # i32[I, K, R], or [I, K, R, d]
    rows: ArrayLike = leaf()  # i32[I, K]: rows that an arm has

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        row = streams.below(words[0], self.rows[arm])
        return self.reward[arm, row], self.cost[arm, row]

    def cost_steps(self) -> tuple[Any, Any]:
        cost = np.asarray(self.cost, np.int64)
        exists = np.arange(cost.shape[-1]) < np.asarray(self.rows)[..., None]
        return _steps_of(np.where(exists, cost, 0))


@pytree
class ClickLaw(Law):
    """Clicks: a conversion or none and, independently, the price of the click.

    Reward :math:`w \\cdot [U < p]`. Cost, if :math:`V < q`, a whole number of ticks drawn uniformly
    from :math:`m - h, \\dots, m + h` (mean m exactly), else 0. With q = 1 every click is paid; with
    h = 0 and m = 1 it is the coin of :class:`BernoulliLaw`. Only one of the two may vary: h = 0 or
    q = 1.
    """

    chance: ArrayLike = leaf()  # i32[I, K]: p in ticks
    worth: ArrayLike = leaf()  # i32[I, K]: w
    paid: ArrayLike = leaf()  # i32[I, K]: q in ticks
    price: ArrayLike = leaf()  # i32[I, K]: m
    spread: ArrayLike = leaf()  # i32[I, K]: h <= m

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        converts = streams.uniform_ticks(words[0]) < self.chance[arm]
        spread = self.spread[arm]
        cost_words = words[1] if spread.ndim == 0 else words[1 : 1 + spread.shape[0]]
        price = self.price[arm] - spread + streams.below(cost_words, 2 * spread + 1)
        pays = streams.uniform_ticks(cost_words) < self.paid[arm]
        return converts.astype(jnp.int32) * self.worth[arm], pays.astype(jnp.int32) * price

    def cost_steps(self) -> tuple[Any, Any]:
        price, spread = np.asarray(self.price, np.int64), np.asarray(self.spread, np.int64)
        return np.where(spread == 0, price, 1), price + spread


@pytree
class WeightedRowsLaw(Law):
    """Rows (reward, cost) of a real log with probabilities; one uniform chooses the row."""

    reward: ArrayLike = leaf()  # i32[I, K, R] ticks
    cost: ArrayLike = leaf()  # i32[I, K, R]
    # i32[I, K, R]: P(row <= j) in ticks; 2**24 from the arm's last row on
    cumulative: ArrayLike = leaf()

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        row = drawn_row(lambda at: self.cumulative[arm, at], self.cumulative.shape[-1], words[0])
        return self.reward[arm, row], self.cost[arm, row]

    def cost_steps(self) -> tuple[Any, Any]:
        return _steps_of(np.asarray(self.cost, np.int64))


def drawn_row(
    cumulative: Callable[[jax.Array], jax.Array], rows: int, word: jax.Array
) -> jax.Array:
    """The row that a random word selects, where P(row <= j) is ``cumulative(j)``, in ticks."""
    uniform = streams.uniform_ticks(word)
    low, high = jnp.int32(0), jnp.int32(rows - 1)
    # By halving: the first row that U does not reach.
    for _ in range(max(1, (rows - 1).bit_length())):
        middle = (low + high) // 2
        below = cumulative(middle) <= uniform
        low = jnp.where(below, jnp.minimum(middle + 1, high), low)
        high = jnp.where(below, high, middle)
    return low


def quarter_thresholds(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(P(x ≤ j/4) in ticks ``[..., 4]``, mean in ticks ``[...]``) from five weights ``[..., 5]``.

    The mean is Σ_j (1 − P(x ≤ j/4)) / 4; the last threshold moves by at most three ticks so that it
    is a whole tick (where the weight of ¾ is 0 it then lies below the third: an outcome ¾ in place
    of ½ and 1, the same mean).
    """
    # No sum of huge or tiny weights over- or underflows
    weights = weights / weights.max(axis=-1, keepdims=True)
    share = weights / weights.sum(axis=-1, keepdims=True)
    cumulative = np.rint(np.cumsum(share, axis=-1)[..., :4] * ticks.ONE).astype(np.int64)
    cumulative = np.clip(cumulative, 4, ticks.ONE)
    cumulative[..., 3] -= cumulative.sum(axis=-1) % 4
    mean = (4 * ticks.ONE - cumulative.sum(axis=-1)) // 4
    return cumulative.astype(np.int32), mean.astype(np.int32)


# --- Finitely many arms that cost something: the environment of the budgeted bandit


class CountedArms(Environment):
    """K arms, one pulled in each round; the state is the arms' pull counts, ``i32[K]``."""

    def refuses(self, action: Any) -> str | None:
        return refuses_but_one_arm(action)

    def start(self) -> jax.Array:
        return jnp.zeros((self.spec.arms,), jnp.int32)

    def counted(self, state: jax.Array, arm: jax.Array) -> jax.Array:
        """The state after one more pull of ``arm``."""
        return state + (jax.lax.iota(jnp.int32, self.spec.arms) == arm).astype(jnp.int32)

    def summary(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"pulls": state}


def arm_words(key: jax.Array, n: jax.Array, arm: jax.Array, costs: int) -> jax.Array:
    """Random words of one pull: the first for the reward, the next for its costs."""
    place, blocks = arm.astype(jnp.uint32), range(1 + costs // 2)
    words = [streams.words(key, n, place | np.uint32(block << 24)) for block in blocks]
    return jnp.concatenate(words)


class AddressedArms(CountedArms):
    """K arms; outcome n of arm k is a pure function of (key, k, n), as the leap engine requires.

    Write ``spec``, :meth:`means`, :meth:`outcome` and :meth:`values`. The state is the arms' pull
    counts, ``i32[K]``.

    Attributes:
        addressed: True if :meth:`pull` does what :meth:`means` and :meth:`outcome` say, and no
            more: engines that simulate many rounds at once call these instead. A class that
            overrides any of it runs round by round, unless it declares this again (see
            :mod:`jaxbandits.core.capabilities`).
    """

    addressed: ClassVar[bool] = True

    @abstractmethod
    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(mean reward, mean cost) of an arm, in ticks; cost −1: it cannot be pulled."""

    @abstractmethod
    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, cost), in ticks, of the pull of ``arm`` after ``n`` earlier ones."""

    def opening(self, arm: jax.Array, n: jax.Array, round: jax.Array) -> jax.Array | None:
        """Whether the arm is open in this round after ``n`` pulls of it, ``bool[]``; None: always.

        :meth:`open` calls it for every arm; a class with closed arms defines :meth:`opens_next` too.
        """
        return None

    def open(self, state: jax.Array, round: jax.Array) -> jax.Array | None:
        arms = jax.lax.iota(jnp.int32, self.spec.arms)
        if self.opening(arms[0], state[0], round) is None:
            return None
        return jax.vmap(self.opening, in_axes=(0, 0, None))(arms, state, round)  # type: ignore[arg-type]

    def available(self) -> jax.Array:
        """The arms without a mean cost of −1."""
        arms = jax.lax.iota(jnp.int32, self.spec.arms)
        return jax.vmap(lambda arm: jnp.all(self.means(arm)[1] >= 0))(arms)

    def pull(self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        arm = jnp.clip(action, 0, self.spec.arms - 1)
        mean_reward, mean_cost = self.means(arm)
        reward, cost = self.outcome(key, arm, state.at[arm].get(mode="promise_in_bounds"))
        valid = (arm == action) & jnp.all(mean_cost >= 0)
        outcome = Outcome(reward, cost, mean_reward, mean_cost, {}, valid)
        return self.counted(state, arm), outcome, Feedback(reward, cost), jnp.bool_(False)


@pytree
class FiniteArms(AddressedArms):
    """K arms with rewards and costs in [0, 1], independent and identically distributed over pulls.

    The n-th pull of an arm is one address (see :mod:`jaxbandits.core.streams`): all policies face
    the same table of outcomes. Build one with :meth:`bernoulli`, :meth:`generalised_bernoulli`,
    :meth:`beta` or :meth:`empirical`; instances with fewer arms than the widest are padded, and an
    absent arm changes no bit.

    An action is an arm (``i32[]``) or a set of L distinct arms (``i32[L]``): one round, L pulls,
    booked together.
    """

    law: Law = leaf()
    mean_reward: ArrayLike = leaf()  # i32[I, K]: true means in ticks
    mean_cost: ArrayLike = leaf()  # i32[I, K], or [I, K, d] for d resources
    present: ArrayLike = leaf()  # bool[I, K]

    addressed: ClassVar[bool] = True

    @classmethod
    def bernoulli(cls, mean_reward: Any, mean_cost: Any, present: Any = None) -> Self:
        """Rewards and costs of 0 or 1 with the given means.

        Args:
            mean_reward: μ^r in [0, 1], ``[K]`` or ``[instance, K]``. Rounded to ticks: the instance
                is the rounded one.
            mean_cost: μ^c in [0, 1], same shape; or ``[instance, K, d]`` for d resources, drawn
                independently.
            present: which arms exist, same shape; all by default. Values of absent arms are
                ignored.

        Example:
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> arms.spec, arms.instances
            (FiniteSpec(arms=2, resources=None, null_arm=False, context=None), 1)
        """
        reward, cost, exists = tables("mean", mean_reward, mean_cost, present)
        r, c = ticks32(reward), ticks32(cost)
        return cls(law=BernoulliLaw(r, c), mean_reward=r, mean_cost=c, present=exists)

    @classmethod
    def generalised_bernoulli(
        cls, reward_weights: Any, cost_weights: Any, present: Any = None
    ) -> Self:
        """Outcomes 0, ¼, ½, ¾, 1, probabilities proportional to five weights ``[..., K, 5]``."""
        may_be = "[K, 5] or [instance, K, 5]"
        rw, cw = alike((2, 3), may_be, reward_weights=reward_weights, cost_weights=cost_weights)
        refuse("reward_weights, cost_weights", rw.shape, rw.shape[-1] != 5, may_be)
        fits("reward_weights", rw.shape[:-1])
        for name, w in (("reward_weights", rw), ("cost_weights", cw)):
            refuse(name, w, ~(np.isfinite(w) & (w >= 0)), "finite and at least 0")
            refuse(name, w.max(-1), w.max(-1) <= 0, "above 0 somewhere in each five")
        (rt, rm), (ct, cm) = (quarter_thresholds(w.reshape(-1, *w.shape[-2:])) for w in (rw, cw))
        return cls(QuarterLaw(rt, ct), rm, cm, presence(present, rm.shape))

    @classmethod
    def beta(
        cls,
        reward_alpha: Any,
        reward_beta: Any,
        cost_alpha: Any,
        cost_beta: Any,
        present: Any = None,
    ) -> Self:
        """Independent Beta rewards and costs; shapes above 0, ``[K]`` or ``[instance, K]``.

        Drawn through a tabulated quantile function (its CDF error is bounded by a test); the true
        means are those of the tabulated laws, within 10⁻⁵ of α/(α+β), or within 10⁻⁴ where both are
        below 0.1.
        """
        given = {"reward_alpha": reward_alpha, "reward_beta": reward_beta}
        given |= {"cost_alpha": cost_alpha, "cost_beta": cost_beta}
        shapes = alike((1, 2), "[K] or [instance, K]", **given)
        fits("reward_alpha", shapes[0].shape)
        must = f"finite, above 0 and at most {beta.MOST_SHAPE:g}"
        for name, x in zip(given, shapes, strict=True):
            refuse(name, x, ~((x > 0) & (x <= beta.MOST_SHAPE)), must)
        ra, rb, ca, cb = map(np.atleast_2d, shapes)
        reward, reward_mean = beta.quantile_table(ra, rb)
        cost, cost_mean = beta.quantile_table(ca, cb)
        beta.refuse_inexact("reward_alpha, reward_beta", ra, rb, reward_mean)
        beta.refuse_inexact("cost_alpha, cost_beta", ca, cb, cost_mean)
        played = (np.maximum(x, SMALLEST).astype(np.float32) for x in (ra, rb, ca, cb))
        mean_r, mean_c = (np.rint(x).astype(np.int32) for x in (reward_mean, cost_mean))
        return cls(BetaLaw(reward, cost, *played), mean_r, mean_c, presence(present, ra.shape))

    @classmethod
    def empirical(cls, logs: Any) -> Self:
        """Resample rows of real logs: ``logs[instance][arm] = (rewards, costs)``, in [0, 1].

        A pull draws one row of its arm, so that reward and cost keep their dependence. Costs are
        ``[rows]``, or ``[rows, d]`` for d resources. Instead, a data frame of pandas or polars with
        columns ``arm``, ``reward``, ``cost`` (or ``cost_0``, ``cost_1``, …) and perhaps
        ``instance``; arms and instances are numbered in sorted order.
        """
        checked = logged("logs", _by_arm(logs) if hasattr(logs, "columns") else logs)
        width = max(len(arms) for arms in checked)
        depth = max(rewards.size for arms in checked for rewards, _ in arms)
        fits("logs", (width,))
        shape = len(checked), width
        reward = np.zeros((*shape, depth), np.int32)
        cost = np.zeros((*shape, depth, *checked[0][0][1].shape[1:]), np.int32)
        rows, present = np.ones(shape, np.int32), np.zeros(shape, bool)
        for i, arms in enumerate(checked):
            for k, (r, c) in enumerate(arms):
                check_unit(f"logs[{i}][{k}] rewards", r, rows=True)
                for column in c.reshape(r.size, -1).T:
                    check_unit(f"logs[{i}][{k}] costs", column, rows=True)
                reward[i, k, : r.size] = ticks.from_units(r)
                cost[i, k, : r.size] = ticks.from_units(c)
                rows[i, k], present[i, k] = r.size, True
        mean_reward = np.rint(reward.sum(2, dtype=np.int64) / rows)
        mean_cost = np.rint(cost.sum(2, dtype=np.int64) / _with_axes(rows, cost.ndim - 1))
        means = mean_reward.astype(np.int32), mean_cost.astype(np.int32)
        return cls(RowsLaw(reward, cost, rows), *means, present)

    def take(self, instances: Sequence[int], arms: int | None = None) -> FiniteArms:
        """Some of the instances, with the first ``arms`` columns, which must hold their arms."""
        rows = np.asarray(instances)
        cuts = arms is not None and np.asarray(self.present)[rows, arms:].any()
        refuse("arms", arms, cuts, f"enough for each present arm of instances {list(instances)}")
        return jax.tree.map(lambda x: np.asarray(x)[rows][:, :arms], self)

    @property
    def spec(self) -> FiniteSpec:
        several = len(self.mean_cost.shape) > len(self.present.shape)
        resources = int(self.mean_cost.shape[-1]) if several else None
        return FiniteSpec(int(self.present.shape[-1]), resources)

    def refuses(self, action: Any) -> str | None:
        if is_arm(action) and len(action.shape) <= 1 and 1 <= action.size <= MOST_IN_A_SET:
            return None
        return f"an arm, int32[], or a set of L arms, int32[L], L from 1 to {MOST_IN_A_SET}"

    def largest(self, action: Any) -> tuple[int, int]:
        bound = int(np.prod(action.shape)) * ticks.ONE
        return bound, bound

    def check(self) -> None:
        """Check that means are whole ticks and that every instance has an arm."""
        must = "int32 ticks of 2**-24, as FiniteArms.bernoulli(...) makes them"
        for name in ("mean_reward", "mean_cost"):
            kind = np.asarray(getattr(self, name)).dtype
            refuse(name, f"{kind} values", kind != np.int32, must)
        present = np.asarray(self.present)
        wrong = present.dtype != np.bool_ or not present.any(axis=-1).all()
        must = "booleans, at least one of them true in every instance"
        refuse("present", f"{present.dtype} values", wrong, must)

    def available(self) -> jax.Array:
        return self.present[:]

    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.mean_reward[arm], self.mean_cost[arm]

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.law.outcome(arm, arm_words(key, n, arm, self.spec.resources or 1))

    def pull(self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        width = self.spec.arms
        arms = jnp.atleast_1d(action)
        inside = (arms >= 0) & (arms < width)
        arms = jnp.clip(arms, 0, width - 1)
        n = state.at[arms].get(mode="promise_in_bounds")
        reward, cost = jax.vmap(self.outcome, in_axes=(None, 0, 0))(key, arms, n)
        mean_reward, mean_cost = self.means(arms)
        ids = jax.lax.iota(jnp.int32, width)
        hits = jnp.sum((ids[:, None] == arms[None, :]).astype(jnp.int32), axis=1, dtype=jnp.int32)
        valid = jnp.all(inside & self.present[arms])
        if arms.size > 1:
            valid = valid & jnp.all(hits <= 1)  # no arm twice

        costs = cost.reshape(action.shape + self.spec.cost_shape)
        feedback = Feedback(reward.reshape(action.shape), costs)
        of_arms = reward, cost, mean_reward, mean_cost
        r, c, mean_r, mean_c = (jnp.sum(x, axis=0, dtype=jnp.int32) for x in of_arms)
        outcome = Outcome(r, c, mean_r, mean_c, {}, valid)
        return state + hits, outcome, feedback, jnp.bool_(False)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        exists = np.asarray(self.present)
        reward, cost = ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)
        paid = np.where(_with_axes(exists, cost.ndim), cost, np.nan)
        return np.where(exists, reward, np.nan), paid

    def cost_steps(self) -> tuple[Any, Any]:
        """Host: see :meth:`Law.cost_steps`."""
        return self.law.cost_steps()

    def listed_costs(self) -> np.ndarray | None:
        law = self.law
        if not isinstance(law, (RowsLaw, WeightedRowsLaw)):
            return None
        return listed(law.cost, 0 if self.resources is None else 1)

    def prices(self) -> np.ndarray | None:
        law = self.law
        if isinstance(law, RowsLaw):
            cost = np.asarray(law.cost, np.int64)
            rows = np.arange(cost.shape[2]) < np.asarray(law.rows)[..., None]
            same = (cost == cost[:, :, :1]) | ~_with_axes(rows, cost.ndim)
            return np.where(same.all(2), cost[:, :, 0], 0)
        if isinstance(law, ClickLaw):
            same = (np.asarray(law.paid) == ticks.ONE) & (np.asarray(law.spread) == 0)
            return np.where(same, np.asarray(law.price, np.int64), 0)
        return None


def _by_arm(frame: Any) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """The rows of a data frame as ``logs[instance][arm] = (rewards, costs)``."""
    names = list(frame.columns)
    costs = [name for name in names if re.fullmatch(r"cost(_\d+)?", str(name))]
    if missing := {"arm", "reward", *(costs or ["cost"])}.difference(names):
        has, must = (", ".join(map(str, x)) for x in (names, sorted(missing)))
        raise bad("logs", f"columns {has}", f"with {must}")
    arm, reward, *cost = (np.asarray(frame[name]) for name in ("arm", "reward", *costs))
    instance = np.asarray(frame["instance"]) if "instance" in names else np.zeros(len(arm))
    unnamed = any(x is None or x != x for x in (*arm, *instance))
    refuse("logs", "a row without its arm or instance", unnamed, "rows that name both")
    paid = cost[0] if costs == ["cost"] else np.stack(cost, axis=1)
    rows = [[(instance == i) & (arm == k) for k in np.unique(arm)] for i in np.unique(instance)]
    lacking = not all(cell.any() for cells in rows for cell in cells)
    refuse("logs", "an instance without some arm", lacking, "rows of every arm in each instance")
    return [[(reward[cell], paid[cell]) for cell in cells] for cells in rows]


def _with_axes(table: np.ndarray, ndim: int) -> np.ndarray:
    """``table`` with axes of length 1 behind it, ``ndim`` in all."""
    return table.reshape(table.shape + (1,) * (ndim - table.ndim))


def listed(costs: Any, resources: int) -> np.ndarray | None:
    """Costs ``[instance, …]`` as ``[instance, n(, d)]``; None if there are too many to check."""
    table = np.asarray(costs, np.int64)
    end = table.ndim - resources
    return None if table[0].size > 2**17 else table.reshape(len(table), -1, *table.shape[end:])


def refuses_but_one_arm(action: Any) -> str | None:
    """See :meth:`Environment.refuses`: one arm a round."""
    return None if is_arm(action) and action.shape == () else "one arm, int32[]"


# --- Worlds around a world; the null arm, a way to sit a round out


class AroundWorld(Environment):
    """A wrapper that forwards to :attr:`world`. Subclasses define ``spec`` and ``pull``."""

    @property
    @abstractmethod
    def world(self) -> Environment:
        """The inner world."""

    def check(self) -> None:
        self.world.check()

    def refuses(self, action: Any) -> str | None:
        return self.world.refuses(action)

    def largest(self, action: Any) -> tuple[int, int]:
        return self.world.largest(action)

    def available(self) -> jax.Array | None:
        return self.world.available()

    def open(self, state: Any, round: jax.Array) -> jax.Array | None:
        return self.world.open(state, round)

    def opens_next(self, state: Any, round: jax.Array) -> jax.Array:
        return self.world.opens_next(state, round)

    @property
    def idle_rounds(self) -> int:
        return self.world.idle_rounds

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        return self.world.context(key, round)

    def start(self) -> Any:
        return self.world.start()

    def summary(self, state: Any) -> dict[str, jax.Array]:
        return self.world.summary(state)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        return self.world.values()

    def prices(self) -> np.ndarray | None:
        return self.world.prices()

    def listed_costs(self) -> np.ndarray | None:
        return self.world.listed_costs()

    def benchmarks(self, constraint: Any, clock: np.ndarray) -> Any:
        return self.world.benchmarks(constraint, clock)


@pytree
class WithNullArm(AroundWorld):
    """Arms and, as arm K, a known null arm with reward and cost 0. A skip (arm −1) does the same.

    Both are rounds: the clock of rounds advances. Neither reveals anything, so the observation is
    empty. They are counted apart: ``event:null`` counts pulls of arm K, ``event:skips`` skips.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.4, 0.8])
        >>> jb.environments.WithNullArm(arms).spec.null_arm
        True
    """

    arms: Environment = leaf()

    @property
    def world(self) -> Environment:
        return self.arms

    @property
    def spec(self) -> FiniteSpec:
        return dataclasses.replace(self.arms.spec, null_arm=True)

    def refuses(self, action: Any) -> str | None:
        return refuses_but_one_arm(action)

    def pull(self, state: Any, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        skip, null = action == SKIP, action == self.spec.arms
        rests = skip | null
        arm = jnp.where(rests, 0, action)
        pulled, outcome, feedback, _ = self.arms.pull(state, arm, key, round)
        nothing = jax.tree.map(jnp.zeros_like, outcome)._replace(valid=jnp.bool_(True))
        outcome = select_tree(rests, nothing, outcome)
        counts = {"skips": skip.astype(jnp.int32), "null": null.astype(jnp.int32)}
        outcome = outcome._replace(events=dict(outcome.events) | counts)
        visible = select_tree(rests, jax.tree.map(jnp.zeros_like, feedback), feedback)
        return select_tree(rests, state, pulled), outcome, visible, rests

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        reward, cost = self.arms.values()
        pad = [(0, 0)] * reward.ndim
        pad[1] = (0, 1)
        return np.pad(reward, pad), np.pad(cost, pad + [(0, 0)] * (cost.ndim - reward.ndim))

    def benchmarks(self, constraint: Any, clock: np.ndarray) -> Any:
        """The benchmarks of the inner world, if they remain valid when a policy may rest."""
        benchmarks = super().benchmarks(constraint, clock)
        if benchmarks is None or getattr(self.arms, "may_wait", False):
            return benchmarks
        if self.arms.spec.context is None:
            must = "wrapped the other way round, as Piecewise.of([WithNullArm(arms), …])"
            raise bad("arms", type(self.arms).__name__, must)
        pace = a_round(constraint)
        must = "one that limits rounds: with a null arm a policy could wait forever for the best context"
        refuse("constraint", constraint, pace is not None and pace.budget is None, must)
        return benchmarks


# --- Random instances as in the experiments of the ω-UCB paper (Heyden et al., KDD 2024, §6.1; reference code)
#
# Instance i's parameters are addressed by (key, i, arm, what): more instances or arms change none
# of the others. Means are true ones, unless one asks for the reference code's (``gbr_mean_bug``).


@remembered
def random_bernoulli(key: jax.Array, instances: int, arms: int) -> FiniteArms:
    """S-Br: μ^r ~ U(0, 1), μ^c ~ U(0.01, 1), Bernoulli rewards and costs.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> jb.environments.random_bernoulli(jax.random.key(0), instances=100, arms=10).instances
        100
    """
    u = uniforms(key, instances, arms, 2)
    u[0][u[0] < 0.5 / ticks.ONE] = 0  # what rounds to no tick
    return FiniteArms.bernoulli(u[0], 0.01 + 0.99 * u[1])


@remembered
def random_generalised_bernoulli(
    key: jax.Array, instances: int, arms: int, *, gbr_mean_bug: bool = False
) -> FiniteArms:
    """S-GBr: outcomes 0, ¼, ½, ¾, 1, for reward and cost with five normalised iid U(0, 1) weights.

    Args:
        key: of the parameters.
        instances, arms: how many.
        gbr_mean_bug: True to *state* the means of the paper's reference code, :math:`\\sum_j p_j\\,
            j/5` in place of :math:`\\sum_j p_j\\, j/4`: 0.8 times the true ones of reward and cost
            (to a tick). Ratios stay; regret is 0.8 times what it is, and so is a budget in units of
            the smallest stated cost. Outcomes are the same, so such a world breaks the contract,
            and the kit refuses it. For comparisons with published numbers only.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> draw = jb.environments.random_generalised_bernoulli
        >>> true, stated = (draw(jax.random.key(0), 1, 2, gbr_mean_bug=bug).values()[1] for bug in (False, True))
        >>> (stated / true).round(6).tolist()
        [[0.8, 0.8]]
    """
    u = np.moveaxis(uniforms(key, instances, arms, 10), 0, -1)
    world = FiniteArms.generalised_bernoulli(u[..., :5], u[..., 5:])
    if not gbr_mean_bug:
        return world
    means = np.asarray(world.mean_reward), np.asarray(world.mean_cost)
    reward, cost = (np.rint(0.8 * x).astype(np.int32) for x in means)
    return dataclasses.replace(world, mean_reward=reward, mean_cost=cost)


@remembered
def random_beta(key: jax.Array, instances: int, arms: int) -> FiniteArms:
    """S-Bt: Beta rewards and costs with all four shape parameters iid U(0, 5).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> jb.environments.random_beta(jax.random.key(0), instances=2, arms=3).instances
        2
    """
    return FiniteArms.beta(*(5.0 * uniforms(key, instances, arms, 4)))


def uniforms(key: jax.Array, instances: int, arms: int, kinds: int) -> np.ndarray:
    """Float64 uniforms in (0, 1), ``[kinds, instance, arm]``, at (key, instance, kind, arm)."""
    whole_number("instances", instances, 1, 2**32, "2**32")
    whole_number("arms", arms, 1, MOST_ARMS, "2**24")
    kind, instance, arm = np.indices((kinds, instances, arms)).reshape(3, -1)
    at = jnp.asarray(instance), jnp.asarray((kind << 24 | arm).astype(np.uint32))
    words = jax.vmap(streams.words, in_axes=(None, 0, 0))(streams.root_key(key), *at)
    uniform = (np.asarray(words[:, 0], np.float64) + 0.5) * 2.0**-32
    return uniform.reshape(kinds, instances, arms)
