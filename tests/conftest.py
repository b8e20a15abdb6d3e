"""Strict jax, and a hypothesis that finds the same examples on every machine."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import jax
import pytest

# Tests leave nothing in the user's folders, nor do the commands that they start; `make test` has a cache of its own.
os.environ.setdefault("JAXBANDITS_CACHE", "off")

jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=200)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_go_with_their_module():
    """Hundreds of compiled programs would otherwise pile up to several GB in a worker."""
    yield
    jax.clear_caches()


ROWS = Path(__file__).parent / "integration_rows.txt"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests named in ``integration_rows.txt`` have the mark ``integration``: others of their kind play in every run."""
    wanted = {line for line in ROWS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}
    found = set()
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        for one in (name, name.partition("[")[0]):
            if one in wanted:
                item.add_marker(pytest.mark.integration)
                found.add(one)
    files = {item.nodeid.removeprefix("tests/").partition("::")[0] for item in items}
    whole = not any("::" in argument for argument in config.args) and not config.option.keyword
    if whole and (stale := {one for one in wanted - found if one.partition("::")[0] in files}):
        raise pytest.UsageError(f"integration_rows.txt names tests that are not there: {', '.join(sorted(stale))}")
