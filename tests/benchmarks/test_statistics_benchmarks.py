"""What the statistics' benchmarks measure: laws with the means they say, nulls that are null,
AdaStop's level.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clear import NULLS, adastop, data_set, stops
from benchmarks.coverage import LAWS, Cell, sampled
from jaxbandits.apps.comparison import StoppingRule
from jaxbandits.statistics import ClearPairs, clear_pairs


@pytest.mark.parametrize("law", LAWS)
def test_laws_have_their_means(law: str) -> None:
    x = sampled(law, (200_000,))
    assert abs(x.mean() - LAWS[law][1]) < 4 * x.std() / np.sqrt(x.size)
    assert (sampled(law, (200_000,))[:5] == x[:5]).all()


@pytest.mark.parametrize("law", NULLS)
def test_claims_that_are_said_to_be_false_are(law: str) -> None:
    x = np.stack([data_set(law, number) for number in range(60)], axis=1).reshape(3, -1)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        difference = x[first] - x[second]
        size = np.sqrt(difference.size)
        if NULLS[law][1][0]:
            assert abs((difference > 0).mean() - 0.5) < 4 * 0.5 / size
        if NULLS[law][1][1]:
            assert abs(difference.mean()) < 4 * difference.std() / size
    assert x.min() > 0 and x.max() < 100  # nothing is cut off


def test_a_cell_is_good_where_it_covers_or_warns() -> None:
    def cell(law: str, covered: float, warned: float) -> str:
        hits = np.arange(1000) < 1000 * covered
        return str(Cell(law, 20, hits, np.arange(1000) < 1000 * warned))

    assert [cell("normal", *x) for x in ((0.95, 0), (0.9, 0.1), (0.9, 0.6), (0.985, 0))] == [
        "95.0",
        "90.0!",
        "(90.0 w)",
        "98.5!",
    ]
    assert cell("lock-in 10 %", 0.6, 0) == "<60.0" and cell("lock-in 20 %", 0.6, 0) == "60.0!"


def test_adastop_tells_laws_apart_and_seldom_equal_ones() -> None:
    rng = np.random.default_rng(1)
    assert adastop(rng.normal(1, 1, 160), rng.normal(0, 1, 160), rng) == 20
    equal = [
        adastop(rng.normal(0, 1, 80), rng.normal(0, 1, 80), rng, looks=4, permutations=200)
        for _ in range(80)
    ]
    assert np.mean(np.array(equal) > 0) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_where_it_would_have_stopped_is_a_multiple_of_the_batch() -> None:
    import xarray

    rng = np.random.default_rng(2)
    x = xarray.DataArray(
        rng.normal([[12.0], [10.0], [9.0]], 1, (3, 1000)), dims=("setting", "replicate")
    )
    pairs = clear_pairs(x, bound=30.0, over="replicate")
    assert isinstance(pairs, ClearPairs)
    runs, is_clear = stops(StoppingRule("clear", "average", 1000), pairs)
    assert is_clear and runs % 25 == 0 and runs - 25 < max(pairs.average.values.ravel()) <= runs
    assert stops(
        StoppingRule("clear", "average", 1000), ClearPairs(*(0 * part for part in pairs))
    ) == (1000, False)
