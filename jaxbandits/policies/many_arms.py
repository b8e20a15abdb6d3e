"""For infinitely many arms: rules for how many of them an index policy uses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, positive
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import refuse
from jaxbandits.core.protocol import NEVER, Status, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import MOST_ARMS
from jaxbandits.policies.base import AroundIndex, Exploration, IndexPolicy
from jaxbandits.policies.ucb import RCB

_NEAR = np.float32(2.0**-20)  # relative: a float32 power this near to a whole number is that number


@pytree
class SampledArms(AroundIndex):
    """An index policy on the first K arms of a reservoir: RCB-I with RCB, UCB-V(∞) with UCB-V.

    Arms of a reservoir are independent, so its first K are K drawn at random.

    Args:
        policy: the index policy.
        arms: K ≥ 1, e.g. from :func:`arms_to_sample`; an array is a sweep.

    Raises:
        InputError: before anything runs, if K exceeds the reservoir's capacity.

    Source: Li and Xia 2017, Algorithm 2.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> from jaxbandits.policies import RCB, SampledArms, arms_to_sample
        >>> arms = jb.environments.Reservoir.ratio(jax.random.key(0), instances=4, capacity=16)
        >>> budget = 100.0
        >>> policy = SampledArms(RCB(), arms=arms_to_sample(budget, beta=1.0))
        >>> result = jb.simulate(policy, arms, jb.TotalBudget(budget, last_pull="forfeits"), key=jax.random.key(1))
        >>> result.settings, bool((result.pulls[..., 10:] == 0).all())
        (('SampledArms(RCB(LogExploration(scale=1)), arms=10)',), True)
    """

    policy: IndexPolicy = leaf()
    arms: ArrayLike = leaf(integer=True, at_least=1)

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        needed = int(np.max(self.arms))
        must = f"at least {needed}, the arms of {type(self).__name__}"
        refuse("capacity", spec.arms, needed > spec.arms, must)

    def admits(self, state: ArmStatistics, view: View) -> jax.Array:
        """The first K arms; while none of them is open, all open ones."""
        first = (jax.lax.iota(jnp.int32, state.pulls.shape[0]) < self.arms) & view.available
        return jnp.where(jnp.any(first), first, view.available)

    def steady(self, state: ArmStatistics, round: jax.Array) -> jax.Array:
        """The same arms are considered in all later rounds."""
        return jnp.int32(NEVER)


@pytree
class ArmIncreasing(AroundIndex):
    """The arm-increasing rule: adds an arm whenever there are fewer than t^e, and pulls it at once.

    .. math:: K_{t-1} < t^{e(\\beta)}, \\qquad e = \\beta/2 \\text{ if } \\beta < 1, \\quad
        e = \\beta/(1+\\beta) \\text{ if } \\beta \\ge 1.

    RCB-AIR with RCB, UCB-AIR with UCB-V: for any budget, which it need not know. A lane ends with
    the status ``capacity`` in the round that wants more arms than the environment has room for: see
    :func:`~jaxbandits.rerun_larger`.

    Args:
        policy: the index policy.
        beta: β > 0, of the reservoir, or what is believed of it.

    Source: Li and Xia 2017, Algorithm 3.

    Deviations: a new arm, whose index is +∞, comes before other arms with index +∞ (the paper
    breaks all ties at random). t^e is a float32 power, and within 2⁻²⁰ of a whole number it is that
    number: exact at squares and cubes, and for t beyond 2·10⁵ an arm may come up to t/(10⁶ e)
    rounds late. All arms of an instance must exist (as a reservoir's do).

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.policies import RCB, ArmIncreasing
        >>> ArmIncreasing(RCB(), beta=[0.5, 1.0, 2.0]).beta
        [0.5, 1.0, 2.0]
    """

    policy: IndexPolicy = leaf()
    beta: ArrayLike = leaf(above=0)

    def may_open(self, opened: jax.Array, round: jax.Array) -> jax.Array:
        """Whether ``opened`` < t^e."""
        power = jnp.power(round.astype(jnp.float32), _exponent(self.beta))
        return opened.astype(jnp.float32) < power * (1 - _NEAR)

    def admits(self, state: ArmStatistics, view: View) -> jax.Array:
        """The arms pulled so far, and the next one if the rule adds it or the others are closed."""
        ids, pulled = jax.lax.iota(jnp.int32, state.pulls.shape[0]), state.pulls > 0
        opened = jnp.sum(pulled, dtype=jnp.int32)
        # The first; in flight, one whose only pull was lost comes again.
        unopened = jnp.argmax(~pulled & view.available)
        opens = self.may_open(opened, view.round) | ~jnp.any(pulled & view.available)
        return (pulled | ((ids == unopened) & opens)) & view.available

    def status(self, state: ArmStatistics) -> jax.Array:
        """CAPACITY if all arms are in use and the rule requires one more."""
        opened = jnp.sum(state.pulls > 0, dtype=jnp.int32)
        round = jnp.sum(state.pulls, dtype=jnp.int32) + 1
        full = (opened == state.pulls.shape[0]) & self.may_open(opened, round)
        return jnp.where(full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))

    def steady(self, state: ArmStatistics, round: jax.Array) -> jax.Array:
        """Safely below opened^{1/e}, the last round that requires no further arm."""
        opened = jnp.sum(state.pulls > 0, dtype=jnp.int32).astype(jnp.float32)
        opens = jnp.power(opened, 1 / _exponent(self.beta)) * np.float32(1 - 2.0**-18)
        return jnp.where(opens < NEVER // 2, opens, NEVER // 2).astype(jnp.int32)


def _exponent(beta: Any, where: Any = jnp.where) -> Any:
    return where(beta < 1, beta / 2, beta / (1 + beta))


def arms_to_sample(budget: Any, beta: Any, multiplier: Any = 1.0) -> Any:
    """K = max(2, ⌈m·B^e⌉), e = β/2 if β < 1 and β/(1+β) if β ≥ 1.

    The paper fixes the order only; the multiplier m is 1 unless given.

    Args:
        budget: B > 0 (for UCB-V(∞), the horizon: B/λ at most).
        beta: β > 0.
        multiplier: m > 0. All three may be arrays.

    Returns:
        An int, or an integer array.

    Source: Li and Xia 2017, Eq. (5).

    Example:
        >>> from jaxbandits.policies import arms_to_sample
        >>> arms_to_sample([1e3, 1e4, 1e5], beta=1.0).tolist()
        [32, 100, 317]
    """
    b, shape = positive("budget", budget), positive("beta", beta)
    power = positive("multiplier", multiplier) * b ** _exponent(shape, np.where)
    must = f"such that at most 2**24 arms are sampled (here {np.max(power):.3g})"
    refuse("budget", float(np.max(b)), bool(np.any(power > MOST_ARMS)), must)
    # 1e6^(2/3) is 10,000 and not a hair more
    k = np.maximum(2, np.ceil(power * (1 - 1e-12))).astype(np.int64)
    return int(k) if k.ndim == 0 else k


def rcb_i(
    budget: Any, beta: Any, *, multiplier: Any = 1.0, exploration: Exploration | None = None
) -> SampledArms:
    """RCB-I: :class:`RCB` on K sampled arms, K from :func:`arms_to_sample`; needs B and β.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.rcb_i(budget=1e4, beta=1.0).arms
        100
    """
    policy = RCB() if exploration is None else RCB(exploration)
    return SampledArms(policy, arms_to_sample(budget, beta, multiplier))


def rcb_air(beta: Any, *, exploration: Exploration | None = None) -> ArmIncreasing:
    """RCB-AIR: :class:`RCB` with the arm-increasing rule; needs only β.

    Example:
        >>> import jaxbandits as jb
        >>> type(jb.policies.rcb_air(beta=1.0).policy).__name__
        'RCB'
    """
    return ArmIncreasing(RCB() if exploration is None else RCB(exploration), beta)


def room_needed(rounds: float, beta: float) -> int:
    """How many arms the arm-increasing rule uses in so many rounds, ⌈rounds^e⌉, for a capacity.

    Example:
        >>> from jaxbandits.policies import room_needed
        >>> room_needed(10_000, beta=1.0)
        100
    """
    return int(arms_to_sample(rounds, beta)) if rounds > 1 else 1
