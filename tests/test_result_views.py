"""A result in a notebook: settings by parameter, tables, pictures, and names that stay short."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits._plots import short_names
from jaxbandits.policies import MUCB, OmegaUCB, SoftIndex
from jaxbandits.result import About
from tests.contract.worlds import KEY, world


@cache
def sample_result() -> jb.Result:
    policies = [OmegaUCB(rho=[0.25, 0.3]), MUCB()]
    limit = jb.TotalBudget([6.0, 9.0, 7.0], last_pull="counts")
    return jb.simulate(
        policies, world("bernoulli"), limit, key=KEY, replicates=4, marks=4, slots=16, engine="scan"
    )


def test_settings_by_parameter(tmp_path: Path) -> None:
    result = sample_result()
    for selection, rows in (
        (result.sel(rho=0.3), [1]),
        (result.sel(rho=[0.3, 0.25]), [0, 1]),
        (result.sel(policy="MUCB"), [2]),
        (result.sel(policy="OmegaUCB", rho=0.25), [0]),
    ):
        assert selection.settings == tuple(result.settings[row] for row in rows)
        assert np.array_equal(selection.regret.values, result.regret.values[rows])
        assert np.array_equal(selection.pulls.values, result.pulls.values[rows])
        assert selection.provenance()["policies"] == list(selection.settings)
        assert selection.sel(policy=str(selection.about.parameters[0]["policy"])).settings
    with pytest.raises(jb.InputError, match="rhoo: no policy of this result has it"):
        result.sel(rhoo=0.3)
    with pytest.raises(jb.InputError, match=r"no setting has \{'rho': 7\}; there are OmegaUCB"):
        result.sel(rho=7)
    result.save(tmp_path / "result.npz")
    assert (
        jb.Result.load(tmp_path / "result.npz").sel(rho=0.3).settings
        == result.sel(rho=0.3).settings
    )


def test_parameters_are_coordinates() -> None:
    regret = sample_result().regret
    assert regret.coords["rho"].values.tolist()[:2] == [0.25, 0.3]
    assert np.isnan(regret.coords["rho"].values[2])
    assert regret.coords["policy"].values.tolist() == ["OmegaUCB", "OmegaUCB", "MUCB"]
    assert float(regret.where(regret.policy == "MUCB", drop=True).coords["alpha"].item()) == 0.0625
    nested = jb.simulate(
        SoftIndex(OmegaUCB(rho=0.5), temperature=2.0), world("bernoulli"), jb.Horizon(3), key=KEY
    )
    assert nested.sel(rho=0.5, temperature=2).settings == nested.settings


def test_a_result_of_an_earlier_version_has_no_parameters() -> None:
    record = sample_result().about.as_json()
    del record["parameters"]
    old = dataclasses.replace(sample_result(), about=About.from_json(record))
    assert old.about.engines == sample_result().about.engines and old.about.parameters == ()
    assert "rho" not in old.regret.coords
    assert old.regret.equals(sample_result().regret.drop_vars(["policy", "rho", "alpha"]))


def test_a_table_for_pandas() -> None:
    result, table = sample_result(), sample_result().to_pandas()
    assert len(table) == 3 * 3 * 4 * 4
    axes = ["setting", "instance", "replicate", "mark"]
    assert list(table.columns[:7]) == [*axes, "policy", "rho", "alpha"]
    frame = table[
        (table.rho == 0.3) & (table.instance == 1) & (table.replicate == 2) & (table.mark == 1.0)
    ]
    assert frame.regret.item() == result.regret.values[1, 1, 2, -1]
    assert frame.status.item() == "exhausted"
    assert table.attrs["units"] == {
        "regret": "reward", "realised_regret": "reward", "reward": "reward", "spent": "cost", "rounds": "rounds"
    }  # fmt: skip


def test_a_notebook_shows_a_small_table() -> None:
    html = sample_result()._repr_html_()
    assert html.count("<tr>") == 4 and "OmegaUCB(rho=0.3)" in html and "12 exhausted" in html
    mean = sample_result().regret.values[1, ..., -1].mean()
    assert f"<td>{mean:,.4g}</td>" in html and len(html) < 2000


def test_pictures_show_what_the_result_says() -> None:
    result = sample_result()
    axes = result.plot.regret(over="replicate").axes[0]
    means = {line.get_label(): line.get_ydata()[-1] for line in axes.get_lines()}
    for i, name in enumerate(short_names(result.settings)):
        assert means[name] == pytest.approx(result.regret.values[i, ..., -1].mean())
    assert axes.get_ylabel() == "regret (reward)" and "spent" in axes.get_xlabel()

    figure = Figure()
    labels = {result.settings[2]: "third", result.settings[0]: "first"}
    assert result.plot.regret(over="instance", settings=labels, ax=figure.add_subplot()) is figure
    lines, interval = figure.axes[0].get_lines(), jb.statistics.mean(result.regret, over="instance")
    assert [line.get_label() for line in lines] == ["third", "first"]
    assert lines[0].get_ydata()[-1] == pytest.approx(float(interval.value[2, -1]))
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(float(interval.high[2].max()))
    assert "further instances" in figure.axes[0].get_title()
    assert result.plot.regret(over="instance", title="").axes[0].get_title() == ""
    doubts = jb.statistics.mean(result.regret[[0]], over="instance").warnings
    title = result.plot.regret(over="instance", settings=[result.settings[0]]).axes[0].get_title()
    assert doubts and all(doubt.partition(":")[0] in title for doubt in doubts)
    with pytest.raises(jb.InputError, match="over: 'mark' given"):
        result.plot.regret(over="mark")
    with pytest.raises(jb.InputError, match="settings: 'none' given"):
        result.plot.regret(over="replicate", settings=["none"])

    curves = result.plot.distribution().axes[0].get_lines()
    final = np.sort(result.regret.values[0, ..., -1].ravel())
    assert np.array_equal(curves[0].get_xdata(), final)
    assert curves[0].get_ydata()[-1] == pytest.approx(1 / 12)


def test_objects_speak_in_units_and_a_notebook_shows_their_numbers() -> None:
    arms = jb.environments.FiniteArms.bernoulli([0.75, 0.5], [0.5, 0.25])
    world, policy = jb.environments.WithNullArm(arms), OmegaUCB(rho=[0.25, 1.0])
    assert repr(world) == (
        "WithNullArm(FiniteArms(1 instance × 2 arms; BernoulliLaw; reward 0.75, 0.5; cost 0.5, 0.25))"
    )
    result = jb.simulate(policy, arms, jb.Horizon(20), key=jax.random.key(0), replicates=4, marks=2)
    ends = result.regret[..., -1]
    estimate = jb.statistics.mean(ends, over="replicate")
    alone = jb.statistics.mean(ends[0, :, :1], over="replicate")
    value, why = f"{float(ends[0, 0, 0]):.5g}", "no interval: 1 run; take more of them"
    assert (repr(alone), str(alone)) == (f"Estimate({value}; {why})", f"{value} ({why})")
    of_one = jb.statistics.mean(ends, over="instance")
    assert 'interval: 1 instance; over="replicate" estimates these' in str(of_one)
    assert "nan" not in f"{alone} {alone!r} {estimate!r}"
    lines = str(estimate).splitlines()
    assert [line.split()[0] for line in lines] == ["setting", *map(str, result.settings)]
    assert all(f"  {x:.5g} (" in line for x, line in zip(estimate.value, lines[1:], strict=True))
    gradient = jb.gradients.exact.estimate(jb.policies.MUCB(), arms, jb.Horizon(3))
    shown = [
        (arms, "<td>0</td><td>1</td><td>0.5</td><td>0.25</td>", "reward 0.75, 0.5"),
        (policy, "<td>rho</td><td>[0.25, 1.0]</td>", "rho=[0.25, 1.0]"),
        (result, "4 horizon", f"mean regret at the end {float(ends[0].mean()):.4g}"),
        (estimate, f"<td>{float(estimate.high[1]):.5g}</td>", f"{float(estimate.low[0]):.5g} to"),
    ]
    for thing, cell, words in shown:
        assert "\n" not in repr(thing) and words in repr(thing)
        assert cell in thing._repr_html_() and "<table>" in thing._repr_html_()
    slope = f"{gradient.gradient['mean_reward'][0, 0, 1]:.4g}"
    assert f"<td>{slope}</td>" in gradient._repr_html_()
    assert f"{slope} (standard error 0)" in repr(gradient)
    many = jb.environments.FiniteArms.bernoulli(np.full((20, 4), 0.5), np.full((20, 4), 0.5))
    assert many._repr_html_().count("<tr>") == 31 and "… 50 more rows" in many._repr_html_()


def test_a_name_that_is_nearly_right_is_named() -> None:
    with pytest.raises(AttributeError, match=r"no estimate; it has .*, exact, .*, smoothed"):
        jb.gradients.estimate  # noqa: B018
    with pytest.raises(AttributeError, match="no OmegaUcb; did you mean OmegaUCB"):
        jb.policies.OmegaUcb  # noqa: B018


def test_names_of_large_worlds_stay_short() -> None:
    means = np.full((100, 10), 0.5)
    arms = jb.environments.FiniteArms.bernoulli(means, means)
    assert (
        repr(arms)
        == "FiniteArms(100 instances × 10 arms; BernoulliLaw; reward 0.5 to 0.5; cost 0.5 to 0.5)"
    )
    assert repr(OmegaUCB(rho=0.25)) == "OmegaUCB(rho=0.25)"
    assert repr(OmegaUCB(rho=np.linspace(0.5, 2, 40))) == "OmegaUCB(rho=[40 values, 0.5 to 2])"
    traced = []
    jax.eval_shape(lambda rho: traced.append(repr(OmegaUCB(rho=rho))), np.float32(1))
    assert traced[0].startswith("OmegaUCB(rho=")


def test_a_run_that_is_not_known_is_not_left_out_of_a_mean() -> None:
    x = xarray.DataArray([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]], dims=("instance", "replicate"))
    for over in ("instance", "replicate"):
        with pytest.raises(jb.InputError, match="finite"):
            jb.statistics.mean(x, over=over)
