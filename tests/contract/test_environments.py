"""Every environment keeps the contract. A new environment is one more entry of ``WORLDS``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jaxbandits.testing import check_environment

from .worlds import KEY, WORLDS, world


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.quick_rows("null_arm")
@pytest.mark.sample_rows(
    *("null_arm", "beta", "empirical", "several_resources_and", "delayed", "piecewise"),
    *("requests_s", "reservoir_of_a_s", "contexts_"),
)
def test_environment_keeps_the_contract(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    # A delay is drawn by the round, means change with it, and a request is one round's.
    by_round = name.startswith(("delayed", "piecewise", "requests", "contexts"))
    worst = check_environment(world(name), key=KEY, counted=not by_round)
    record_property("largest |z| of an empirical mean", worst)
