"""Index policies on Bernoulli arms: one loop, and a score for each policy.

A score takes (n, Σr, Σc, 1/n, Σr², Σc², t, ln t, ln(t − 1), smallest mean cost, p, q): of one arm,
float32, with t the number of the round that is decided, p a constant of the policy and q one of the
lane.
"""

import numba
import numpy as np

from benchmarks.loops import FAST, INF, F, below, counts, over_lanes, pull, zeros


def loop(score, squares=False, least_cost=False):
    """``play(mean_reward, mean_cost, budget, p, q, seed) -> (rounds, reward)`` of each lane.

    ``squares``: keep Σr² and Σc², as policies with variances must; ``least_cost``: find the
    smallest mean cost; while it is 0, many arms tie at +∞, so the search for the best starts at a
    random one.
    """

    @over_lanes
    def play(mean_reward, mean_cost, budget, p, q, state):
        width = mean_reward.size
        n, reward, cost = counts(width)
        inverse, value = zeros(width), zeros(width)
        reward2, cost2 = zeros(width if squares else 1), zeros(width if squares else 1)
        spent, t, won, lane_constant = 0.0, 0, 0.0, F(q)
        while spent < budget:
            arm = t
            if t >= width:
                now, log_t, log_before = F(t + 1), np.log(F(t + 1)), np.log(F(t))
                min_cost = INF
                if least_cost:
                    for j in range(width):
                        min_cost = min(min_cost, cost[j] * inverse[j])
                for j in range(width):
                    s = j if squares else 0
                    value[j] = score(
                        n[j],
                        reward[j],
                        cost[j],
                        inverse[j],
                        reward2[s],
                        cost2[s],
                        now,
                        log_t,
                        log_before,
                        min_cost,
                        p,
                        lane_constant,
                    )
                arm, best, first = 0, F(-1.0), 0
                if least_cost:
                    state, first = below(state, width)
                for j in range(first, width):
                    if value[j] > best:
                        best, arm = value[j], j
                for j in range(first):
                    if value[j] > best:
                        best, arm = value[j], j
            state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
            inverse[arm] = F(1.0) / n[arm]
            if squares:
                reward2[arm] += r * r
                cost2[arm] += c * c
            spent, won, t = spent + c, won + r, t + 1
        return t, won

    return play


SCORES: dict = {}
inlined = numba.njit(fastmath=FAST, inline="always")


def score(**kind):
    """A score and what its loop needs (see `loop`), put into SCORES under its name."""

    def put(function):
        compiled = inlined(function)
        SCORES[function.__name__] = compiled, kind
        return compiled

    return put


@inlined
def wilson(total, n, inv, k):
    half, root = k * F(0.5), np.sqrt(k)
    return total + half + root * np.sqrt(total * (n - total) * inv + k * F(0.25))


@score()
def omega_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    k = F(2) * p * log_t
    return wilson(r, n, inv, k) / (n + k) / ((c * c * inv) / wilson(c, n, inv, k))


@inlined
def eta(total, squares, n, inv):
    largest = total * (n - total) * inv
    return (
        F(1)
        if n < F(30) or largest <= F(0)
        else min(max(F(1) - (total - squares) / largest, F(0)), F(1))
    )


@score(squares=True)
def omega_star_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    z = F(2) * p * log_t
    k, kc = z * eta(r, r2, n, inv), z * eta(c, c2, n, inv)
    return wilson(r, n, inv, k) / (n + k) / ((c * c * inv) / wilson(c, n, inv, kc))


@score()
def m_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    e = p * np.sqrt(log_before * inv)
    lower = c * inv - e
    return min(r * inv + e, F(1)) / lower if lower > F(0) else INF


@score()
def c_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return (r * inv + p * np.sqrt(log_before * inv)) / (c * inv) if c > F(0) else INF


@score()
def i_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return r / c + p * np.sqrt(log_before * inv) if c > F(0) else INF


@inlined
def ratio_bound(r, c, inv, e, min_cost):
    lower = max(c * inv - e, min_cost)
    bound = r / c + e / (c * inv) * (F(1) + min(r * inv + e, F(1)) / lower)
    return bound if c > F(0) and lower > F(0) else INF


