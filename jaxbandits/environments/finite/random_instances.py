"""Random instances as in the experiments of the ω-UCB paper (Heyden et al., KDD 2024, §6.1; reference code).

Instance i's parameters are addressed by (key, i, arm, what): more instances or arms change none of the others.
True means are used throughout (the reference code states 0.8 times the means of its generalised Bernoulli arms).
"""

from __future__ import annotations

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


def random_generalised_bernoulli(key: jax.Array, instances: int, arms: int) -> FiniteArms:
    """S-GBr: outcomes 0, ¼, ½, ¾, 1; for reward and cost five weights iid U(0, 1) each, normalised.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> jb.environments.random_generalised_bernoulli(jax.random.key(0), instances=10, arms=5).spec.arms
        5
    """
    u = np.moveaxis(uniforms(key, instances, arms, 10), 0, -1)
    return FiniteArms.generalised_bernoulli(u[..., :5], u[..., 5:])


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
