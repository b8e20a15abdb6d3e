"""Run times of solvers (ASlib) as censored arms: read ``aslib/<scenario>.csv``, give rows and the usual yardsticks."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

CUTOFFS = {
    "SAT20-MAIN": 5000.0,
    "QBF-2016": 1800.0,
    "MAXSAT-PMS-2016": 1800.0,
    "CSP-Minizinc-Time-2016": 1200.0,
    "BNSL-2016": 7200.0,
    "TSP-LION2015": 3600.0,
}


class Scenario(NamedTuple):
    """Run times in cut-offs, ``f64[instance, solver]``, inf = not solved within the cut-off."""

    name: str
    cutoff: float
    solvers: tuple[str, ...]
    times: np.ndarray

    @property
    def par10(self) -> np.ndarray:
        """PAR10 in seconds, ``[instance, solver]``: the run time, or 10 cut-offs."""
        return np.where(np.isfinite(self.times), self.times, 10.0) * self.cutoff

    @property
    def single_best(self) -> float:
        """Mean PAR10 of the best single solver, seconds."""
        return float(self.par10.mean(axis=0).min())

    @property
    def virtual_best(self) -> float:
        """Mean PAR10 of the best solver of every instance, seconds: no policy without features can reach it."""
        return float(self.par10.min(axis=1).mean())

    def rows(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(reward, consumption) per solver: 1 if solved, and the time in cut-offs."""
        return [(np.isfinite(t).astype(float), t) for t in self.times.T]


def read(data: Path, name: str) -> Scenario:
    """One scenario; a repetition of an instance (TSP-LION2015 has ten of each) counts as a row of its own."""
    with (data / "aslib" / f"{name}.csv").open(newline="") as file:
        header, *lines = list(csv.reader(file))
    times = np.array([[float(x) for x in line[1:]] for line in lines]) / CUTOFFS[name]
    return Scenario(name, CUTOFFS[name], tuple(header[1:]), np.where(times <= 1, times, np.inf))
