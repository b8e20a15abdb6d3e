"""Growing sets have a fixed capacity: run again with more room until none is full."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from jaxbandits.errors import bad
from jaxbandits.protocol import Status
from jaxbandits.result import Result


def rerun_larger(run: Callable[[int], Result], capacity: int, *, most: int = 1 << 16) -> tuple[Result, int]:
    """Run with ever larger capacity, doubled each time, until no lane ends because a growing set is full.

    A larger capacity changes no draw: lanes that were full play the same rounds up to there and go on, the others are
    the same to the bit. So this is what the largest capacity would have given at once, in less time if few are needed.

    Args:
        run: plays with the given capacity, e.g. ``lambda room: jb.simulate(policy, arms.with_capacity(room), …)``.
        capacity: the first one to try, at least 1.
        most: no more than this; the last result is given even if lanes are still full (with the usual warning).

    Returns:
        The result, and the capacity that it was played with.

    Raises:
        InputError: a capacity that is not a whole number from 1 to ``most``.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.Reservoir.ratio(jax.random.key(0), instances=3, capacity=1)
        >>> def run(room):
        ...     return jb.simulate(jb.policies.rcb_air(beta=1.0), arms.with_capacity(room),
        ...                        jb.TotalBudget(20.0, last_pull="forfeits"), key=jax.random.key(1), marks=1)
        >>> result, room = jb.rerun_larger(run, capacity=4)
        >>> room, set(result.status.values.ravel().tolist())
        (16, {'exhausted'})
    """
    if isinstance(capacity, bool) or not isinstance(capacity, int) or not 1 <= capacity <= most:
        raise bad("capacity", capacity, f"a whole number from 1 to most = {most}")
    while True:
        last = 2 * capacity > most
        with warnings.catch_warnings():
            if not last:
                warnings.filterwarnings("ignore", message=".*lanes ended with status capacity.*")
            result = run(capacity)
        if last or not (result.ended == Status.CAPACITY).any():
            return result, capacity
        capacity *= 2
