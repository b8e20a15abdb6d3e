"""The Facebook ads file: the published instances, and its defect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.omega_ucb.ads import read_ads

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "facebook" / "data.csv"
PUBLISHED_K = [2, 3, 3, 3, 4, 6, 7, 9, 21, 23, 24, 33, 34, 38, 54, 54, 57, 77, 93]


@pytest.mark.skipif(not REAL.is_file(), reason=f"the Facebook file is not at {REAL}")
def test_published_instances_of_the_real_file() -> None:
    published, dropped = read_ads(REAL)
    assert sorted(len(i.arms) for i in published) == PUBLISHED_K and dropped["shifted"] == 382
    first = published[0]
    assert (first.name, first.arms[0], first.mean_reward[0]) == ("916/30-34/M", "708749", 1.0)
    for instance in published:  # the paper's mean / max * 0.99
        paper = instance.mean_reward / instance.mean_reward.max() * 0.99
        np.testing.assert_allclose(instance.mean_reward / instance.reward_bound, paper, rtol=1e-14)
        assert (instance.mean_cost / instance.cost_bound).max() == pytest.approx(0.99)


def test_rows_are_dropped_for_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "ads.csv"
    file.write_text(
        "ad_id,campaign_id,fb_campaign_id,age,gender,clicks,spent,total_conversion\n"
        "1,9,5,30-34,M,10,5,0\n2,9,5,30-34,M,4,1,2\n3,9,5,30-34,M,0,0,1\n4,9,5,30-34,M,1,2,3\n"
        "5,30-34,M,8,2,4,,\n6,9,5,40-44,F,8,2,4\n7,8,5,30-34,M,8,2,4\n8,30-34,M,8,2,4,,\n"
    )
    (only,), dropped = read_ads(file)
    assert (only.name, only.arms) == ("9/30-34/M", ("1", "2"))
    assert only.mean_reward.tolist() == [0.01, 0.5]  # 0.01 where there was no conversion
    reasons = {"shifted": 2, "nothing spent": 1, "more conversions than clicks": 1}
    assert dropped == reasons | {"alone in its group": 2}
