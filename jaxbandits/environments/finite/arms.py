"""Finitely many arms that cost something: the environment of the budgeted bandit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta_tables
from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Outcome
from jaxbandits.core.numbers import SMALLEST, numbers
from jaxbandits.core.protocol import Environment, Feedback
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import MOST_IN_A_SET, check_unit, fits, is_arm, logged, presence, tables, ticks32
from jaxbandits.environments.finite.laws import BernoulliLaw, BetaLaw, Law, QuarterLaw, RowsLaw, quarter_thresholds


class AddressedArms(Environment):
    """K arms; what the n-th pull of arm k brings is a pure function of (key, k, n). Index policies leap on it.

    Write ``spec``, :meth:`means`, :meth:`outcome` and :meth:`values`. The state is the arms' pull counts, ``i32[K]``.

    Attributes:
        addressed: True if :meth:`pull` does what :meth:`means` and :meth:`outcome` say, and no more: engines that play
            many rounds at once call these instead. A class that overrides any of it is played round by round, unless it
            declares this again (see :mod:`jaxbandits.core.capabilities`).
    """

    addressed: ClassVar[bool] = True

    @abstractmethod
    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(mean reward, mean cost) of an arm, in ticks; a mean cost of −1: the arm cannot be played."""
        raise NotImplementedError

    @abstractmethod
    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, cost) in ticks of the pull of ``arm`` that comes after ``n`` earlier ones."""
        raise NotImplementedError

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: one arm a round."""
        return None if is_arm(action) and action.shape == () else "one arm, int32[]"

    def start(self) -> jax.Array:
        """Pull counts, ``i32[K]``."""
        return jnp.zeros((self.spec.arms,), jnp.int32)

    def pull(
        self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, Outcome, Feedback, jax.Array]:
        """Play one arm."""
        width = self.spec.arms
        arm = jnp.clip(action, 0, width - 1)
        mean_reward, mean_cost = self.means(arm)
        reward, cost = self.outcome(key, arm, state.at[arm].get(mode="promise_in_bounds"))
        outcome = Outcome(
            reward=reward,
            cost=cost,
            expected_reward=mean_reward,
            expected_cost=mean_cost,
            events={},
            valid=(arm == action) & (mean_cost >= 0),
        )
        hit = (jax.lax.iota(jnp.int32, width) == arm).astype(jnp.int32)
        return state + hit, outcome, Feedback(reward, cost), jnp.bool_(False)

    def summary(self, state: jax.Array) -> dict[str, jax.Array]:
        """``pulls`` per arm."""
        return {"pulls": state}


