"""``python -m benchmarks.clear [--only PART] [--quick]``: rates of false claims, and power.

Parts: level (how often ``dominance`` makes a false claim in tables of equal means), power (how
often it detects a difference), nulls (how often ``clear_pairs`` makes a false claim, in 1,000 data
sets each), adastop (the same for AdaStop's permutation test, and for t-tests over looks).
"""

import itertools

import numpy as np
import xarray
from scipy import stats

from benchmarks.common import run_parts
from jaxbandits.statistics import clear_pairs, dominance

RUNS, BOUND, SETTINGS = 1000, 100.0, 3


def equal_laws(rng, runs):
    """Three settings of one law; none is ahead in either claim."""
    return rng.normal(60, 3, (1, runs)) + rng.normal(0, 2, (SETTINGS, runs))


def equal_laws_lock_in(rng, runs, chance=0.05):
    """Equal laws, in which a run locks in with a small chance and loses 20 to 40."""
    stuck = (rng.random((SETTINGS, runs)) < chance) * rng.uniform(20, 40, (SETTINGS, runs))
    return equal_laws(rng, runs) - stuck


def equal_means_lock_in(rng, runs, chance=0.01):
    """Equal means: two settings a little better, but for 1 % of their runs, which lose 40."""
    stuck = rng.random((SETTINGS, runs)) < chance
    noise = rng.normal(60, 3, (1, runs)) + rng.normal(0, 0.3, (SETTINGS, runs))
    return noise + np.where(np.arange(SETTINGS)[:, None] > 0, 40 * chance - 40 * stuck, 0.0)


def equal_means_skewed(rng, runs):
    """Equal means, exponential noise in the second and its mirror image in the third."""
    noise = 2 * (rng.exponential(size=(SETTINGS, runs)) - 1) * np.array([[0.0], [1.0], [-1.0]])
    return rng.normal(60, 3, (1, runs)) + noise + rng.normal(0, 0.5, (SETTINGS, runs))


def equal_medians(rng, runs):
    """The first gains 1 in one half of the runs and loses 9 in the other; the others have one law."""
    first = np.where(rng.random(runs) < 0.5, 1.0, -9.0)
    rest = rng.normal(0, 0.1, (SETTINGS - 1, runs))
    return rng.normal(60, 3, (1, runs)) + np.vstack([first, rest])


def loss(chance):
    """A loss of 40 with a small chance, less its mean."""
    return lambda rng, shape: 40 * (chance - (rng.random(shape) < chance)), chance


# Laws of mean 0, and how often something happens without which a sample tells nothing of them (0:
# no such thing)
LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape) - 1, 0),
    "lognormal, σ = 1": (lambda rng, shape: rng.lognormal(0, 1, shape) - np.exp(0.5), 0),
    "lognormal, σ = 1.5": (lambda rng, shape: rng.lognormal(0, 1.5, shape) - np.exp(1.125), 0),
    "t, 3 d.o.f.": (lambda rng, shape: rng.standard_t(3, shape), 0),
    "Bernoulli ½": (lambda rng, shape: (rng.random(shape) < 0.5) - 0.5, 0.5),
    "loss of 40 in 10 %": loss(0.1),
    "loss of 40 in 3 %": loss(0.03),
    "loss of 40 in 1 %": loss(0.01),
}


def equal_means(rng, law, settings, runs):
    """Settings of mean 0 in the same worlds: a quiet one, the law, its mirror image, and so on."""
    sign = np.array([0, 1, -1])[np.arange(settings) % 3, None]
    noise = rng.normal(0, 0.3, (settings, runs)) * ("Bernoulli" not in law)
    return rng.normal(0, 3, runs) + noise + sign * LAWS[law][0](rng, (settings, runs))


