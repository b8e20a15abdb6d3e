"""``python -m benchmarks.coverage [--only PART] [--quick]``: the coverage of nominal 95 % intervals.

Parts: posterior (rates of arms in files of counts; also how often the arm reported as best is best),
means, bootstrap, strata (runs of given instances), bands, tails (median, quantile, cvar,
tail_share), alarms (how often well-behaved samples cause a warning), unwarned (coverage of a mean
among samples without a warning, in cells where most have one). A cell is the coverage in percent. In
brackets with ``w``: most of these samples cause a warning. With ``<``: lock-in rarer than 3/n, which
no sample of n can show. With ``!``: outside of 92 to 98, and no warning.
"""

import functools

import numpy as np
import xarray

from benchmarks.common import run_parts
from jaxbandits.apps.comparison import ArmsTable, Evidence, Instance
from jaxbandits.apps.comparison.worlds import posterior_of
from jaxbandits.statistics import (
    bootstrap_interval,
    cvar,
    mean,
    median,
    quantile,
    simultaneous_band,
    tail_share,
)
from jaxbandits.statistics.estimates import doubts_of, no_end, quantile_ends, tail_doubts

LOW, HIGH = 92, 98
TAME = ("normal", "uniform", "exponential", "gamma 2", "lognormal ½")
_AXES = ("instance", "experiment")


def lock_in(chance):
    """Exp(1), and with a small chance a disaster of 20 to 60: a run that locks in on a wrong arm."""

    def sample(rng, shape):
        return rng.exponential(size=shape) + (rng.random(shape) < chance) * rng.uniform(
            20, 60, size=shape
        )

    return sample, 1 + 40 * chance


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
    **{f"lock-in {share} %": lock_in(share / 100) for share in (20, 10, 5, 1)},
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


