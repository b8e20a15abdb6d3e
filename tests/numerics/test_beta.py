"""Beta draws from words, and tabulated laws: against scipy, whole parts exactly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from jaxbandits._numerics import beta
from jaxbandits._numerics.normal import standard_normal
from jaxbandits.environments.censored import _normal_knots
from jaxbandits.environments.noise import Beta

LATTICE = 1 << 22
EDGES = np.concatenate([[0], np.cumsum(np.left_shift(1, beta.cell_bits()))])
draw = jax.jit(beta.beta_from_words)
look_up = jax.jit(jax.vmap(beta.quantile_of_word, in_axes=(0, None)))


def lattice_words() -> jax.Array:
    """uint32[2, LATTICE]: an additive recurrence with the plastic number's steps.

    Its discrepancy gives CDFs of smooth functions of two uniforms to about 4e-5 (measured, shapes
    below).
    """
    plastic = 1.32471795724474602596
    i = np.arange(LATTICE, dtype=np.uint64)
    rows = [
        (i * np.uint64(int(2**64 / plastic**k)) + np.uint64(1 << 40)) >> np.uint64(32)
        for k in (1, 2)
    ]
    return jnp.asarray(np.stack(rows).astype(np.uint32))


WORDS = lattice_words()


def beta_cdf(
    a: NDArray[np.float64], b: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    lower_tail = special.betainc(a, b, np.clip(x, 0, 1))
    return np.where(x < 0.5, lower_tail, 1 - special.betainc(b, a, np.clip(1 - x, 0, 1)))


def ks_distance(sample: jax.Array, a: float, b: float) -> float:
    """sup |F_n - F| over every 97th order statistic (which misses less than 97 / n)."""
    x = np.sort(np.asarray(sample, np.float64))
    q = x[::97]
    f = special.betainc(a, b, q)
    above = np.searchsorted(x, q, "right") / x.size - f
    below = f - np.searchsorted(x, q, "left") / x.size
    return float(max(above.max(), below.max()))


def test_gamma_quantile_bound() -> None:
    """d(a) of the module docstring; with it the CDF error of every Beta(a, b) is below 2 x 5e-6."""
    z = np.linspace(-6.76, 6.76, 4001).astype(np.float32)
    f = jax.jit(beta._log_gamma_over_shape)
    exact_z = z.astype(np.float64)
    shapes = np.concatenate([10 ** np.linspace(0, 7, 150), np.linspace(1, 3, 50)]).astype(
        np.float32
    )
    for a in shapes:
        log_x = np.asarray(f(z, jnp.full_like(z, a)), np.float64)
        shape = float(a)
        x = shape * np.exp(log_x)
        lower_error = special.gammainc(shape, x) - special.ndtr(exact_z)
        upper_error = special.ndtr(-exact_z) - special.gammaincc(shape, x)
        assert np.abs(np.where(z < 0, lower_error, upper_error)).max() < 5e-6, a
        assert np.all(np.diff(log_x[::20]) > 0), a
        # Relative accuracy of the left tail: 1 % of the probability, down to 7e-12.  Above a = 1000
        # float32's rounding of log x alone is more than that.
        if shape <= 1000:
            ratio = special.gammainc(shape, x) / special.ndtr(exact_z)
            assert np.abs(ratio[z < 0] - 1).max() < 0.01, a


SHAPES = [(1, 1), (1, 5), (1, 1e5), (3, 2), (50, 1), (1.5, 2.5), (1e5, 3e5), (1e6, 1e6), (1, 1e7)]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_draw_cdf(a: float, b: float) -> None:
    """Target 1e-4, lattice discrepancy (up to 4e-5) and float32 atoms included."""
    x = draw(WORDS, jnp.float32(a), jnp.float32(b))
    assert x.dtype == jnp.float32
    assert ks_distance(x, a, b) < 1e-4


def test_draw_extremes() -> None:
    ends = jnp.array(
        [0, 1, 2**29 - 1, 2**29, 2**30, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], jnp.uint32
    )
    shapes = jnp.array([1, 1.5, 2, 1e3, 1e6, 1e7], jnp.float32)
    w0, w1, a, b = jnp.meshgrid(ends, ends, shapes, shapes)
    x = np.asarray(draw(jnp.stack([w0, w1]), a, b))
    assert np.all(np.isfinite(x)) and x.min() > 0 and x.max() <= 1


def reference_cell(word: int) -> tuple[int, int]:
    cell = int(np.searchsorted(EDGES, word, "right")) - 1
    width = int(EDGES[cell + 1] - EDGES[cell])
    return cell, ((word - int(EDGES[cell])) << beta.FRACTION_BITS) // width


def test_cell_of() -> None:
    assert EDGES[-1] == 2**32 and EDGES.size == beta.KNOTS
    assert np.array_equal(EDGES[::-1], 2**32 - EDGES)
    uniform = np.random.default_rng(1).integers(0, 2**32, 2000)
    small = np.random.default_rng(2).integers(0, 2**22, 1000)
    words = np.concatenate([EDGES[:-1], EDGES[1:] - 1, uniform, small, 2**32 - 1 - small])
    cell, fraction = jax.jit(beta.cell_of)(jnp.asarray(words.astype(np.uint32)))
    assert cell.dtype == jnp.int32 and fraction.dtype == jnp.uint32
    for word, c, f in zip(
        words.tolist(), np.asarray(cell).tolist(), np.asarray(fraction).tolist(), strict=True
    ):
        assert (c, f) == reference_cell(word)


def test_interpolate_is_exact() -> None:
    rng = np.random.default_rng(3)
    top = 2**beta.TICK_BITS
    pairs = np.sort(rng.integers(0, top + 1, (4000, 2)), axis=1)
    pairs[:6] = [(0, top), (0, top - 1), (1, top), (0, 0), (top, top), (0, 4096 * 4095)]
    fractions = rng.integers(0, 2**beta.FRACTION_BITS, 4000)
    fractions[:2000:2] = 2**beta.FRACTION_BITS - 1
    fractions[1:7:2] = 2**beta.FRACTION_BITS - 1
    lo, hi = (jnp.asarray(p.astype(np.int32)) for p in pairs.T)
    got = np.asarray(beta.interpolate(lo, hi, jnp.asarray(fractions.astype(np.uint32))))
    expected = [
        a + ((b - a) * f >> beta.FRACTION_BITS)
        for (a, b), f in zip(pairs.tolist(), fractions.tolist(), strict=True)
    ]
    assert got.tolist() == expected


@pytest.mark.parametrize("cell", [0, 5, 31, 32, 62, 63, 254, 255, 510, 511, 700, 1021])
@pytest.mark.parametrize("step", [1, 3, 4096, 12345678, 2**24])
def test_mean_is_exact(cell: int, step: int) -> None:
    """One cell rises by step, all else is flat: the sum over that cell's words, one by one."""
    knots = np.where(np.arange(beta.KNOTS) > cell, step, 0).astype(np.int32)[None]
    width = int(EDGES[cell + 1] - EDGES[cell])
    position = np.arange(width, dtype=np.int64)
    fraction = (position << beta.FRACTION_BITS) // width
    inside = int(np.sum(step * fraction >> beta.FRACTION_BITS))
    total = inside + step * (2**32 - int(EDGES[cell + 1]))
    assert beta._mean_ticks(knots)[0] == total / 2**32


