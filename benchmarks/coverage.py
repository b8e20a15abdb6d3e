"""``python -m benchmarks.coverage [--only PART] [--quick]``: how often nominal 95 % intervals hold what they should.

Parts: means, bootstrap, strata (runs of given instances), bands, tails (median, quantile, cvar, tail_share), alarms
(how often tame samples are warned of), unwarned (coverage of a mean among samples without a warning, in cells where
most have one). A cell is the coverage in percent. In brackets with ``w``: most of these samples are warned of by name.
With ``<``: lock-in rarer than 3/n, which no sample of n can show. With ``!``: outside of 92 to 98, and no warning.
"""

import sys
import time

import numpy as np
import xarray

from jaxbandits._cli.command_line import Parser, one_of, parse_or_leave
from jaxbandits.statistics import bootstrap_interval, cvar, mean, median, quantile, simultaneous_band, tail_share
from jaxbandits.statistics.doubts import doubts_of, no_end, tail_doubts
from jaxbandits.statistics.order import quantile_ends

LOW, HIGH = 92, 98
TAME = ("normal", "uniform", "exponential", "gamma 2", "lognormal ½")
_AXES = ("instance", "experiment")


def lock_in(chance):
    """Exp(1), and with a small chance a disaster of 20 to 60: a run that locks in on a wrong arm."""

    def drawn(rng, shape):
        return rng.exponential(size=shape) + (rng.random(shape) < chance) * rng.uniform(20, 60, size=shape)

    return drawn, 1 + 40 * chance


def lognormal(sigma):
    """exp(σ N(0, 1)), and its mean."""
    return lambda rng, shape: rng.lognormal(0, sigma, shape), np.exp(sigma**2 / 2)


LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "gamma 2": (lambda rng, shape: rng.gamma(2, size=shape), 2.0),
    "lognormal ½": lognormal(0.5),
    "lognormal 1": lognormal(1.0),
    "lognormal 1.5": lognormal(1.5),
    "t, 3 d.o.f.": (lambda rng, shape: rng.standard_t(3, size=shape), 0.0),
    "lock-in 20 %": lock_in(0.2),
    "lock-in 10 %": lock_in(0.1),
    "lock-in 5 %": lock_in(0.05),
    "lock-in 1 %": lock_in(0.01),
}


class Cell:
    """Coverage, and the share of samples that were warned of, in percent."""

    def __init__(self, law, count, covered, warned):
        self.covered, self.warned = 100 * float(np.mean(covered)), 100 * float(np.mean(warned))
        self.rare = law.startswith("lock-in") and float(law.split()[1]) / 100 < 3 / count
        self.good = self.rare or self.warned >= 50 or LOW <= self.covered <= HIGH

    def __str__(self):
        text = f"{self.covered:.1f}"
        if self.rare:
            return f"<{text}"
        return f"({text} w)" if self.warned >= 50 else text if self.good else f"{text}!"


