"""Float64 NumPy twins of every policy for a total budget, written from the papers and the
specification.

Sources: SPEC = ``ALGORITHMS.md``, 0, A.1-A.15; P-omega = ``papers/omega_ucb.txt``, Table 2. Nothing
is optimised but that every function works on any batch of lanes: arrays are ``[..., K]``. ``t`` is
the 1-based index of the round about to be decided. What the published code does differently (SPEC
A.15) is an argument here, and nowhere else.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """What was seen of every arm before round t."""

    t: Floats  # [..., 1]
    n: Floats  # [..., K]: pulls
    r: Floats  # sum of the rewards
    c: Floats  # sum of the costs
    rr: Floats  # sum of the squared rewards
    cc: Floats  # sum of the squared costs

    @property
    def mean_r(self) -> Floats:
        return self.r / self.n

    @property
    def mean_c(self) -> Floats:
        return self.c / self.n


def or_infinite(condition: NDArray[np.bool_], value: Floats) -> Floats:
    """``value`` where ``condition``, else +inf (SPEC 0)."""
    return np.where(condition, value, np.inf)


def log_before(s: Seen, lag: int = 1) -> Floats:
    """ln(max(t - lag, 1)): lag 1 as printed, 2 in the reference code (SPEC A.15 #1)."""
    return np.log(np.maximum(s.t - lag, 1))


def omega_interval(n: float, mean: float, k_z: float) -> tuple[float, float]:
    """Interval of P-omega Theorem 1 on [0, 1], ``k_z = z^2 * eta``; returns ``(lower, upper)``.

    With m = 0, M = 1: A = n + k_z, B = 2 n mean + k_z, C = n mean^2. The upper root is B/2A +
    sqrt(B^2/4A^2 - C/A) with the discriminant expanded by hand; the lower root comes from Vieta
    (product of the roots = C/A), which has no cancellation and is exactly 0 if and only if mean is
    0.
    """
    a = n + k_z
    upper = (n * mean + 0.5 * k_z) / a + math.sqrt(k_z) / a * math.sqrt(
        n * mean * (1.0 - mean) + 0.25 * k_z
    )
    if mean == 0.0:
        return 0.0, min(upper, 1.0)
    lower = (n * mean * mean / a) / upper
    return lower, min(upper, 1.0)


# --- scores -----------------------------------------------------------------------------------------------------


def omega(
    s: Seen, rho: float = 0.25, eta_r: Floats | float = 1.0, eta_c: Floats | float = 1.0
) -> Floats:
    """omega+ / omega- (SPEC A.1), the lower root by Vieta."""

    def centre_and_half(mean: Floats, k: Floats) -> tuple[Floats, Floats]:
        half = np.sqrt(k) / (s.n + k) * np.sqrt(s.n * mean * (1 - mean) + k / 4)
        return (s.n * mean + k / 2) / (s.n + k), half

    z2 = 2 * rho * np.log(s.t)
    centre, half = centre_and_half(s.mean_r, z2 * eta_r)
    centre_c, half_c = centre_and_half(s.mean_c, z2 * eta_c)
    lower = s.n * s.mean_c**2 / (s.n + z2 * eta_c) / (centre_c + half_c)
    return or_infinite(s.c > 0, np.minimum(centre + half, 1) / lower)


def omega_star(s: Seen, rho: float = 0.25) -> Floats:
    """With eta = biased variance / (mean (1 - mean)) from 30 pulls, at most 1 (SPEC A.2)."""

    def eta(mean: Floats, squares: Floats) -> Floats:
        share = np.clip((squares / s.n - mean**2) / (mean * (1 - mean)), 0, 1)
        return np.where((s.n < 30) | (mean <= 0) | (mean >= 1), 1.0, share)

    return omega(s, rho, eta(s.mean_r, s.rr), eta(s.mean_c, s.cc))


def m_ucb(s: Seen, alpha: float = 2.0**-4) -> Floats:
    """min(r + eps, 1) / max(c - eps, 0) (SPEC A.4)."""
    eps = alpha * np.sqrt(log_before(s) / s.n)
    return or_infinite(s.mean_c > eps, np.minimum(s.mean_r + eps, 1) / (s.mean_c - eps))


def c_ucb(s: Seen, alpha: float = 2.0**-3) -> Floats:
    """(r + eps) / c (SPEC A.4)."""
    return or_infinite(s.c > 0, (s.mean_r + alpha * np.sqrt(log_before(s) / s.n)) / s.mean_c)


def i_ucb(s: Seen, alpha: float = 2.0**-2) -> Floats:
    """r / c + eps (SPEC A.4)."""
    return or_infinite(s.c > 0, s.mean_r / s.mean_c + alpha * np.sqrt(log_before(s) / s.n))


def budget_ucb(s: Seen, lam: Floats | float, factor: float = 2.0, lag: int = 1) -> Floats:
    """r/c + (eps/c)(1 + min(r + eps, 1)/max(c - eps, lambda)) (P-omega Table 2; SPEC A.5).

    ``factor`` 2 as in the code, 1 as printed; ``lag`` 2 in the code.
    """
    eps = np.sqrt(factor * log_before(s, lag) / s.n)
    denominator = np.maximum(s.mean_c - eps, lam)
    value = s.mean_r / s.mean_c + eps / s.mean_c * (1 + np.minimum(s.mean_r + eps, 1) / denominator)
    return or_infinite((s.c > 0) & (denominator > 0), value)


def least_cost(s: Seen) -> Floats:
    """min over the pulled arms of c, ``[..., 1]``."""
    return np.where(s.n > 0, s.mean_c, np.inf).min(axis=-1, keepdims=True)


def estimated_budget_ucb(s: Seen, factor: float = 2.0) -> Floats:
    """The same with lambda = min c (SPEC A.5, last line)."""
    return budget_ucb(s, least_cost(s), factor)


def ucb_sc_plus(s: Seen, completed: bool = False, plus: bool = True) -> Floats:
    """(r + a c)/(c - a r), a = sqrt(beta/(r^2 + c^2 - beta)), beta = ln(t/n)/(2n) (SPEC A.7).

    The reference code takes completed rounds for t (``completed``). Without ``plus``: ln t for
    ln(t/n).
    """
    beta = np.log((s.t - completed) / (s.n if plus else 1.0)) / (2 * s.n)
    a = np.sqrt(beta / (s.mean_r**2 + s.mean_c**2 - beta))
    value = (s.mean_r + a * s.mean_c) / (s.mean_c - a * s.mean_r)
    return or_infinite(s.mean_c**2 > beta, value)


def divergence(p: Floats, q: Floats) -> Floats:
    """Bernoulli Kullback-Leibler divergence d(p, q), with 0 ln 0 = 0."""
    q = np.clip(q, 1e-15, 1 - 1e-15)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        return first + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)


