"""Strict jax, and a hypothesis that finds the same examples on every machine."""

from __future__ import annotations

import os

import hypothesis
import jax
import psutil
import pytest

from jaxbandits.apps._cli.console import collect_rarely

# Tests leave nothing in the user's folders, nor do the commands that they start; `make test` has a
# cache of its own.
os.environ.setdefault("JAXBANDITS_CACHE", "off")

collect_rarely()
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None, max_examples=200
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


MOST_BYTES = 3 << 30


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_make_room():
    """Modules share programs; hundreds of large ones would pile up in a worker."""
    yield
    if psutil.Process().memory_info().rss > MOST_BYTES:
        jax.clear_caches()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rows that ``integration_rows`` names are integration, and all ``quick_rows`` leaves out; but
    those that ``sample_rows`` leaves out play in ``make test-long`` alone.
    """
    for item in items:
        row = item.name.partition("[")[2].removesuffix("]")
        slow, quick, sample = (
            {row for mark in item.iter_markers(f"{kind}_rows") for row in mark.args}
            for kind in ("integration", "quick", "sample")
        )
        if sample and not row.startswith(tuple(sample)):
            item.add_marker(pytest.mark.rows)
        elif row in slow or (quick and row not in quick):
            item.add_marker(pytest.mark.integration)
