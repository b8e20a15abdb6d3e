"""What to say of lanes that did not come to the end of their clock."""

from __future__ import annotations

import numpy as np

from jaxbandits.core.protocol import Status

_REASONS = {
    Status.ROUND_CAP: "max_rounds came before the end of the clock",
    Status.CAPACITY: "a growing set is full: their regret stops early and is not comparable; rerun with more capacity",
    Status.INVALID: "the policy asked for an action that the environment does not have, or a score was NaN; "
    "jb.testing.check_policy says where",
}


def unfinished(ended: np.ndarray) -> list[str]:
    """A line for each status other than a good one; ``ended`` holds a status for each lane, and -1 where there is none.

    Example:
        >>> unfinished(np.array([Status.HORIZON, Status.ROUND_CAP, -1]))
        ['1 of 2 lanes ended with status round_cap (max_rounds came before the end of the clock)']
    """
    lanes = int((ended >= 0).sum())
    counts = {status: int((ended == status).sum()) for status in Status}
    return [
        f"{count} of {lanes} lanes ended with status {status.name.lower()} ({_REASONS.get(status, 'unexpected')})"
        for status, count in counts.items()
        if count and status not in (Status.EXHAUSTED, Status.HORIZON)
    ]