def steepest(r: Floats, c: Floats, level: Floats) -> Floats:
    """sup{theta = r'/c' : d(r, r') + d(c, c') <= level} by bisection (SPEC A.8, closed form)."""

    def refuted(theta: Floats) -> NDArray[np.bool_]:
        total = 1 + theta + r + theta * c
        root = np.sqrt(np.maximum(total**2 - 8 * theta * (r + c), 0))
        cheapest = 2 * (r + c) / (total + root)
        return divergence(r, theta * cheapest) + divergence(c, cheapest) > level

    low = r / c
    high = np.maximum(2 * low, 1e-12)
    while (inside := ~refuted(high) & (high < 1e300)).any():
        low, high = np.where(inside, high, low), np.where(inside, 2 * high, high)
    for _ in range(46):  # to 2⁻⁴⁶ of it
        middle = (low + high) / 2
        inside = ~refuted(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def kl_ucb_sc_plus(s: Seen, plus: bool = True) -> Floats:
    """sup{r/c : n [d(mean r, r) + d(mean c, c)] <= ln(t/n)} (SPEC A.8); or ln t."""
    safe = np.where(s.c > 0, s.mean_c, 0.5)
    return or_infinite(
        s.c > 0, steepest(s.mean_r, safe, np.log(s.t / (s.n if plus else 1.0)) / s.n)
    )


def ucb_bv1(s: Seen, lam: Floats | float) -> Floats:
    """r/c + (1 + 1/lambda) s/(lambda - s) (SPEC A.11); +inf for lambda <= s."""
    radius = np.sqrt(log_before(s) / s.n)
    value = s.mean_r / s.mean_c + (1 + 1 / lam) * radius / (lam - radius)
    return or_infinite((s.c > 0) & (lam > radius), value)


def ucb_bv2(s: Seen) -> Floats:
    """r/c + (1/lambda_t)(1 + 1/(lambda_t - s)) s, lambda_t = min c (SPEC A.11)."""
    radius, lam = np.sqrt(log_before(s) / s.n), least_cost(s)
    value = s.mean_r / s.mean_c + (1 / lam) * (1 + 1 / (lam - radius)) * radius
    return or_infinite((s.c > 0) & (lam > radius), value)


def pd_bwk_ends(s: Seen, c_rad: Floats | float) -> tuple[Floats, Floats]:
    """(min(r + rad(r, n), 1), max(c - rad(c, n), 0)) (SPEC A.12)."""

    def rad(mean: Floats) -> Floats:
        return np.sqrt(c_rad * mean / s.n) + c_rad / s.n

    return np.minimum(s.mean_r + rad(s.mean_r), 1), np.maximum(s.mean_c - rad(s.mean_c), 0)


def pd_bwk(s: Seen, c_rad: Floats | float) -> Floats:
    """The ratio of the two (SPEC A.12, last point)."""
    upper, lower = pd_bwk_ends(s, c_rad)
    return or_infinite(lower > 0, upper / lower)


def ucb_b2(s: Seen, c_min: Floats | float = 0.0, guard: str = "cost") -> Floats:
    """r + 1.4 (eps + r eta)/c (SPEC A.14); ``guard="reward"``: the reference code's slip."""

    def variance(total: Floats, squares: Floats) -> Floats:
        biased = np.maximum(squares / s.n - (total / s.n) ** 2, 0)
        return np.where(s.n < 2, 0.25, biased * s.n / np.maximum(s.n - 1, 1))

    log = 2.01 * log_before(s)
    eps = np.sqrt(2 * variance(s.r, s.rr) * log / s.n) + 3 * log / s.n
    eta = np.sqrt(2 * variance(s.c, s.cc) * log / s.n) + 3 * log / s.n
    ratio = s.mean_r / np.maximum(s.mean_c, c_min)
    limit = {"cost": s.mean_c, "reward": s.mean_r}[guard]
    return or_infinite(eta < limit, ratio + 1.4 * (eps + ratio * eta) / s.mean_c)


def density(s: Seen) -> Floats:
    """(r + sqrt(2 ln t / n)) / c (SPEC A.10)."""
    return or_infinite(s.c > 0, (s.mean_r + np.sqrt(2 * np.log(s.t) / s.n)) / s.mean_c)


def ucb1(s: Seen) -> Floats:
    """r + sqrt(2 ln t / n) (SPEC D.4)."""
    return s.mean_r + np.sqrt(2 * np.log(s.t) / s.n)


# --- choices that are no argmax of a score, for one lane ----------------------------------------------------------


def kube_units(densities: Floats, price: Floats, money: float) -> Floats:
    """How many units of each arm the density-ordered greedy packs into ``money`` (SPEC A.10)."""
    units = np.zeros_like(price)
    for k in np.argsort(-densities, kind="stable"):
        units[k] = math.floor(money / price[k])
        money = max(money - units[k] * price[k], 0.0)
    return units


def best_sets(upper: Floats, lower: Floats, size: int) -> tuple[float, list[tuple[int, ...]]]:
    """The largest ratio of sums over all sets of ``size`` arms, and its sets (SPEC A.13)."""
    best, sets = -math.inf, []
    for arms in itertools.combinations(range(len(upper)), size):
        u, w = sum(float(upper[k]) for k in arms), sum(float(lower[k]) for k in arms)
        ratio = u / w if w > 0 else math.inf
        if ratio > best:
            best, sets = ratio, []
        if ratio == best:
            sets.append(arms)
    return best, sets


def mrcb_bounds(s: Seen, alpha: float = 2.0**-4) -> tuple[Floats, Floats]:
    """(min(r + eps, 1), max(c - eps, 0)) (SPEC A.13)."""
    eps = alpha * np.sqrt(log_before(s) / s.n)
    return np.minimum(s.mean_r + eps, 1), np.maximum(s.mean_c - eps, 0)


def gbr_means(weights: Floats, gbr_mean_bug: bool = False) -> Floats:
    """Means of arms with outcomes 0, ..., 1: sum p_j j/4; the code divides by 5 (A.15 #12)."""
    return weights / weights.sum(-1, keepdims=True) @ np.arange(5) / (5 if gbr_mean_bug else 4)