def probe_words() -> NDArray[np.uint32]:
    """28 words a cell, ascending."""
    parts = np.concatenate([[0, 1e-4, 1e-3, 0.01], np.arange(1, 24) / 24, [1.0]])
    words = (EDGES[:-1, None] + np.diff(EDGES)[:, None] * parts).astype(np.int64)
    return np.minimum(words, EDGES[1:, None] - 1).ravel().astype(np.uint32)


def law_error(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Largest CDF error and largest mean error of the tabulated laws.

    An outcome of t ticks stands for a value in (t - 0.5, t + 1.5) ticks: half a tick for the knots'
    rounding and one for the interpolation's floor.
    """
    knots, mean = beta.quantile_table(a, b)
    assert knots.dtype == np.int32 and knots.shape == (a.size, beta.KNOTS) and mean.shape == a.shape
    assert knots.min() >= 0
    assert knots.max() <= 2**24
    assert np.all(np.diff(knots, axis=1) >= 0)
    words = probe_words()
    ticks = np.asarray(look_up(jnp.asarray(knots), jnp.asarray(words)), np.float64)
    assert np.all(np.diff(ticks, axis=1) >= 0)
    u = (words + 0.5) / 2.0**32
    over = beta_cdf(a[:, None], b[:, None], (ticks - 0.5) / 2**24) - u
    under = u - beta_cdf(a[:, None], b[:, None], (ticks + 1.5) / 2**24)
    return float(max(over.max(), under.max())), float(np.abs(mean / 2**24 - a / (a + b)).max())


NAMED = np.array(
    [(0.01, 0.01), (0.01, 0.05), (0.01, 1e3), (1e3, 1e3), (1, 1), (1e-3, 5), (1e-3, 1e3)]
).T


def shapes(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    if kind == "random":
        a, b = 5 - rng.uniform(0, 5, (2, 300))
    elif kind == "extreme":
        a, b = np.concatenate([10 ** rng.uniform(-2, 3, (2, 150)), NAMED], axis=1)
    elif kind == "one tiny":
        tiny, rest = 10 ** rng.uniform(-3, -2, 100), 10 ** rng.uniform(-1, 3, 100)
        a, b = np.concatenate([tiny, rest]), np.concatenate([rest, tiny])
    else:  # nearly a coin: the jump from 0 to 1 takes a few cells, so that is where the table is coarse
        a, b = np.concatenate([10 ** rng.uniform(-3, -1, (2, 100)), [[1e-3], [1e-3]]], axis=1)
    return a, b


@pytest.mark.parametrize(
    ("kind", "cdf", "mean"),
    [
        ("random", 1e-4, 1e-5),
        ("extreme", 1e-4, 1e-5),
        ("one tiny", 1.5e-4, 1e-5),
        ("two tiny", 8e-4, 1e-4),
    ],
)
@pytest.mark.quick_rows("two tiny-0.0008-0.0001")
def test_laws_of_the_tables(kind: str, cdf: float, mean: float) -> None:
    errors = law_error(*shapes(kind))
    assert errors[0] < cdf and errors[1] < mean


def test_table_shapes_and_errors() -> None:
    knots, mean = beta.quantile_table(np.ones((2, 1)), [1.0, 2.0, 3.0])
    assert knots.shape == (2, 3, beta.KNOTS) and mean.shape == (2, 3)
    # Beta(1, 1) has x = u: 168 ticks are 1e-5, the error allowed to the interpolated quantiles.
    assert np.abs(knots[0, 0] - EDGES / 2**8).max() < 168
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="positive"):
            beta.quantile_table(1.0, bad)


# --- Tails: every word of both ends, two times 2¹⁷ of them

ENDS = np.arange(1 << 17, dtype=np.uint32)
TAILS = [
    *((shape, shape) for shape in (1.0, 2.5, 100.0, 1e3, 1e4, 1e5, 1e9)),
    (5.0, 1e6),
    (1e6, 30.0),
    (40.0, 0.3),
]


def tail_ratios(outcomes: np.ndarray, quantile: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """How often an end lies beyond its quantile over how often it should, from outside in."""
    beyond = np.searchsorted(np.maximum.accumulate(outcomes), quantile)
    return beyond / (chances * 2.0**32)


@pytest.mark.parametrize(("a", "b"), TAILS)
def test_tails_are_the_laws_own(a: float, b: float) -> None:
    """Chances down to 10⁻⁸ within a tenth, give or take two ticks; nothing far away."""
    knots, mean = beta.quantile_table(a, b)
    law, chances = stats.beta(a, b), np.array([1e-5, 1e-6, 1e-7, 1e-8])
    for words, sign, quantile, chance in (
        (ENDS, 1, law.ppf, law.cdf),
        (~ENDS, -1, law.isf, law.sf),
    ):
        ticks = np.asarray(beta.quantile_of_word(jnp.asarray(knots), jnp.asarray(words)))
        at, slack = quantile(chances), 1 + 2 / (chances * 2.0**32)
        ratio = tail_ratios(sign * ticks, sign * at * 2**24, chances)
        inner, outer = (chance(at + sign * by / 2**24) / chances for by in (-2, 2))
        assert (0.9 * inner / slack <= ratio).all(), (sign, ratio, inner)
        assert (ratio <= 1.1 * outer * slack).all(), (sign, ratio, outer)
    x, width = knots / 2.0**24, np.ldexp(1.0, beta.cell_bits() - 32)
    low, high = x[:-1] - law.mean(), x[1:] - law.mean()
    spread = np.sqrt((width * (low**2 + low * high + high**2)).sum() / 3)
    assert spread == pytest.approx(law.std(), rel=1e-3)
    assert abs(mean / 2**24 - law.mean()) < 1e-3 * law.std() + 2.0**-24
    furthest = np.abs(ppf_ends(law) - law.mean()).max() + 3 * 2.0**-24
    assert np.abs(x - law.mean()).max() <= furthest * (1 + 1e-6)


def ppf_ends(law: Any) -> np.ndarray:
    return np.array([law.ppf(2.0**-33), law.isf(2.0**-33)])


def test_tails_of_normals_and_of_what_is_made_of_them() -> None:
    chances = np.array([1e-5, 1e-6, 1e-7, 1e-8])
    noise = Beta(concentration=2e4)
    for words, sign in ((ENDS, 1), (~ENDS, -1)):
        z = np.asarray(standard_normal(jnp.asarray(words)), np.float64)
        copula = np.asarray(beta.quantile_of_word(jnp.asarray(_normal_knots()), jnp.asarray(words)))
        mean = jnp.full(words.shape, 2**22, jnp.int32)  # a quarter: one of the tabulated means
        around = np.asarray(noise.outcome(mean, jnp.asarray(words))) / 2.0**24
        law = stats.beta(5e3, 15e3)
        ends = (law.ppf if sign > 0 else law.isf)(chances)
        normal = sign * special.ndtri(chances)
        for x, quantile in ((z, normal), (copula / 2.0**20, normal), (around, ends)):
            ratio = tail_ratios(sign * x, sign * quantile, chances)
            assert (np.abs(ratio - 1) < 0.1 + 2 / (chances * 2**32)).all(), ratio
