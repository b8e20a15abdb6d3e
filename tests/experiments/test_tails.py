"""What the study of ω-UCB's tails computes from regrets and pulls."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.omega_ucb_tails import (
    criteria,
    groups,
    header,
    least_in,
    lock_ins,
    not_worse,
    resampled,
    row_of,
    run_statistics,
)

RANDOM = np.random.default_rng(0)


def test_a_lock_in_is_most_of_the_money_on_one_wrong_arm() -> None:
    reward, cost = np.array([[0.5, 0.5, 0.49]]), np.array([[0.5, 0.9, 0.5]])  # ratios 1, 0.56, 0.98
    pulls = np.array([[[900, 10, 10]], [[10, 900, 10]], [[10, 10, 900]], [[300, 160, 290]]])
    wrong, costly = lock_ins(pulls, reward, cost)
    assert wrong[:, 0].tolist() == [False, True, True, False]  # the last: no arm has more than half
    # 2 % worse is wrong, and not costly
    assert costly[:, 0].tolist() == [False, True, False, False]


def test_statistics_of_a_resample_are_those_of_its_values() -> None:
    values = RANDOM.lognormal(size=300)
    times = resampled(300)[:3]
    measures = criteria(values, times)
    for i, counts in enumerate(times):
        sample = np.sort(np.repeat(values, counts))
        assert measures["mean"][i] == pytest.approx(sample.mean())
        assert measures["worst"][i] == pytest.approx(sample[-3:].mean())
        assert measures["tail_share"][i] == pytest.approx(sample[-3:].sum() / sample.sum())
        assert measures["median"][i] == sample[149] and measures["q99"][i] == sample[296]


def test_a_few_runs_that_carry_the_mean_are_counted() -> None:
    regret = np.concatenate([np.full(990, 1.0), np.full(10, 1000.0)])
    wrong = regret > 1
    measures = run_statistics(RANDOM.permutation(regret), wrong, np.zeros_like(wrong))
    assert measures["half"] == 6 and measures["tail_share"][0] == pytest.approx(10_000 / 10_990)
    assert "heavy tail" in measures["warned"]
    assert measures["lock_in"][0] == 0.01 and measures["lock_in"][1] < 0.01 < measures["lock_in"][2]
    assert measures["costly_lock_in"][:2] == (0.0, 0.0) and measures["costly_lock_in"][2] > 0
    assert measures["median"] == (1.0, 1.0, 1.0)
    assert len(row_of(measures)) == len(header())


def test_what_cannot_be_told_apart_stays_in_the_set() -> None:
    noise = RANDOM.lognormal(0, 1, 400)
    regret = np.stack([10 + noise, 10 + RANDOM.permutation(noise), 30 + noise])
    for criterion in ("mean", "median", "q99", "worst"):
        best, among = not_worse(regret)[criterion]
        assert best in (0, 1) and among.tolist() == [True, True, False], criterion
    # a paired difference is clear although the two samples overlap
    assert not_worse(np.stack([noise, noise + 0.01]))["mean"][1].tolist() == [True, False]


def test_groups_leave_out_what_is_over() -> None:
    np.testing.assert_array_equal(groups(np.arange(14.0).reshape(2, 7), 3), [[1, 4], [8, 11]])


def test_the_least_of_all_and_of_the_papers_grid() -> None:
    means = np.array([[3.0, 1.0, 1.0], [1.0, 2.0, 4.0], [2.0, 3.0, 2.0]])  # of ρ = ¼, 0.3 and ½
    assert least_in(means, (0.25, 0.3, 0.5)) == [(2, 2), (1, None), (0, 1)]
    assert least_in(means[:1], (np.nan,)) == [(3, None)]
