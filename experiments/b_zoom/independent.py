"""B-Zoom once more, as a loop that shares nothing with the library: does it give our numbers, or the printed ones?

Its own random numbers, instances, covering test and slope, in float64. It needs Numba (the ``test`` extra).
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np

from experiments.b_zoom import play, published
from experiments.b_zoom.published import STATISTICS
from experiments.common.rows import OURS, Row, row
from experiments.common.running import Options, kept

ROOM = 96  # points; a lane that needs more ends there, and is counted


def independent(options: Options) -> list[Row]:
    """The BZ column of Table 1 by both, cell by cell; how many agree with each other, and with the printed ones."""
    if importlib.util.find_spec("numba") is None:
        print("b_zoom independent: skipped, numba is not installed", flush=True)
        return [row("independent", "skipped", note="numba is not installed")]
    budgets, lambdas, instances = play.sizes(options)
    groups, mine = 2, play.bz_alone(options)
    ours, own_error = (f(mine) / 1e3 for f in (published.statistics, published.errors))
    rows, to_ours, to_printed, printed_to_ours = [], [], [], []
    for b, k in np.ndindex(len(budgets), len(lambdas)):
        pulls, full = _played(budgets[b], lambdas[k], groups, instances, options)
        value = published.statistics(pulls).mean(axis=-1) / 1e3
        spread = published.errors(pulls).mean(axis=-1) / 1e3  # of a statistic of one group
        for s, name in enumerate(STATISTICS):
            own, error = ours[s, b, k], own_error[s, b, k]
            apart = (value[s] - own) / np.sqrt(spread[s] ** 2 / groups + error**2)
            to_ours.append(apart)
            note = f"thousands of pulls; {groups} times {instances} instances; ours {own:.5g}, {apart:+.1f} s.e. away"
            printed = published.in_table1(budgets[b], lambdas[k], s, 0)
            if printed is not None:
                away = (value[s] - printed) / np.sqrt(spread[s] ** 2 * (1 + 1 / groups) + 1 / 12)
                to_printed.append(away)
                printed_to_ours.append(float(published.distance(np.asarray(float(printed)), own, error, 1.0)))
                note += f"; printed {printed}, {away:+.1f} s.e. away"
            item = f"independent B={budgets[b]} λ={lambdas[k]:g} BZ {name}" + (f"; {full} lanes full" if full else "")
            rows.append(row(item, value[s], spread[s] / groups**0.5, note=note, digits=".5g"))
    told = [published.inside("independent: within 3 s.e. of ours", to_ours, "both random", OURS)]
    for item, z in (("independent", to_printed), ("ours", printed_to_ours)):
        if z:
            told.append(
                published.inside(f"independent: {item} within 3 s.e. of the printed cells of BZ", z, "BZ alone")
            )
    return [*told, *rows]


def _played(budget: int, lam: float, groups: int, instances: int, options: Options) -> tuple[np.ndarray, int]:
    """Pulls ``[group, instance]``, and how many lanes filled their room."""

    def make() -> dict[str, np.ndarray]:
        from experiments.b_zoom.loop import b_zoom  # needs Numba

        began, rng = time.perf_counter(), np.random.default_rng([31, budget, round(1000 * lam)])
        centres, seeds = rng.random((groups, instances)), rng.integers(2**31, size=(groups, instances))
        pulls, full = np.zeros(centres.shape), 0
        for place, centre in np.ndenumerate(centres):
            pulls[place], points = b_zoom(budget, lam, steepest(centre, lam), centre, ROOM, int(seeds[place]))
            full += points == ROOM
        took = time.perf_counter() - began
        print(f"  independent, B = {budget}, λ = {lam:g}: {pulls.sum():.3g} rounds in {took:.0f} s", flush=True)
        return {"pulls": pulls, "full": np.array(full)}

    found = kept(options, f"independent_{budget}_{lam:g}", [f"{budget} {lam} {groups} {instances} {ROOM}"], make)
    return found["pulls"], int(found["full"])


def steepest(centre: float, lam: float) -> float:
    """The largest slope of μ_r/μ_c, on a fine grid."""
    x = np.linspace(0, 1, 200_001)
    ratio = (0.95 + 0.05 * x) / (lam + (1 - np.exp(-500 * (x - centre) ** 2)) / 5)
    return float(np.abs(np.diff(ratio)).max() * 200_000)