def show(title, columns, rows):
    """A table; how many cells are as they should be."""
    print(f"\n| {title} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)
    cells = [cell for row in rows.values() for cell in row if isinstance(cell, Cell)]
    if cells:
        good, counted = sum(cell.good for cell in cells), sum(not cell.rare for cell in cells)
        good -= sum(c.rare for c in cells)
        print(f"\n{good} of {counted} cells hold 92 to 98 % or warn, {len(cells) - counted} rare")


def sampled(law, shape, seed=0):
    """Of a law, by its name; the same numbers for the same name, shape and seed."""
    return LAWS[law][0](np.random.default_rng([seed, *law.encode(), *shape]), shape)


def warned(doubts):
    """Whether there is any doubt, ``[place]``."""
    return np.any([doubt.size > 0 for doubt in doubts], axis=0)


def hits(found, truth):
    """Whether the interval holds the truth."""
    low, high = (found[end] if isinstance(found, xarray.Dataset) else getattr(found, end) for end in ("low", "high"))
    return ((low <= truth) & (truth <= high)).values


def means(size):
    """One sample: the corrected t of ``mean`` and ``mean_interval``."""
    _single("mean", mean, (5, 10, 20, 50, 100, 200, 400), 4 * size)


def bootstrap(size):
    """One sample: the studentised bootstrap; below 30 units it is the corrected t."""
    _single("bootstrap_interval", lambda x: bootstrap_interval(x, resamples=999), (50, 100, 200), size)


def _single(title, interval, counts, many):
    rows: dict[str, list] = {}
    for law, (_, truth) in LAWS.items():
        rows[law] = []
        for count in counts:
            x = sampled(law, (count, many))
            covered = hits(interval(xarray.DataArray(x, dims=_AXES)), truth)
            rows[law].append(Cell(law, count, covered, warned(doubts_of(x[None], "instance", "mean"))))
    show(title, [f"n = {n}" for n in counts], rows)


def strata(size):
    """Runs of given instances of unequal scale: Welch and Satterthwaite's, from 10 runs each on the bootstrap."""
    shapes = ((19, 2), (19, 5), (6, 3), (5, 5), (4, 10), (2, 10), (4, 30))
    rows: dict[str, list] = {}
    axes = ("instance", "replicate", "experiment")
    for law, (_, truth) in LAWS.items():
        rows[law] = []
        for shape in shapes:
            scale = np.linspace(0.5, 2, shape[0])[:, None, None]
            x = scale * sampled(law, (*shape, size if shape[1] >= 30 else 4 * size))
            found = bootstrap_interval(xarray.DataArray(x, dims=axes), over="replicate", resamples=999)
            doubtful = warned(doubts_of(x, "replicate", "mean"))
            rows[law].append(Cell(law, shape[0] * shape[1], hits(found, truth * scale.mean()), doubtful))
    show("given instances × runs", [f"{a} × {b}" for a, b in shapes], rows)


def bands(size):
    """Curves of 20 marks whose last values are of these laws: noise along the way, and a run's own slope."""
    counts, marks = (10, 20, 50, 100), np.linspace(0.05, 1, 20)
    rows: dict[str, list] = {}
    for law, (_, truth) in LAWS.items():
        rows[law] = []
        for count in counts:
            many = size
            noise = np.random.default_rng(1).normal(size=(count, many, 20)).cumsum(axis=2) / 10
            x = sampled(law, (count, many, 1)) * marks + noise
            found = simultaneous_band(xarray.DataArray(x, dims=(*_AXES, "mark")), resamples=400)
            doubts = doubts_of(x[..., -1][None], "instance", "mean")
            rows[law].append(Cell(law, count, hits(found, truth * marks).all(axis=-1), warned(doubts)))
    show("simultaneous_band", [f"n = {n}" for n in counts], rows)


def tails(size):
    """Median, 90 % quantile, mean of the worst 10 %, and what they carry."""
    counts, q = (20, 50, 100, 400), 0.9
    parts = {
        "median": (median, lambda x: np.median(x), lambda x: _ends(x, 0.5)),
        "quantile 0.9": (lambda x: quantile(x, q), lambda x: np.quantile(x, q), lambda x: _ends(x, q)),
        "cvar 10 %": (lambda x: cvar(x, 0.1), _worst, lambda x: tail_doubts(x, 0.1, "instance", 0.95)),
        "tail_share 10 %": (
            lambda x: tail_share(x, 0.1),
            lambda x: 0.1 * _worst(x) / x.mean(),
            lambda x: [*tail_doubts(x, 0.1, "instance", 0.95), *doubts_of(x[None], "instance", "mean")],
        ),
    }
    for title, (function, truth, doubts) in parts.items():
        rows: dict[str, list] = {}
        for law in LAWS:
            if title.startswith("tail_share") and law in ("normal", "t, 3 d.o.f."):
                continue  # has no mean to carry
            true = truth(sampled(law, (1 << 22,), seed=1))
            rows[law] = []
            for count in counts:
                x = sampled(law, (count, size))
                found = function(xarray.DataArray(x, dims=_AXES))
                rows[law].append(Cell(law, count, hits(found, true), warned(doubts(x))))
        show(title, [f"n = {n}" for n in counts], rows)


def _ends(x, q):
    return [no_end(*quantile_ends(x, q, 0.95), x.shape[0], "instance", q, 0.95)]


def _worst(x):
    return np.sort(x)[-x.size // 10 :].mean()


def alarms(size):
    """Shares of samples of tame laws that are warned of, in percent."""
    counts = (11, 15, 20, 50, 100, 400)
    rows: dict[str, list] = {law: [] for law in TAME}
    for law in TAME:
        for count in counts:
            share = 100 * warned(doubts_of(sampled(law, (1, count, size)), "instance", "mean")).mean()
            rows[law].append(f"{share:.1f}")
    show("warned of, %", [f"n = {n}" for n in counts], rows)
    print(f"largest: {max(float(x) for row in rows.values() for x in row)} %")
    strata_alarms(size)


def strata_alarms(size):
    """The same for runs of given instances of equal scales, and of scales that differ by a factor of four."""
    shapes = ((19, 5), (14, 3), (8, 6), (3, 12), (4, 30))
    rows: dict[str, list] = {}
    for law in TAME:
        for name, least in (("equal", 1.0), ("by four", 0.5)):
            rows[f"{law}, {name}"] = []
            for shape in shapes:
                x = np.linspace(least, 1 / least, shape[0])[:, None, None] * sampled(law, (*shape, size))
                rows[f"{law}, {name}"].append(f"{100 * warned(doubts_of(x, 'replicate', 'mean')).mean():.1f}")
    show("warned of, %, given instances × runs", [f"{a} × {b}" for a, b in shapes], rows)


def unwarned(size):
    """Of the mean: coverage among the samples without a warning, where most of the samples of a cell have one."""
    counts = (11, 15, 20, 50, 100, 200, 400)
    rows: dict[str, list] = {}
    for law, (_, truth) in LAWS.items():
        rows[law] = []
        for count in counts:
            x = sampled(law, (count, 4 * size))
            covered = hits(mean(xarray.DataArray(x, dims=_AXES)), truth)
            told = warned(doubts_of(x[None], "instance", "mean"))
            cell = Cell(law, count, covered, told)
            rest = 100 * covered[~told].mean() if (~told).sum() >= 100 else np.nan
            rows[law].append("" if cell.rare or cell.warned < 50 else f"{rest:.1f} ({100 - cell.warned:.0f} %)")
    show("not warned of", [f"n = {n}" for n in counts], {law: row for law, row in rows.items() if any(row)})


PARTS = {"means": means, "bootstrap": bootstrap, "strata": strata, "bands": bands, "tails": tails, "alarms": alarms,
         "unwarned": unwarned}  # fmt: skip


def main():
    """Read the options, print the tables."""
    parser = Parser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--only", type=one_of(PARTS), metavar="PART", help=f"one part: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    options = parse_or_leave(parser)
    for name in [options.only] if options.only else PARTS:
        began = time.perf_counter()
        PARTS[name](400 if options.quick else 4000)
        print(f"({name}: {time.perf_counter() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
