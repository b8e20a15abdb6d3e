"""Fluid linear programs of bandits with knapsacks: best mixtures of arms and rest."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def mixture_values(reward: np.ndarray, cost: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Value of max ⟨μ, π⟩ with ⟨ρ, π⟩ ≤ c, Σπ ≤ 1, π ≥ 0, for each instance (host, float64).

    Args:
        reward: μ ``[instance, action]``, NaN where absent.
        cost: ρ ``[instance, action]`` or ``[instance, action, d]``.
        c: ``[instance]`` or ``[instance, d]``.
    """
    return np.array([_solve(r, k, b, total=1.0) for r, k, b in zip(reward, cost, c, strict=True)])


def fluid_values(reward: np.ndarray, cost: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """Value of max Σ n_k μ_k with Σ n_k ρ_kj ≤ B_j, n ≥ 0, for each instance; shapes as :func:`mixture_values`."""
    return np.array([_solve(r, k, b, total=None) for r, k, b in zip(reward, cost, budget, strict=True)])


def _solve(reward: np.ndarray, cost: np.ndarray, limit: np.ndarray, total: float | None) -> float:
    exists = np.isfinite(reward)
    rows = np.atleast_2d(cost[exists].T)
    limits = np.atleast_1d(limit)
    if total is not None:
        rows, limits = np.vstack([rows, np.ones(exists.sum())]), np.append(limits, total)
    solution = linprog(-reward[exists], A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    return float(-solution.fun) if solution.status == 0 else float("inf")
