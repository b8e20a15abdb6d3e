"""Run times of solvers (ASlib) as censored arms: read a scenario, give rows and the usual yardsticks."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxbandits.core.errors import bad

SCENARIOS = ("SAT20-MAIN", "QBF-2016", "MAXSAT-PMS-2016", "CSP-Minizinc-Time-2016", "BNSL-2016", "TSP-LION2015")
CUTOFFS = {  # seconds, from the descriptions of aslib_data at 551b22be: for tables that come without one
    "SAT16-MAIN": 5000.0,
    "SAT18-EXP": 5000.0,
    "MIP-2016": 7200.0,
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
    """One scenario; a repetition of an instance (TSP-LION2015 has ten of each) counts as a row of its own.

    Either ``aslib/NAME/`` as ASlib ships it (``algorithm_runs.arff`` and ``description.txt``), or ``aslib/NAME.csv``:
    an instance a line, a solver a column, seconds, inf where unsolved. The cut-off is the description's
    (``aslib/NAME/description.txt``); a CSV may do without for the scenarios of :data:`CUTOFFS`.

    Raises:
        InputError: no such scenario, no cut-off, or one whose runs are not measured in seconds.
    """
    folder, table = data / "aslib" / name, data / "aslib" / f"{name}.csv"
    description = folder / "description.txt"
    said = description.read_text(encoding="utf-8") if description.is_file() else ""
    cutoff = _cutoff(said, name, description)
    if table.is_file():
        solvers, seconds = _from_csv(table)
    elif (folder / "algorithm_runs.arff").is_file():
        solvers, seconds = _from_arff(folder / "algorithm_runs.arff", said)
    else:
        raise bad("name", name, f"a scenario with {table} or {folder / 'algorithm_runs.arff'}")
    times = seconds / cutoff
    return Scenario(name, cutoff, solvers, np.where(times <= 1, times, np.inf))


def _field(description: str, field: str) -> str:
    """The first value of a field of a description: ``field: value``, ``field: [value, …]`` or a list of lines."""
    found = re.search(rf"^{field}\s*:[\s\-\[]*([^\s,\]]+)", description, flags=re.MULTILINE)
    return found[1].strip("\"'") if found else ""


def _cutoff(description: str, name: str, path: Path) -> float:
    if _field(description, "performance_type") not in ("", "runtime"):
        raise bad("name", name, "a scenario of run times (performance_type: runtime)")
    text = _field(description, "algorithm_cutoff_time")
    if not description and name in CUTOFFS:
        return CUTOFFS[name]
    try:
        cutoff = float(text)
    except ValueError:
        cutoff = 0.0
    if not 0 < cutoff < np.inf:
        raise bad("name", name, f"a scenario whose cut-off is known: write algorithm_cutoff_time: SECONDS to {path}")
    return cutoff


def _from_csv(path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file))
    return tuple(header[1:]), np.array([[float(x) for x in line[1:]] for line in lines])


def _from_arff(path: Path, description: str) -> tuple[tuple[str, ...], np.ndarray]:
    """(solvers, seconds ``[instance and repetition, solver]``); a run whose status is not ok is unsolved."""
    head, _, body = re.split(r"(?im)^\s*(@data)\s*$", path.read_text(encoding="utf-8"), maxsplit=1)
    names = [x.strip("\"'").lower() for x in re.findall(r"(?im)^\s*@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", head)]
    measure = (_field(description, "performance_measures") or "runtime").lower()
    kept = (line for line in body.splitlines() if line.strip() and not line.startswith("%"))
    runs: dict[tuple[str, str], dict[str, float]] = {}
    for cells in csv.reader(kept, quotechar="'", skipinitialspace=True):
        run = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        seconds = float(run[measure]) if run["runstatus"].lower() == "ok" else np.inf
        runs.setdefault((run["instance_id"], run["repetition"]), {})[run["algorithm"]] = seconds
    solvers = tuple(sorted({solver for of in runs.values() for solver in of}))
    missing = [place for place, of in runs.items() if len(of) < len(solvers)]
    if missing:
        raise bad(str(path), f"no run of some solver on {missing[0][0]}", "a table with every solver on every instance")
    return solvers, np.array([[of[solver] for solver in solvers] for of in runs.values()])
