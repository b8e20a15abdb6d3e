"""What a run that recommends an arm is worth."""

from __future__ import annotations

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies, statistics
from jaxbandits.environments import FiniteArms
from tests.contract.worlds import KEY


def test_what_a_run_that_stops_is_worth() -> None:
    arms = FiniteArms.bernoulli(
        [[0.8, 0.5, 0.3], [0.4, 0.5, 0.9]], [[0.9, 0.1, 0.5], [0.5, 0.4, 0.8]]
    )
    reward, cost = arms.values()
    limit = jb.Horizon(3000)
    result = jb.simulate(
        policies.ChernoffOverlap(delta=0.2), arms, limit, key=KEY, replicates=20, marks=3
    )
    named = result.recommended.values
    wrong, regret = statistics.error(result, arms), statistics.simple_regret(result, arms)
    best = reward.argmax(axis=1)[None, :, None]
    np.testing.assert_array_equal(wrong.values, named != best)
    np.testing.assert_array_equal(
        regret.values, (reward.max(axis=1)[:, None] - np.take_along_axis(reward, named[0], 1))[None]
    )
    assert not statistics.error(result, arms, within=1.0).any()
    saved = statistics.saved(result, arms, limit)
    np.testing.assert_array_equal(saved.values, 3000 - result.rounds.values[..., -1])
    committed = statistics.committed_regret(result, arms, limit)
    np.testing.assert_allclose(
        committed, result.regret.values[..., -1] + saved.values * regret.values, atol=1e-9
    )
    assert (saved.values > 0).any() and committed.dims == ("setting", "instance", "replicate")
    ratio = statistics.error(result, arms, goal="ratio")
    np.testing.assert_array_equal(
        ratio.values, named != (reward / cost).argmax(axis=1)[None, :, None]
    )
    with pytest.raises(jb.InputError, match="goal: 'money' given"):
        statistics.error(result, arms, goal="money")