@score()
def budget_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return ratio_bound(r, c, inv, np.sqrt(p * log_before * inv), q)


@score(least_cost=True)
def estimated_budget_ucb(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return ratio_bound(r, c, inv, np.sqrt(p * log_before * inv), min_cost)


@inlined
def in_disc(r, c, inv, explored):
    mr, mc, beta = r * inv, c * inv, explored * inv * F(0.5)
    a = np.sqrt(beta / (mr * mr + mc * mc - beta))
    under = mc - a * mr
    return (mr + a * mc) / under if mc * mc > beta and under > F(0) else INF


@score()
def ucb_sc_plus(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return in_disc(r, c, inv, np.log(t * inv))


@score()
def ucb_sc(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return in_disc(r, c, inv, log_t)


@inlined
def not_refuted(n, r, c, inv, explored):
    if c <= F(0):
        return INF
    level = explored * inv
    mr, nr, mc, nc, z = max(r * inv, F(1e-30)), (n - r) * inv, c * inv, (n - c) * inv, F(2) * level
    up = z * F(0.5) + np.sqrt(z) * np.sqrt(mr * nr + z * F(0.25))
    down = z * F(0.5) + np.sqrt(z) * np.sqrt(mc * nc + z * F(0.25))
    excess = np.log1p(up / mr) - np.log1p(z) + np.log1p(down / mc)
    for _ in range(5):
        half = np.exp(-excess * F(0.5))
        turned = min(max(mc / mr * half * half, F(1e-36)), F(1e18))
        gap = -mc * np.expm1(-excess)
        middle = (nr - nc - gap) / mr - gap if mr > F(0.5) else turned * (F(1) + mr) - (F(1) + mc)
        root = np.sqrt(middle * middle + F(4) * turned * nr * nc)
        s = min(F(2) * gap / (nc + turned * nr + root), mc)
        co = (mr + s) * turned / (F(1) + s)
        of_reward = np.log1p(s) - mr * np.log1p(s / mr)
        of_cost = nc * np.log1p(-min(s, F(1 - 2.0**-24))) + mc * np.log1p(
            s * max(F(1) - co, F(0)) / co
        )
        excess = min(max(excess - (of_reward + of_cost - level) / s, F(1e-12)), F(140))
    half = np.exp(excess * F(0.5))
    return min(mr * half * (half / mc), F(1e30))


@score()
def kl_ucb_sc_plus(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return not_refuted(n, r, c, inv, np.log(t * inv))


@score()
def kl_ucb_sc(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return not_refuted(n, r, c, inv, log_t)


@score()
def fractional_kube(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return (r * inv + np.sqrt(F(2) * log_t * inv)) / (c * inv) if c > F(0) else INF


@score()
def ucb_bv1(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    s = np.sqrt(log_before * inv)
    under = q - s
    return r / c + (F(1) + F(1) / q) * s / under if c > F(0) and under > F(0) else INF


@score(least_cost=True)
def ucb_bv2(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    s = np.sqrt(log_before * inv)
    under = min_cost - s
    return r / c + (F(1) + F(1) / under) * s / min_cost if c > F(0) and under > F(0) else INF


@score()
def pd_bwk(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    mr, mc, share = r * inv, c * inv, q * inv
    lower = mc - (np.sqrt(mc * share) + share)
    return min(mr + np.sqrt(mr * share) + share, F(1)) / lower if lower > F(0) else INF


@inlined
def width_b2(total, squares, n, inv, share):
    spread = (
        max(squares - total * total * inv, F(0)) / max(n - F(1), F(1)) if n >= F(2) else F(0.25)
    )
    return np.sqrt(F(2) * spread * share) + F(3) * share


@score(squares=True)
def ucb_b2(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    share = F(2.01) * log_before * inv
    e, h = width_b2(r, r2, n, inv, share), width_b2(c, c2, n, inv, share)
    rate = r / c
    return rate + F(1.4) * (e + rate * h) / (c * inv) if h < c * inv else INF


@score()
def ucb1(n, r, c, inv, r2, c2, t, log_t, log_before, min_cost, p, q):
    return r * inv + np.sqrt(F(2) * log_t * inv)
