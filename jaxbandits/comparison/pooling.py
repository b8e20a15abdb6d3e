"""Arms of a file pooled by empirical Bayes, and what rows of a day each say of a spread; used by ``posterior``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.evidence import Daily

FloatArray = NDArray[np.float64]

_SPREAD, _SPREAD_SD = 0.5, 0.7


def spread(variance: float) -> float:
    """ln p(σ) + constant of a relative variance σ² between arms: ln σ ~ N(ln ½, 0.7²)."""
    return float(-(((np.log(variance) / 2 - np.log(_SPREAD)) / _SPREAD_SD) ** 2) / 2)


def pooled_beta(n: FloatArray, x: FloatArray) -> tuple[float, float]:
    """(m, κ) that maximise Π_k BetaBinomial(x_k; n_k, mκ, (1 − m)κ) · p(σ), σ² = (1 − m)/(m(κ + 1)): :func:`spread`.

    Example:
        >>> import numpy as np
        >>> m, strength = pooled_beta(np.full(4, 1000.0), np.array([90.0, 100.0, 105.0, 110.0]))
        >>> round(m, 3), strength > 300
        (0.101, True)
    """
    from scipy.special import betaln

    def loss(m: float, k: float) -> float:
        a, b = m * k, (1 - m) * k
        return -float((betaln(a + x, b + n - x) - betaln(a, b)).sum()) - spread((1 - m) / (m * (k + 1)))

    start = float((x.sum() + 0.5) / (n.sum() + 1))
    p, k = _searched(lambda p: loss(1 / (1 + np.exp(-p[0])), np.exp(p[1])), [np.log(start / (1 - start)), np.log(10)])
    return float(1 / (1 + np.exp(-p))), float(np.exp(k))


def pooled_gamma(n: FloatArray, x: FloatArray, phi: float) -> tuple[float, float]:
    """(m, a) that maximise the negative-binomial likelihood of x_k/φ (mean n_k m/φ, shape a) times p(a^−½)."""
    from scipy.special import gammaln

    y = x / phi

    def loss(m: float, a: float) -> float:
        mean = n * m / phi
        parts = gammaln(a + y) - gammaln(a) + a * np.log(a / (a + mean)) + y * np.log(mean / (a + mean) + 1e-300)
        return -float(parts.sum()) - spread(1 / a)

    start = float(max(x.sum(), phi / 2) / max(n.sum(), 1))
    p, k = _searched(lambda p: loss(np.exp(p[0]), np.exp(p[1])), [np.log(start), 0.0])
    return float(np.exp(p)), float(np.exp(k))


def pooled_log_cost(n: FloatArray, spent: FloatArray, v: float) -> tuple[float, float]:
    """(m, τ): m the weighted mean at τ; τ maximises Π_k N(ln(S_k/n_k); m, v²/n_k + τ²) · p(τ), 1e-4 ≤ τ ≤ 5."""
    from scipy.optimize import minimize_scalar

    known = (n > 0) & (spent > 0)
    y, s2 = np.log(spent[known] / n[known]), v * v / n[known]

    def mean(tau: float) -> float:
        return float(np.average(y, weights=1 / (s2 + tau * tau)))

    def loss(log_tau: float) -> float:
        var = s2 + np.exp(2 * log_tau)
        return float((np.log(var) + (y - mean(np.exp(log_tau))) ** 2 / var).sum()) / 2 - spread(np.exp(2 * log_tau))

    tau = float(np.exp(minimize_scalar(loss, bounds=(np.log(1e-4), np.log(5.0)), method="bounded").x))
    return mean(tau), tau


def shrunk_log_cost(n: FloatArray, spent: FloatArray, v: float, m: float, tau: float) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of ln c_k given the file, ``[K]``."""
    known = (n > 0) & (spent > 0)  # an arm that a prior keeps may lack either
    y = np.log(np.where(known, spent, 1) / np.where(known, n, 1))
    precision = np.where(known, n, 0) / (v * v)
    total = precision + 1 / tau**2
    return (precision * y + m / tau**2) / total, np.sqrt(1 / total)


def _searched(loss: Callable[[FloatArray], float], start: list[float]) -> FloatArray:
    from scipy.optimize import minimize

    bounds = [(-30.0, 30.0), (np.log(1e-3), np.log(1e6))]
    return minimize(loss, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-6, "fatol": 1e-9}).x


def day_to_day_cost_cv(days: Sequence[Daily]) -> float | None:
    """v = √(Σ n_kd (c_kd / c_k − 1)² / Σ (D_k − 1)), c_kd the cost per click of arm k on day d of D_k.

    None where no arm has two days with clicks.
    """
    squares, free = 0.0, 0
    for day in days:
        n, spent = day.clicks[day.clicks > 0], day.spent[day.clicks > 0]
        if n.size > 1 and spent.sum() > 0:
            squares += float((n * (spent / n / (spent.sum() / n.sum()) - 1) ** 2).sum())
            free += n.size - 1
    return float(np.sqrt(squares / free)) if free else None


def day_to_day_dispersion(days: Sequence[Daily]) -> float:
    """φ = Σ (x_kd − n_kd θ_k)² / (n_kd θ_k) / Σ (D_k − 1), θ_k = x_k / n_k: 1 for Poisson counts."""
    squares, free = 0.0, 0
    for day in days:
        n, x = day.clicks[day.clicks > 0], day.value[day.clicks > 0]
        if n.size > 1 and x.sum() > 0:
            expected = n * (x.sum() / n.sum())
            squares += float(((x - expected) ** 2 / expected).sum())
            free += n.size - 1
    return squares / free if free else 0.0
