"""Student's t, from scipy's special functions: scipy.stats takes longer to import than a small comparison to play."""

from __future__ import annotations

from typing import Any

import numpy as np


def t_quantile(p: Any, freedom: Any) -> np.ndarray:
    """x with P(T ≤ x) = p, elementwise; freedom may be infinite (normal), NaN where it is not above 0.

    Example:
        >>> [round(float(t_quantile(0.975, freedom)), 4) for freedom in (1, 10, float("inf"))]
        [12.7062, 2.2281, 1.96]
    """
    from scipy.special import stdtrit

    return np.where(np.equal(p, 0), -np.inf, stdtrit(freedom, p))


def t_above(x: Any, freedom: Any) -> np.ndarray:
    """P(T > x), elementwise, without cancellation.

    Example:
        >>> round(float(t_above(2.2281, 10)), 4)
        0.025
    """
    from scipy.special import stdtr

    return stdtr(freedom, np.negative(x))
