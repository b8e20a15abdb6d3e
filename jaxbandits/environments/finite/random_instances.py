"""Random instances as in the experiments of the ω-UCB paper (Heyden et al., KDD 2024, §6.1; reference code).

Instance i's parameters are addressed by (key, i, arm, what): more instances or arms change none of the others.
True means are used throughout, but where one asks for those of the reference code (``gbr_mean_bug``).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams, ticks
from jaxbandits.core.numbers import refuse_beyond_memory, whole_number
from jaxbandits.core.tables import MOST_ARMS
from jaxbandits.environments.finite.arms import FiniteArms


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


def random_generalised_bernoulli(
    key: jax.Array, instances: int, arms: int, *, gbr_mean_bug: bool = False
) -> FiniteArms:
    """S-GBr: outcomes 0, ¼, ½, ¾, 1; for reward and cost five weights iid U(0, 1) each, normalised.

    Args:
        key: of the parameters.
        instances, arms: how many.
        gbr_mean_bug: True to *state* the means of the paper's reference code, :math:`\\sum_j p_j\\, j/5` in place of
            :math:`\\sum_j p_j\\, j/4`: 0.8 times the true ones of reward and cost (to a tick). Ratios stay; regret is
            0.8 times what it is, and so is a budget in units of the smallest stated cost. Outcomes are the same, so
            such a world breaks the contract, and the kit refuses it. For comparisons with published numbers only.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> draw = jb.environments.random_generalised_bernoulli
        >>> true, stated = (draw(jax.random.key(0), 1, 2, gbr_mean_bug=bug).values()[1] for bug in (False, True))
        >>> (stated / true).round(6).tolist()
        [[0.8, 0.8]]
    """
    u = np.moveaxis(uniforms(key, instances, arms, 10), 0, -1)
    made = FiniteArms.generalised_bernoulli(u[..., :5], u[..., 5:])
    if not gbr_mean_bug:
        return made
    reward, cost = (np.rint(0.8 * np.asarray(x)).astype(np.int32) for x in (made.mean_reward, made.mean_cost))
    return dataclasses.replace(made, mean_reward=reward, mean_cost=cost)


def random_beta(key: jax.Array, instances: int, arms: int) -> FiniteArms:
    """S-Bt: Beta rewards and costs, all four shape parameters iid U(0, 5).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> jb.environments.random_beta(jax.random.key(0), instances=2, arms=3).instances
        2
    """
    u = 5.0 * uniforms(key, instances, arms, 4)
    return FiniteArms.beta(*u)


def uniforms(key: jax.Array, instances: int, arms: int, kinds: int) -> np.ndarray:
    """Float64 uniforms in (0, 1), ``[kinds, instance, arm]``; the address of each is (key, instance, kind, arm)."""
    whole_number("instances", instances, 1, 2**32, "2**32")
    whole_number("arms", arms, 1, MOST_ARMS, "2**24")
    refuse_beyond_memory("instances, arms", (instances, arms), 40.0 * kinds * int(instances) * int(arms))
    root = streams.root_key(key)
    kind, instance, arm = np.meshgrid(np.arange(kinds), np.arange(instances), np.arange(arms), indexing="ij")
    place = jnp.asarray((kind << 24 | arm).reshape(-1).astype(np.uint32))
    words = jax.vmap(streams.words, in_axes=(None, 0, 0))(root, jnp.asarray(instance.reshape(-1)), place)
    return (np.asarray(words[:, 0], np.float64).reshape(kind.shape) + 0.5) * 2.0**-32