def table(title, columns, cell, names=LAWS):
    """Print ``cell(name, column)`` of each name that has any, and how many cells are as they should
    be.

    A column is a number of units, or (given instances, runs of each).
    """
    heads = [f"n = {x}" if isinstance(x, int) else f"{x[0]} × {x[1]}" for x in columns]
    print(f"\n| {title} | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    cells = []
    for name in names:
        row = [cell(name, column) for column in columns]
        if any(map(str, row)):
            print(f"| {name} | {' | '.join(map(str, row))} |", flush=True)
        cells += [x for x in row if isinstance(x, Cell)]
    if cells:
        rare = sum(x.rare for x in cells)
        good = sum(x.good for x in cells) - rare
        print(f"\n{good} of {len(cells) - rare} cells hold 92 to 98 % or warn, {rare} rare")


def sampled(law, shape, seed=0):
    """Samples of a law, by its name; the same numbers for the same name, shape and seed."""
    return LAWS[law][0](np.random.default_rng([seed, *law.encode(), *shape]), shape)


def warned(doubts):
    """Whether there is any doubt, ``[place]``."""
    return np.any([doubt.size > 0 for doubt in doubts], axis=0)


def hits(interval, truth):
    """Whether the interval holds the truth."""
    return ((interval.low <= truth) & (truth <= interval.high)).values


def one_sample(law, count, samples, interval):
    """Whether the interval of each of many samples holds the mean, and whether it is warned of."""
    x = sampled(law, (count, samples))
    covered = hits(interval(xarray.DataArray(x, dims=_AXES), over="instance"), LAWS[law][1])
    return covered, warned(doubts_of(x[None], "instance", "mean"))


def means(size):
    """One sample: the corrected t of ``mean``."""
    counts = (5, 10, 20, 50, 100, 200, 400)
    table("mean", counts, lambda law, n: Cell(law, n, *one_sample(law, n, 4 * size, mean)))


def bootstrap(size):
    """One sample: the studentised bootstrap; below 30 units it is the corrected t."""
    interval = functools.partial(bootstrap_interval, resamples=999)
    table(
        "bootstrap_interval",
        (50, 100, 200),
        lambda law, n: Cell(law, n, *one_sample(law, n, size, interval)),
    )


def strata(size):
    """Runs of instances of unequal scale: Welch and Satterthwaite's, from 10 runs the bootstrap."""

    def cell(law, shape):
        scale = np.linspace(0.5, 2, shape[0])[:, None, None]
        x = scale * sampled(law, (*shape, size if shape[1] >= 30 else 4 * size))
        labelled = xarray.DataArray(x, dims=("instance", "replicate", "experiment"))
        covered = hits(
            bootstrap_interval(labelled, over="replicate", resamples=999),
            LAWS[law][1] * scale.mean(),
        )
        return Cell(law, shape[0] * shape[1], covered, warned(doubts_of(x, "replicate", "mean")))

    table(
        "given instances × runs",
        ((19, 2), (19, 5), (6, 3), (5, 5), (4, 10), (2, 10), (4, 30)),
        cell,
    )


def bands(size):
    """Curves of 20 marks with last values of these laws: noise on the way, a run's own slope."""
    marks = np.linspace(0.05, 1, 20)

    def cell(law, count):
        noise = np.random.default_rng(1).normal(size=(count, size, 20)).cumsum(axis=2) / 10
        x = sampled(law, (count, size, 1)) * marks + noise
        band = simultaneous_band(
            xarray.DataArray(x, dims=(*_AXES, "mark")), over="instance", resamples=400
        )
        doubts = doubts_of(x[..., -1][None], "instance", "mean")
        return Cell(law, count, hits(band, LAWS[law][1] * marks).all(axis=-1), warned(doubts))

    table("simultaneous_band", (10, 20, 50, 100), cell)


def tails(size):
    """Median, 90 % quantile, mean of the worst 10 %, and what they carry."""
    q = 0.9
    measures: dict = {
        "median": (median, np.median, lambda x: _ends(x, 0.5)),
        "quantile 0.9": (
            lambda x, over: quantile(x, q, over=over),
            lambda x: np.quantile(x, q),
            lambda x: _ends(x, q),
        ),
        "cvar 10 %": (
            lambda x, over: cvar(x, 0.1, over=over),
            _worst,
            lambda x: tail_doubts(x, 0.1, "instance", 0.95),
        ),
        "tail_share 10 %": (
            lambda x, over: tail_share(x, 0.1, over=over),
            lambda x: 0.1 * _worst(x) / x.mean(),
            lambda x: [
                *tail_doubts(x, 0.1, "instance", 0.95),
                *doubts_of(x[None], "instance", "mean"),
            ],
        ),
    }
    for title, (function, truth, doubts) in measures.items():
        # two laws have no mean to carry
        names = [
            x
            for x in LAWS
            if not (title.startswith("tail_share") and x in ("normal", "t, 3 d.o.f."))
        ]
        true = {law: truth(sampled(law, (1 << 22,), seed=1)) for law in names}

        def cell(law, count, function=function, doubts=doubts, true=true):
            x = sampled(law, (count, size))
            return Cell(
                law,
                count,
                hits(function(xarray.DataArray(x, dims=_AXES), over="instance"), true[law]),
                warned(doubts(x)),
            )

        table(title, (20, 50, 100, 400), cell, names)


def _ends(x, q):
    return [no_end(*quantile_ends(x, q, 0.95), x.shape[0], "instance", q, 0.95)]


def _worst(x):
    return np.sort(x)[-x.size // 10 :].mean()


def alarms(size):
    """Percent of tame samples with a warning; last for instances of equal and unequal scales."""

    def alarm_share(law, count):
        return f"{100 * warned(doubts_of(sampled(law, (1, count, size)), 'instance', 'mean')).mean():.1f}"

    def stratified_alarm_share(name, shape):
        law = name.removesuffix(", equal").removesuffix(", by four")
        smallest = 0.5 if name.endswith("four") else 1.0
        x = np.linspace(smallest, 1 / smallest, shape[0])[:, None, None] * sampled(
            law, (*shape, size)
        )
        return f"{100 * warned(doubts_of(x, 'replicate', 'mean')).mean():.1f}"

    table("warned of, %", (11, 15, 20, 50, 100, 400), alarm_share, TAME)
    names = [f"{law}, {scales}" for law in TAME for scales in ("equal", "by four")]
    table(
        "warned of, %, given instances × runs",
        ((19, 5), (14, 3), (8, 6), (3, 12), (4, 30)),
        stratified_alarm_share,
        names,
    )


def unwarned(size):
    """Coverage of the mean among samples without a warning, where most have one."""

    def cell(law, count):
        covered, has_warning = one_sample(law, count, 4 * size, mean)
        cell = Cell(law, count, covered, has_warning)
        rest = 100 * covered[~has_warning].mean() if (~has_warning).sum() >= 100 else np.nan
        return "" if cell.rare or cell.warned < 50 else f"{rest:.1f} ({100 - cell.warned:.0f} %)"

    table("not warned of", (11, 15, 20, 50, 100, 200, 400), cell)


def posterior(size):
    """Central 95 % of rates of arms with 30 to 1,000 clicks; and how often the surest is best."""

    def by_spread(rng, arms, spread, mean=0.03):
        strength = (1 - mean) / (mean * spread**2) - 1
        return (
            rng.beta(mean * strength, (1 - mean) * strength, arms)
            if strength > 0
            else np.full(arms, mean)
        )

    truths = {
        "the stated prior": lambda rng, arms: by_spread(
            rng, arms, np.exp(rng.normal(np.log(0.5), 0.7))
        ),
        "a mean of 0.5 %": lambda rng, arms: by_spread(
            rng, arms, np.exp(rng.normal(np.log(0.5), 0.7)), 0.005
        ),
        "a mean of 30 %": lambda rng, arms: by_spread(
            rng, arms, np.exp(rng.normal(np.log(0.5), 0.7)), 0.3
        ),
        "rates differ by 3 %": lambda rng, arms: by_spread(rng, arms, 0.03),
        "by 20 %": lambda rng, arms: by_spread(rng, arms, 0.2),
        "by 150 %": lambda rng, arms: by_spread(rng, arms, 1.5),
        "every second a dud (a tenth)": lambda rng, arms: (
            0.03 * np.where(np.arange(arms) % 2, 0.1, 1)
        ),
    }

    def cell(truth, arms):
        rng, held, stated, right = np.random.default_rng([5, arms]), [], [], []
        for _ in range(max(20, size // arms)):
            rate = truths[truth](rng, arms)
            n = np.exp(rng.uniform(np.log(30), np.log(1000), arms)).round()
            x = rng.binomial(n.astype(int), rate).astype(float)
            instance = Instance(
                "file",
                tuple(map(str, range(arms))),
                x / n,
                np.ones(arms),
                1.0,
                2.0,
                None,
                Evidence("counts", n, x, n.copy(), whole=True),
            )
            file = ArmsTable("counts", (instance,), (), "conversions", "spent", pull_unit="click")
            rates = posterior_of(file).instances[0].draw(0, 0, range(400)).reward
            low, high = np.quantile(rates, (0.025, 0.975), axis=0)
            held.append(((low <= rate) & (rate <= high)).mean())
            best = np.bincount(rates.argmax(1), minlength=arms) / 400
            stated.append(best.max())
            right.append(rate[best.argmax()] == rate.max())
        return (
            f"{100 * np.mean(held):.1f} ({100 * np.mean(stated):.0f}, {100 * np.mean(right):.0f})"
        )

    table("coverage (said to be best, is), %", (3, 6, 10, 48, 150), cell, truths)


PARTS = (posterior, means, bootstrap, strata, bands, tails, alarms, unwarned)

if __name__ == "__main__":
    play = {
        part.__name__: lambda options, part=part: part(400 if options.quick else 4000)
        for part in PARTS
    }
    run_parts("benchmarks.coverage", __doc__, play)
