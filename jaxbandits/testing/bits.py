"""Comparisons to the bit, and a counter of compilations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.result import Result

_COMPILED = "/jax/core/compile/backend_compile_duration"


def ulps_apart(a: Any, b: Any) -> np.ndarray:
    """How many float32 values lie between ``a`` and ``b``, elementwise int64; two NaN are 0 apart, a NaN is far.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.testing import ulps_apart
        >>> ulps_apart([1.0, 0.0], [np.nextafter(np.float32(1), np.float32(2)), -0.0]).tolist()
        [1, 0]
    """
    x, y = np.asarray(a, np.float32), np.asarray(b, np.float32)
    apart = np.abs(_rank(x) - _rank(y))
    return np.where(np.isnan(x) & np.isnan(y), 0, np.where(np.isnan(x) | np.isnan(y), 2**33, apart))


def _rank(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(2**31) - bits)  # the order of the floats; −0 and +0 are one


def assert_same_results(
    one: Result, other: Result, what: str, *, marks: Sequence[tuple[int, int]] | None = None
) -> None:
    """Two results hold the same exact ledgers, final values and statuses.

    Args:
        one, other: results with the same settings, instances and replicates in the same order.
        what: names the two, for the message.
        marks: pairs of mark numbers to compare (in ``one``, in ``other``); all, in order, by default.

    Raises:
        AssertionError: naming the first quantity and lane that differ.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> result = jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(20), key=jax.random.key(0), marks=2)
        >>> jb.testing.assert_same_results(result, result, "a result and itself")
    """
    pairs = [(i, i) for i in range(len(one.marks))] if marks is None else list(marks)
    here, there = ([pair[side] for pair in pairs] for side in (0, 1))
    for name, values in one.ledger.items():
        _same(values[:, :, :, here], other.ledger[name][:, :, :, there], f"{what}: {name} differs")
    for name, values in one.final.items():
        _same(values, other.final[name], f"{what}: final {name} differs")
    _same(one.ended, other.ended, f"{what}: the lanes' status differs")


def _same(a: np.ndarray, b: np.ndarray, message: str) -> None:
    assert a.shape == b.shape, f"{message}: shapes {a.shape} and {b.shape}"
    if not np.array_equal(a, b):
        place = tuple(int(i) for i in np.argwhere(a != b)[0])
        raise AssertionError(f"{message} in {int((a != b).sum())} places, first at {place}: {a[place]} and {b[place]}")


def pick(result: Result, instances: Sequence[int] | None = None, replicates: Sequence[int] | None = None) -> Result:
    """A result's lanes of some instances and replicates (positions), in that order."""
    import dataclasses

    i = list(range(len(result.instances))) if instances is None else list(instances)
    r = list(range(len(result.replicates))) if replicates is None else list(replicates)

    def cut(x: np.ndarray) -> np.ndarray:
        return x[:, i][:, :, r]

    return dataclasses.replace(
        result,
        ledger={name: cut(x) for name, x in result.ledger.items()},
        final={name: cut(x) for name, x in result.final.items()},
        ended=cut(result.ended),
        best_rate=result.best_rate[i],
        instances=tuple(result.instances[k] for k in i),
        replicates=tuple(result.replicates[k] for k in r),
    )


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """Collects the name of every program that jax compiles inside the block, in any thread.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits.testing import compilations
        >>> double = jax.jit(lambda x: 2 * x)
        >>> one, two = jnp.float32(1), jnp.float32(2)
        >>> with compilations() as first:
        ...     _ = double(one)
        >>> with compilations() as second:
        ...     _ = double(two)
        >>> len(first), len(second)
        (1, 0)
    """
    seen: list[str] = []

    def listener(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            seen.append(str(kwargs.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
