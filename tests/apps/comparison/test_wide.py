"""Tables of requests: a column for each arm, a row for each request that all arms were tried on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps.comparison.comparison import compare
from tests.apps.comparison.test_read_arms import read

TRUTHS = {  # the text, how it is read, what each arm brought and cost, what is told
    "words before": (
        "cost_b,score_a,cost_a,score_b\n4,1,2,.5\n6,0,3,.25\n", {},
        {"a": ([1, 0], [2, 3]), "b": ([0.5, 0.25], [4, 6])}, "'score_a', 'score_b', 'cost_b', 'cost_a'"),
    "as routers have it, with words for right and wrong": (
        "id,m/llama-2-7b|total_cost,m/llama-2-7b,gpt-4.1|total_cost,gpt-4.1,tokens\n"
        "x1,1,True,2,False,70\nx2,3,False,4,True,80\n", {},
        {"m/llama-2-7b": ([1, 0], [1, 3]), "gpt-4.1": ([0, 1], [2, 4])}, "columns not used: 'id, tokens'"),
    "one price, decimal commas, running numbers": (
        "All of May\n\ncase;x;y\n1;0,5;1\n2;0,25;0\n3;0;0,5\n", {"columns": {"cost": "0.5"}, "drop": ["case"]},
        {"x": ([0.5, 0.25, 0], [0.5] * 3), "y": ([1, 0, 0.5], [0.5] * 3)}, "every pull has a cost of 0.5"),
    "scores beside other numbers": (
        "a_score,a_latency,b_score,b_latency\n1,70,.5,30\n0,80,1,20\n", {"columns": {"cost": "1"}},
        {"a": ([1, 0], [1, 1]), "b": ([0.5, 1], [1, 1])}, "columns not used: 'a_latency, b_latency'"),
    "a request without one of its scores": (
        "a,a cost,b,b cost\n1,2,,3\n0,4,1,5\n1,6,0,7\nNA,8,1,9\n", {},
        {"a": ([0, 1], [4, 6]), "b": ([1, 0], [5, 7])},
        "lines 2, 5 left out: a request without a number of each arm"),
    "a row and a model dropped, cents": (
        "q,a,a cost,b,b cost,c,c cost\nx,1,2,1,3,1,1\nmean,1,2,1,3,1,1\ny,0,2,1,4,1,1\n", {"drop": ["mean", "c"]},
        {"a": ([1, 0], [2, 2]), "b": ([1, 1], [3, 4])}, "line 3 dropped"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUTHS)
def test_a_column_for_each_arm_is_read(tmp_path: Path, name: str) -> None:
    text, options, truth, note = TRUTHS[name]
    table = read(tmp_path, text, wide=True, **options)
    (instance,) = table.instances
    columns = [(r.tolist(), c.tolist()) for r, c in instance.log]
    assert dict(zip(instance.arms, columns, strict=True)) == truth
    assert table.wide and note in "\n".join(table.notes)


def opposites(folder: Path, requests: int) -> Path:
    """Of two arms one is right where the other is wrong."""
    right = np.arange(requests) % 3 == 0
    rows = [f"{int(x)},{1 - int(x)}" for x in right]
    path = folder / "opposites.csv"
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    return path


ALONE = jb.policies.FixedSplit([[1.0, 0.0], [0.0, 1.0]])


def test_all_policies_are_asked_the_same_requests(tmp_path: Path) -> None:
    comparison = compare(opposites(tmp_path, 30), 1000.0, ALONE, runs=25, marks=2, wide=True,
                    columns={"cost": "1"})  # fmt: skip
    reward, means = comparison.data["reward"].values[:, 0], comparison.accounts.mean_reward[0]
    assert comparison.data["pulls"].values.tolist() == [[[30] * 25]] * 2  # of 30 requests, not 1000
    assert reward.sum(axis=0).tolist() == [30.0] * 25
    assert np.unique(reward[0]).size > 3  # other requests in other runs
    # A row has one weight for both arms, drawn anew for each run
    np.testing.assert_allclose(means.sum(axis=-1), 1, atol=1e-6)
    assert np.ptp(means[:, 0]) > 0.05
    posterior_means = comparison.plan.worlds.posterior.instances[0].draw(0, 0, range(25))
    np.testing.assert_allclose(posterior_means.reward, means, atol=1e-6)
    # The best arm brings most of what can be had
    assert (comparison.data["regret"].values[:, 0, :, -1].min(axis=0) < 1e-4).all()


@pytest.mark.integration
def test_the_answer_is_that_of_a_loop(tmp_path: Path) -> None:
    """Weights by exponentials, rows drawn by them, one arm for all requests until the money is
    spent: within four standard errors, for each arm of a file with costs that vary."""
    draw, n, runs, budget = np.random.default_rng(3), 60, 4000, 30.0
    score, cost = draw.uniform(size=(n, 2)), draw.uniform([0.2, 0.5], [0.6, 1.5], size=(n, 2))
    rows = ["a,a_cost,b,b_cost"] + [
        f"{score[i, 0]:.6f},{cost[i, 0]:.6f},{score[i, 1]:.6f},{cost[i, 1]:.6f}" for i in range(n)
    ]
    path = tmp_path / "router.csv"
    path.write_text("\n".join(rows) + "\n")
    data = compare(path, budget, ALONE, runs=1000, marks=1, wide=True).data
    brought = np.zeros((2, runs))
    for run in range(runs):
        weight = draw.exponential(size=n)
        met = draw.choice(n, n, p=weight / weight.sum())
        for k in range(2):
            before = np.cumsum(cost[met, k]) - cost[met, k]
            brought[k, run] = score[met, k][before < budget].sum()
    for ours, loop in zip(data["reward"].values[:, 0], brought, strict=True):
        error = np.hypot(ours.std() / 1000**0.5, loop.std() / runs**0.5)
        assert abs(ours.mean() - loop.mean()) < 4 * error
        assert ours.std() == pytest.approx(loop.std(), rel=0.1)
    # Run by run on the same requests: the spread of the difference, too
    apart = data["reward"].values[0, 0] - data["reward"].values[1, 0]
    assert apart.std() == pytest.approx((brought[0] - brought[1]).std(), rel=0.1)