def t_tests_of_all(x, level=0.05):
    """Which pairs differ by paired t-tests, at Bonferroni's level over all pairs."""
    first, second = np.triu_indices(len(x), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stats.ttest_rel(x[first], x[second], axis=1).pvalue
    return p <= level / first.size


def level(options):
    """How often of 100 tables of equal means is any pair clear, or one against the least?"""
    sets = 100 if options.quick else 2000
    print(f"\n{sets:,} tables in each cell\n\n| law | settings | n = 10 | 30 | 100 | 1000 |")
    print("|---|---|---|---|---|---|")
    for law, (_, chance) in LAWS.items():
        for settings in (2, 8, 20):
            cells = []
            for runs in (10, 30, 100, 1000):
                rng, count = np.random.default_rng(0), max(sets // (5 if runs > 100 else 1), 20)
                wrong = np.zeros((count, 3), bool)
                for table in range(count):
                    x = equal_means(rng, law, settings, runs)
                    clear = dominance(labelled(x), over="replicate")["clear"].values
                    chosen = clear[:, x.mean(axis=1).argmin()].any()
                    wrong[table] = clear.any(), chosen, t_tests_of_all(x).any()
                unseen = 1 - (1 - (1 - chance) ** runs) ** (settings - -(-settings // 3))
                any_pair, chosen, t = 100 * wrong.mean(axis=0)
                sign = "<" if chance and unseen > 0.05 else ""
                cells.append(f"{sign}{any_pair:.1f}, {chosen:.1f} ({t:.1f})")
            print(f"| {law} | {settings} | {' | '.join(cells)} |", flush=True)


def power(options):
    """How often of 100 tables is the worse setting called worse than the least? (By t-tests)"""
    sets, sizes = (100 if options.quick else 1000), (3, 4, 5, 6)
    print(f"\n{sets:,} tables in each cell; worse by so many standard errors of the difference\n")
    print(f"| law | settings | n | {' | '.join(map(str, sizes))} |\n|---|---|---|---|---|---|---|")
    for law, settings, runs in itertools.product(
        ("normal", "exponential", "t, 3 d.o.f."), (2, 8), (10, 30, 100)
    ):
        cells = []
        for size in sizes:
            rng, found = np.random.default_rng(1), np.zeros((sets, 2), bool)
            for table in range(sets):
                x = LAWS[law][0](rng, (settings, runs))
                x[0] += size * np.sqrt(2 / runs) * (np.sqrt(3) if law.startswith("t") else 1)
                least = x.mean(axis=1).argmin()
                worse = dominance(labelled(x), over="replicate")["larger"].values[0, least]
                by_t = t_tests_of_all(x)[: settings - 1]  # of the first against each other
                found[table] = worse, least > 0 and by_t[least - 1]
            cells.append("{:.0f} ({:.0f})".format(*100 * found.mean(axis=0)))
        print(f"| {law} | {settings} | {runs} | {' | '.join(cells)} |", flush=True)


# law, and which claims are false in it: (more in most runs, more on average)
NULLS = {
    "equal laws": (equal_laws, (True, True)),
    "equal laws, 5 % lock-in": (equal_laws_lock_in, (True, True)),
    "equal laws, 1 % lock-in": (
        lambda rng, runs: equal_laws_lock_in(rng, runs, 0.01),
        (True, True),
    ),
    "equal means, 1 % lock-in": (equal_means_lock_in, (False, True)),
    "equal means, 0.2 % lock-in": (
        lambda rng, runs: equal_means_lock_in(rng, runs, 0.002),
        (False, True),
    ),
    "equal means, skewed": (equal_means_skewed, (False, True)),
    "equal medians": (equal_medians, (True, False)),
}


def data_set(law, number):
    """Data set ``number`` of a law, ``[setting, run]``, in [0, 100]."""
    return np.clip(NULLS[law][0](np.random.default_rng([number, *law.encode()]), RUNS), 0, BOUND)


def labelled(earned):
    """Earnings as an array with the dimensions that clear_pairs wants."""
    return xarray.DataArray(earned, dims=("setting", "replicate"))


def nulls(options):
    """False claims over all looks at 1 to 1,000 runs, three pairs, 1,000 data sets a law."""
    sets = 100 if options.quick else 1000
    print(
        f"\n| law | of {sets} data sets: a false claim | of most runs | on average |\n|---|---|---|---|"
    )
    for law, (_, null) in NULLS.items():
        wrong = np.zeros((sets, 2), bool)
        for number in range(sets):
            pairs = clear_pairs(labelled(data_set(law, number)), BOUND, over="replicate")
            wrong[number] = [bool((part > 0).any()) for part in pairs]
        counts = [
            str(int(wrong[:, i].sum())) if null[i] else f"({int(wrong[:, i].sum())}: true)"
            for i in (0, 1)
        ]
        print(
            f"| {law} | {int(wrong[:, list(null)].any(axis=1).sum())} | {' | '.join(counts)} |",
            flush=True,
        )


def adastop(first, second, rng, size=20, looks=8, level=0.05, permutations=1000):
    """Runs after which AdaStop calls two settings different, 0 if it never does.

    Group sequential permutation test of the sum of differences, labels permuted within each batch,
    an equal part of the level spent at each look, as in Mathieu et al. (2023).
    """
    sums, spent = np.zeros(permutations), 0.0
    alive = np.ones(permutations, bool)
    observed = 0.0
    for k in range(looks):
        batch = np.concatenate([x[k * size : (k + 1) * size] for x in (first, second)])
        order = np.argsort(rng.random((permutations, 2 * size)), axis=1)
        sums += batch[order[:, :size]].sum(axis=1) - batch[order[:, size:]].sum(axis=1)
        observed += batch[:size].sum() - batch[size:].sum()
        values = np.sort(np.abs(sums[alive]))
        above = np.arange(values.size)[::-1] / permutations
        within = spent + above <= level * (k + 1) / looks
        if within.any():
            edge, spent = values[within][0], spent + above[within][0]
            if abs(observed) > edge:
                return (k + 1) * size
            alive &= np.abs(sums) <= edge
    return 0


def t_tests(first, second, looks=(20, 40, 80, 160)):
    """Whether paired t-tests over looks, at Bonferroni's level, call two settings different."""
    return any(
        stats.ttest_rel(first[:runs], second[:runs]).pvalue < 0.05 / len(looks) for runs in looks
    )


def false_differences(options):
    """Of two settings: false claims about means, by AdaStop and by t-tests."""
    sets, rng = (40 if options.quick else 400), np.random.default_rng(0)
    print(
        f"\n| law | of {sets} data sets: AdaStop differs | t-tests differ | clear on average here |"
    )
    print("|---|---|---|---|")
    for law, (_, null) in NULLS.items():
        if not null[1]:
            continue
        calls = np.zeros((sets, 3), bool)
        for number in range(sets):
            first, second = data_set(law, number)[:2]
            average = clear_pairs(
                labelled(np.stack([first, second])), BOUND, over="replicate"
            ).average
            calls[number] = [
                adastop(first, second, rng) > 0,
                t_tests(first, second),
                bool((average > 0).any()),
            ]
        print(f"| {law} | {' | '.join(str(int(n)) for n in calls.sum(axis=0))} |", flush=True)


if __name__ == "__main__":
    run_parts(
        "benchmarks.clear",
        __doc__,
        {"level": level, "power": power, "nulls": nulls, "adastop": false_differences},
    )