@pytree
class FiniteArms(AddressedArms):
    """K arms; a pull of arm k gives reward and cost in [0, 1], independent and identical over pulls.

    The n-th pull of an arm is one address (see :mod:`jaxbandits.core.streams`): all policies meet the same table of
    outcomes. Build one with :meth:`bernoulli`, :meth:`generalised_bernoulli`, :meth:`beta` or :meth:`empirical`;
    instances with fewer arms than the widest are padded, and an absent arm changes no bit.

    An action is an arm (``i32[]``) or a set of L distinct arms (``i32[L]``): one round, L pulls, one entry for the
    accountant.
    """

    law: Law = leaf()
    mean_reward: Any = leaf()  # i32[I, K]: true means in ticks
    mean_cost: Any = leaf()  # i32[I, K], or [I, K, d] for d resources
    present: Any = leaf()  # bool[I, K]

    addressed: ClassVar[bool] = True

    # --- construction (host) -----------------------------------------------------------------------------------

    @staticmethod
    def bernoulli(mean_reward: Any, mean_cost: Any, present: Any = None) -> FiniteArms:
        """Rewards and costs 0 or 1 with the given means.

        Args:
            mean_reward: μ^r in [0, 1], ``[K]`` or ``[instance, K]``. Rounded to ticks: the instance is the rounded one.
            mean_cost: μ^c in [0, 1], same shape; or ``[instance, K, d]`` for d resources, drawn independently.
            present: which arms exist, same shape; all by default. Values of absent arms are ignored.

        Raises:
            InputError: a mean outside [0, 1] or not finite, shapes that differ.

        Example:
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> arms.spec, arms.instances
            (FiniteSpec(arms=2, resources=None, null_arm=False), 1)
        """
        reward, cost, exists = tables("mean", mean_reward, mean_cost, present)
        r, c = ticks32(reward), ticks32(cost)
        return FiniteArms(law=BernoulliLaw(r, c), mean_reward=r, mean_cost=c, present=exists)

    @staticmethod
    def generalised_bernoulli(reward_weights: Any, cost_weights: Any, present: Any = None) -> FiniteArms:
        """Outcomes 0, ¼, ½, ¾, 1 with probabilities proportional to five weights each: ``[..., K, 5]``.

        Raises:
            InputError: negative, non-finite or all-zero weights, shapes that differ.
        """
        rw, cw = numbers("reward_weights", reward_weights), numbers("cost_weights", cost_weights)
        if rw.shape != cw.shape or rw.ndim not in (2, 3) or rw.shape[-1] != 5:
            raise InputError(
                f"reward_weights, cost_weights: shapes {rw.shape} and {cw.shape} given; both must be [K, 5] or "
                "[instance, K, 5]"
            )
        fits("reward_weights", (1, *rw.shape[:-1])[-2:], 8 * 4 + 3 * 8 * 5)
        for name, w in (("reward_weights", rw), ("cost_weights", cw)):
            if not (np.isfinite(w) & (w >= 0)).all() or (w.max(-1) <= 0).any():
                raise InputError(f"{name}: weights must be finite, at least 0, and not all 0")
        rw, cw = (w[None] if w.ndim == 2 else w for w in (rw, cw))
        (rt, rm), (ct, cm) = quarter_thresholds(rw), quarter_thresholds(cw)
        return FiniteArms(law=QuarterLaw(rt, ct), mean_reward=rm, mean_cost=cm, present=presence(present, rm.shape))

    @staticmethod
    def beta(reward_alpha: Any, reward_beta: Any, cost_alpha: Any, cost_beta: Any, present: Any = None) -> FiniteArms:
        """Beta-distributed rewards and costs, independent; shape parameters above 0, ``[K]`` or ``[instance, K]``.

        Drawn through a tabulated quantile function (its CDF error is bounded by a test); the true means are those of
        the tabulated laws, within 10⁻⁵ of α/(α+β), or within 10⁻⁴ where both are below 0.1.

        Raises:
            InputError: shape parameters that are not above 0 and at most 10⁹, shapes that differ.
        """
        names = ("reward_alpha", "reward_beta", "cost_alpha", "cost_beta")
        given = (reward_alpha, reward_beta, cost_alpha, cost_beta)
        shapes = [numbers(name, x) for name, x in zip(names, given, strict=True)]
        if len({x.shape for x in shapes}) != 1 or shapes[0].ndim not in (1, 2):
            raise InputError(
                f"reward_alpha, reward_beta, cost_alpha, cost_beta: shapes {[x.shape for x in shapes]} given; all must "
                "be [K] or [instance, K]"
            )
        fits("reward_alpha", (1, *shapes[0].shape)[-2:], 2 * 4 * beta_tables.KNOTS)
        for name, x in zip(names, shapes, strict=True):
            if (wrong := ~((x > 0) & (x <= beta_tables.MOST_SHAPE))).any():
                raise bad(name, float(x[wrong].flat[0]), f"finite, above 0 and at most {beta_tables.MOST_SHAPE:g}")
        ra, rb, ca, cb = (np.atleast_2d(x) for x in shapes)
        reward, reward_mean = beta_tables.quantile_table(ra, rb)
        cost, cost_mean = beta_tables.quantile_table(ca, cb)
        beta_tables.refuse_inexact("reward_alpha, reward_beta", ra, rb, reward_mean)
        beta_tables.refuse_inexact("cost_alpha, cost_beta", ca, cb, cost_mean)
        return FiniteArms(
            law=BetaLaw(reward, cost, *(np.maximum(x, SMALLEST).astype(np.float32) for x in (ra, rb, ca, cb))),
            mean_reward=np.rint(reward_mean).astype(np.int32),
            mean_cost=np.rint(cost_mean).astype(np.int32),
            present=presence(present, ra.shape),
        )

    @staticmethod
    def empirical(logs: Sequence[Sequence[tuple[Any, Any]]]) -> FiniteArms:
        """Resample the rows of real logs: ``logs[instance][arm] = (rewards, costs)``, values in [0, 1].

        A pull draws one row of its arm, so that reward and cost keep their dependence.

        Raises:
            InputError: an arm without rows, values outside [0, 1], lengths that differ.
        """
        checked = logged("logs", logs)
        width = max(len(arms) for arms in checked)
        depth = max(rewards.size for arms in checked for rewards, _ in arms)
        fits("logs", (len(checked), width), 2 * 4 * depth)
        reward, cost = (np.zeros((len(checked), width, depth), np.int32) for _ in range(2))
        rows, present = np.ones((len(checked), width), np.int32), np.zeros((len(checked), width), bool)
        for i, arms in enumerate(checked):
            for k, (r, c) in enumerate(arms):
                check_unit(f"logs[{i}][{k}] rewards", r, rows=True)
                check_unit(f"logs[{i}][{k}] costs", c, rows=True)
                reward[i, k, : r.size], cost[i, k, : r.size] = ticks.from_units(r), ticks.from_units(c)
                rows[i, k], present[i, k] = r.size, True
        law = RowsLaw(reward, cost, rows)
        mean_r, mean_c = (np.rint(x.sum(-1, dtype=np.int64) / rows).astype(np.int32) for x in (reward, cost))
        return FiniteArms(law=law, mean_reward=mean_r, mean_cost=mean_c, present=present)

    def take(self, instances: Sequence[int], arms: int | None = None) -> FiniteArms:
        """Some of the instances, cut to the first ``arms`` columns (which must hold all their present arms).

        Raises:
            InputError: if an arm that is present would be cut off.
        """
        chosen = np.asarray(instances)
        if arms is not None and np.asarray(self.present)[chosen, arms:].any():
            raise InputError(f"arms: {arms} given; it must leave every present arm of the instances {list(instances)}")
        return jax.tree.map(lambda x: np.asarray(x)[chosen][:, :arms], self)

    # --- the protocol ------------------------------------------------------------------------------------------

    @property
    def spec(self) -> FiniteSpec:
        """Number of arms of the widest instance, and of resources."""
        several = len(self.mean_cost.shape) - len(self.present.shape)
        return FiniteSpec(
            arms=int(self.present.shape[-1]), resources=int(self.mean_cost.shape[-1]) if several else None
        )

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: an arm, or a set of at most 127."""
        fits = is_arm(action) and len(action.shape) <= 1 and 1 <= np.prod(action.shape) <= MOST_IN_A_SET
        return None if fits else f"an arm, int32[], or a set of L arms, int32[L], L from 1 to {MOST_IN_A_SET}"

    def largest(self, action: Any) -> tuple[int, int]:
        """See :meth:`Environment.largest`: one unit for each arm of a set."""
        most = int(np.prod(action.shape)) * ticks.ONE
        return most, most

    def check(self) -> None:
        """Means are whole ticks, and every instance has an arm: what a table made by hand may lack."""
        for name in ("mean_reward", "mean_cost"):
            table = np.asarray(getattr(self, name))
            if table.dtype != np.int32:
                raise bad(
                    name, f"{table.dtype} values", "int32 ticks of 2**-24, as FiniteArms.bernoulli(...) makes them"
                )
        present = np.asarray(self.present)
        if present.dtype != np.bool_ or not present.any(axis=-1).all():
            raise bad("present", f"{present.dtype} values", "booleans, at least one of them true in every instance")

    def available(self) -> jax.Array:
        """The arms that this instance has."""
        return self.present[:]

    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """True means of an arm that exists, in ticks."""
        return self.mean_reward[arm], self.mean_cost[arm]

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`AddressedArms`; the cost is ``i32[d]`` for d resources."""
        blocks = 1 + (self.spec.resources or 1) // 2
        place = arm.astype(jnp.uint32)
        words = [streams.words(key, n, place | np.uint32(block << 24)) for block in range(blocks)]
        return self.law.outcome(arm, jnp.concatenate(words))

    def pull(
        self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, Outcome, Feedback, jax.Array]:
        """Play one arm, or a set of arms."""
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

        def total(x: jax.Array) -> jax.Array:
            return jnp.sum(x, axis=0, dtype=jnp.int32)

        outcome = Outcome(
            reward=total(reward),
            cost=total(cost),
            expected_reward=total(mean_reward),
            expected_cost=total(mean_cost),
            events={},
            valid=valid,
        )
        feedback = Feedback(reward.reshape(action.shape), cost.reshape(action.shape + self.spec.cost_shape))
        return state + hits, outcome, feedback, jnp.bool_(False)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """True means of every arm, NaN where absent."""
        exists = np.asarray(self.present)
        reward, cost = ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)
        return np.where(exists, reward, np.nan), np.where(
            exists[(...,) + (None,) * (cost.ndim - exists.ndim)], cost, np.nan
        )
