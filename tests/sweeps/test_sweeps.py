"""Sweeps: the numbers of simulate in any way; folders that refuse, repair and continue."""

from __future__ import annotations

import csv
import dataclasses
import errno
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray

import jaxbandits as jb
from jaxbandits import _files
from jaxbandits.apps._cli.status import status_lines
from jaxbandits.sweeps import StorageError, Sweep, store, sweep
from jaxbandits.sweeps import spec as spec_module
from jaxbandits.sweeps.spec import describe, first_difference, forecast, load_spec, make_plan
from jaxbandits.sweeps.store import Folder, decode, encode, read_logs
from tests.apps.commands import command
from tests.processes import ROOT, python

RHO = [0.0625, 0.25, 1.0]
AXES = ("setting", "environment", "budget", "instance", "replicate", "mark")


def budget_of(environment, budget):
    return jb.TotalBudget(budget, last_pull="counts")


def world(instances=3):
    return jb.environments.random_bernoulli(jax.random.key(1), instances=instances, arms=3)


def spec(**changes):
    usual = {
        "policies": [jb.policies.OmegaUCB(rho=RHO), jb.policies.MUCB(alpha=[0.0625, 0.25])],
        "environments": {"three": world(), "two": world(2)},
        "constraint": budget_of,
        "budgets": [4.0, 16.0],
        "replicates": 2,
        "seed": 5,
        "marks": 3,
        "engine": "scan",
        "block_seconds": 2e-5,
    }
    return Sweep(**(usual | changes))


def contents(folder):
    """Every file outside the log, by name."""
    files = [x for x in Path(folder).rglob("*") if x.is_file() and x.parent.name != "log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def blocks(folder):
    """How many are finished."""
    return len(Folder(folder).listed())


def blocks_begun(folder):
    """For each run of the folder, how many blocks it had to do."""
    return [
        [note["missing"] for note in notes if note["event"] == "start"]
        for notes in read_logs(Path(folder))
    ]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished sweep: its folder and its result."""
    folder = tmp_path_factory.mktemp("done")
    return folder, sweep(spec(), folder)


# ---- what comes out


def test_the_numbers_are_those_of_simulate(done):
    _, result = done
    data = result.data
    assert data["regret"].dims == AXES
    assert list(result.results) == [
        (policy, name, budget)
        for name in ("three", "two")
        for budget in (0, 1)
        for policy in ("OmegaUCB", "MUCB")
    ]
    for name, environment in (("three", world()), ("two", world(2))):
        for budget in (4.0, 16.0):
            alone = jb.simulate(
                [jb.policies.OmegaUCB(rho=RHO), jb.policies.MUCB(alpha=np.array([0.0625, 0.25]))],
                environment,
                budget_of(environment, budget),
                key=jax.random.key(5),
                replicates=2,
                marks=3,
                engine="scan",
            )
            for policy in ("OmegaUCB", "MUCB"):
                setting = dataclasses.replace(alone.sel(policy=policy), final={})
                cell = result.results[policy, name, int(budget == 16.0)]
                jb.testing.assert_same_results(setting, cell, f"{policy} on {name}")
                about = dataclasses.replace(cell.about, device=setting.about.device)
                assert about == setting.about
            part = data.sel(environment=name, budget=budget)
            part = part.isel(instance=slice(environment.instances))
            for quantity in ("regret", "realised_regret", "reward", "spent", "rounds"):
                np.testing.assert_array_equal(
                    part[quantity].values, getattr(alone, quantity).values, err_msg=quantity
                )
            np.testing.assert_array_equal(part["status"].values, alone.ended)
    absent = data.sel(environment="two").isel(instance=2)
    assert np.isnan(absent["regret"].values).all() and (absent["status"].values == -1).all()


def test_the_dataset_is_labelled_and_survives_the_disk(done):
    folder, result = done
    data = result.data
    assert repr(result).startswith("SweepResult: 5 settings, 2 environments, ")
    assert "\n" not in repr(result)
    curve = result.curve("OmegaUCB", "two", 1)
    assert curve.recommendation() in repr(curve) and curve.recommendation() in str(result)
    assert curve.apart["rho"].values.tolist() == RHO and str(curve.regret).startswith("rho  ")
    with pytest.raises(jb.InputError, match=r"budget_index: \('two', 16\) given.* 1 for 16"):
        result.curve("OmegaUCB", "two", budget_index=16)
    with pytest.raises(jb.InputError, match=r"^environment, budget_index: \(None, 0\) given"):
        result.curve("OmegaUCB")  # one of two environments
    xarray.testing.assert_identical(sweep(spec()).data, data)  # in memory as on disk
    assert data["policy"].values.tolist() == ["OmegaUCB"] * 3 + ["MUCB"] * 2
    np.testing.assert_array_equal(data["rho"].values, [*RHO, np.nan, np.nan])
    np.testing.assert_array_equal(data["alpha"].values, [np.nan] * 3 + [0.0625, 0.25])
    assert data["setting"].values[1] == "OmegaUCB rho=0.25"
    for name in ("regret", "spent", "rounds"):
        assert data[name].attrs["units"] and data[name].attrs["long_name"]
    with xarray.open_dataset(folder / "result.nc", engine="scipy") as stored:
        xarray.testing.assert_equal(stored.load(), data)
        assert stored["regret"].attrs == data["regret"].attrs
        assert json.loads(stored.attrs["about"])["seed"] == 5


def test_regret_is_drawn_by_budget(done):
    axes = done[1].plot.regret("two").axes[0]
    ends = done[1].data["regret"].sel(environment="two").isel(instance=slice(2), mark=-1, setting=1)
    line = axes.get_lines()[1]
    assert line.get_label() == "OmegaUCB, ρ = 0.25" and axes.get_xlabel() == "budget"
    assert line.get_xdata().tolist() == [0.0, 4.0, 16.0]
    means = ends.mean(["instance", "replicate"]).values
    np.testing.assert_allclose(line.get_ydata()[1:], means, atol=1e-6)
    with pytest.raises(jb.InputError, match="environment: None given; it must be 'three' or"):
        done[1].plot.regret()


def test_as_data_frames(done):
    data, table = done[1].data, done[1].to_pandas()
    assert list(table.columns[:7]) == [*AXES, "policy"]
    assert len(table) == data["regret"].size and table.attrs["units"]["spent"] == "cost"
    frame = table.query(
        "setting == 'OmegaUCB rho=0.25' and environment == 'three' and budget == 16"
    )
    cells = data["regret"].sel(setting="OmegaUCB rho=0.25", environment="three", budget=16.0)
    np.testing.assert_array_equal(frame.regret.to_numpy(), cells.values.ravel())


def test_censored_arms_on_a_horizon():
    result = sweep(
        Sweep(
            policies=jb.policies.RCUCB("legal", alpha=[0.1, 1.0]),
            environments=jb.environments.g1(["PosCorr"], arms=2, limits=2),
            constraint=jb.Horizon(30),
            replicates=3,
        )
    )
    assert result.data.sizes["budget"] == 1 and result.data["budget"].values[0] == 30
    assert "RCUCB" in result.policies[0] and result.parameters(result.policies[0]) == ["alpha"]
    assert set(result.data["rounds"].values.ravel()) == {30.0}
    assert (result.data["censored"].values >= 0).all()


# ---- blocks


def test_again_computes_nothing_and_changes_nothing(done, tmp_path):
    folder, _ = done
    before, runs = contents(folder), blocks_begun(folder)
    assert runs == [[len(make_plan(spec()).blocks)]] and runs[0][0] >= 12
    sweep(spec(), folder)
    assert blocks_begun(folder) == [*runs, []]
    assert contents(folder) == before
    sweep(spec(), tmp_path / "elsewhere")
    assert contents(tmp_path / "elsewhere") == before


def test_blocks_hold_every_lane_once_the_long_ones_first():
    plan = make_plan(spec(block_seconds=5e-6))
    for unit in plan.units:
        blocks = [block for block in plan.blocks if block.unit is unit]
        lanes = np.concatenate([block.lanes for block in blocks])
        assert sorted(lanes) == list(range(unit.task.order.size))
        _, instance, _ = np.unravel_index(lanes, unit.task.shape)
        assert (np.diff(unit.layout.expected[instance]) <= 0).all()
        assert len(blocks) > 1 and min(block.lanes.size for block in blocks) >= 1
    assert [block.number for block in plan.blocks] == list(range(len(plan.blocks)))


def test_harmed_blocks_are_named_and_computed_anew(done):
    folder, _ = done
    before = contents(folder)
    flipped, cut, empty, missing, unfinished, *_ = sorted((folder / "blocks").iterdir())
    content = flipped.read_bytes()
    flipped.write_bytes(content[:-200] + bytes([content[-200] ^ 1]) + content[-199:])
    cut.write_bytes(cut.read_bytes()[:1000])
    empty.write_bytes(b"")
    missing.unlink()
    unfinished.rename(unfinished.parent / f".jaxbandits-{7:016x}.tmp")
    notices = []
    sweep(spec(), folder, notice=notices.append)
    assert contents(folder) == before
    assert blocks_begun(folder)[-1] == [5]
    assert len(notices) == 3
    for path, text in zip((flipped, cut, empty), notices, strict=True):
        assert str(path) in text and "recomputed" in text
    arrays = decode(content)  # the checksum is held against the bytes when a block is used, too
    flipped.write_bytes(encode({name: x + 1 for name, x in arrays.items()}))
    with pytest.raises(jb.InputError, match="block 0: missing or damaged"):
        Folder(folder).get(0)
    flipped.write_bytes(encode(arrays))
    assert Folder(folder).get(0) == content


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"seed": 6}, "seed"),
        ({"budgets": [4.0, 17.0]}, "budgets"),
        ({"engine": "auto"}, "engine"),
        ({"over": "instance"}, "over"),
        (
            {"policies": [jb.policies.OmegaUCB(rho=[0.0625, 0.25, 2.0]), spec().policies[1]]},
            "policies.OmegaUCB.rho",
        ),
        ({"policies": jb.policies.OmegaUCB(rho=RHO)}, "policies.MUCB"),
        # Blocks are numbered by the order: names alone would give one policy's blocks to another.
        ({"policies": spec().policies[::-1]}, "order"),
        ({"environments": dict(reversed(spec().environments.items()))}, "order"),
        ({"environments": {"three": world(), "two": world(1)}}, "environments.two"),
        ({"constraint": lambda e, b: jb.TotalBudget(b, last_pull="forfeits")}, "last_pull"),
    ],
)
def test_a_changed_spec_is_refused_by_name(done, changes, field):
    folder, _ = done
    before = contents(folder)
    with pytest.raises(jb.InputError, match=re.escape(field) + r".* given, but .* was begun with"):
        sweep(spec(**changes), folder)
    assert contents(folder) == before


def test_another_version_is_refused_and_equal_values_in_other_clothes_are_not(done, monkeypatch):
    same = spec(
        policies=[jb.policies.OmegaUCB(rho=np.float32(RHO)), jb.policies.MUCB(alpha=(0.0625, 0.25))]
    )
    sweep(same, done[0])
    versions = {**spec_module.versions(), "code": "another"}
    monkeypatch.setattr("jaxbandits.sweeps.spec.versions", lambda: versions)
    with pytest.raises(jb.InputError, match=r"versions\.code: 'another' given, but"):
        sweep(same, done[0])


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(jb.InputError, match=r"out: .* there is 'thesis.tex'"):
        sweep(spec(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    blocks = tmp_path / "other" / "blocks"  # without their manifest they are nobody's
    blocks.mkdir(parents=True)
    (blocks / "00000-x.npz").write_bytes(b"")
    with pytest.raises(jb.InputError, match=r"out: .* there is 'blocks/00000-"):
        sweep(spec(), tmp_path / "other")


HOLD = """
import sys, time
from jaxbandits.sweeps.store import Folder
with Folder(sys.argv[1]).alone():
    print("held", flush=True)
    time.sleep(300)
"""


def test_a_run_keeps_others_out_until_it_dies(done):
    command = [sys.executable, "-c", HOLD, str(done[0])]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert Folder(done[0]).in_use()
        with pytest.raises(jb.InputError, match=r"out: .* no other run is using"):
            sweep(spec(), done[0])
        process.kill()
        process.wait()
    assert not Folder(done[0]).in_use()
    sweep(spec(), done[0])


def test_disk_full(tmp_path, done, monkeypatch, capsys):
    """The fifth write fails: what is there is whole, and the next run ends with the bytes."""
    write, calls = _files.write_whole, []

    def full(path, do):
        calls.append(path)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, do)

    monkeypatch.setattr(store, "write_whole", full)
    text = r"block \d+ could not be written to .*: no space left; 4 finished blocks are intact"
    with pytest.raises(StorageError, match=text):
        sweep(spec(), tmp_path / "out", workers=1)
    assert len(Folder(tmp_path / "out").sound()[0]) == 4
    monkeypatch.setattr(store, "write_whole", write)
    sweep(spec(), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(done[0])


# ---- the recommended values


@jb.pytree
class ItsOwnBudget(jb.policies.UCB1):
    """A policy with a parameter that is called like an axis."""

    budget: float = jb.leaf()


def test_two_parameters_are_in_words_and_names_stay_names(tmp_path):
    one, timed = jb.policies.OmegaUCB(rho=RHO), ItsOwnBudget(budget=[1.0, 2.0, 4.0])
    policies = {"=cmd()|x": one, "pair": two_parameters(), "timed": timed}
    result = sweep(spec(policies=policies, environments=world(), budgets=[5.0]), tmp_path)
    assert result.parameters("pair") == ["rho", "floor"]
    (name,) = result.parameters("timed")  # an axis keeps its name
    assert name == "ItsOwnBudget.budget"
    assert result.data[name].values[-3:].tolist() == [1.0, 2.0, 4.0]
    assert result.data["budget"].values.tolist() == [5.0]
    with (tmp_path / "sensitivity.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} == {"'=cmd()|x", "pair", "timed"}, "a name is no formula"
    assert all(np.isfinite(float(row["regret"])) for row in rows), "numbers stay numbers"
    words = {row[2]: row[3] for row in result.best_values().rows}
    assert re.fullmatch(
        r"rho = .*, floor = .*; not clearly worse: \d of the other 5 settings", words["pair"]
    )


@pytest.mark.integration
def test_several_environments_and_budgets_are_panels() -> None:
    two = {"one": world(), "two": world()}
    figure = sweep(spec(environments=two, budgets=[5.0, 9.0])).plot.sensitivity("rho")
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 4 and titles[0].startswith("one, budget 5: least regret ")


@jb.pytree
class TwoParameters(jb.policies.OmegaUCB):
    floor: float = jb.leaf(default=0.0, at_least=0)

    def score(self, arms):
        return super().score(arms) + self.floor / arms.n


def two_parameters():
    return jb.grid(TwoParameters, rho=[0.25, 1.0], floor=[0.0, 0.5, 1.0])


def test_each_setting_is_a_line_of_the_table(done):
    folder, result = done
    shown = result.best_values()
    assert len(shown.rows) == 4 * 2 and "few units" in shown.rows[0][-1]
    assert shown.rows[0][3] == result.curve("OmegaUCB", "three").recommendation()
    assert repr(shown) == shown.text() and "np.float64" not in repr(result.sensitivity())
    assert re.fullmatch(r"[\d.]+ \([-\d.]+ to [\d.]+\)", shown.rows[0][4])
    table = (folder / "sensitivity.csv").read_text().splitlines()
    assert table[0].startswith("environment,budget,policy,rho,alpha,regret,low,high,difference,")
    assert table[2].startswith("three,4,OmegaUCB,0.25,,")
    assert len(table) == 1 + 4 * 5
    row = dict(zip(table[0].split(","), table[2].split(","), strict=True))
    regret = result.data["regret"].sel(environment="three", budget=4.0).isel(setting=1, mark=-1)
    assert float(row["regret"]) == pytest.approx(float(regret.mean()), rel=1e-8)


# ---- what a sweep is


def test_descriptions():
    assert describe(np.float32([0.5])) == {"dtype": "<f4", "values": [0.5]}
    assert describe(np.zeros(100)) != describe(np.ones(100))
    assert describe(world()) == describe(world()) != describe(world(2))
    assert describe(functools.partial)["is"] == "functools.partial"
    with pytest.raises(jb.InputError, match="cannot be distinguished from another"):
        describe({"x": object()})
    assert first_difference({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}) == ("a.b", 1, 3)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"seed": -1}, "seed: -1 given"),
        ({"replicates": 0}, "replicates: 0 given"),
        ({"over": "lane"}, "over: 'lane' given"),
        ({"engine": "fast"}, "engine: 'fast' given; it must be"),
        ({"policies": []}, r"policies: \[\] given; it must be"),
        ({"budgets": [2.0, 1.0]}, "budgets: .* given; it must be increasing"),
        ({"budgets": None}, "constraint: .* a constraint, or with budgets"),
        ({"constraint": jb.Horizon(5)}, "constraint: .* a function"),
        ({"constraint": lambda e, b: b}, "constraint: 4.0 given; .*budget 4"),
        ({"constraint": lambda e, b: 1 / 0}, "constraint: fails: ZeroDivisionError: .*budget 4"),
        (
            {"policies": [jb.policies.OmegaUCB(), jb.policies.OmegaUCB(rho=1.0)]},
            "policies: OmegaUCB given twice",
        ),
        ({"policies": {"a\nb": jb.policies.OmegaUCB()}}, "policies: name: .* given"),
        ({"policies": jb.policies.OmegaUCB(rho=-1.0)}, "OmegaUCB.rho: -1.0 given"),
        (
            {"constraint": lambda e, b: budget_of(e, -b)},
            r"budget: -4.0 given.*\(environment three, budget 4\)",
        ),
        ({"environments": 3}, "environments: 3 given"),
        ({"block_seconds": 0}, "block_seconds: 0 given"),
        ({"replicates": 10**8}, "replicates: 100000000 given; it must be fewer: with 3 marks"),
    ],
)
def test_bad_specs_are_refused_by_name(changes, message):
    with pytest.raises(jb.InputError, match=message):
        make_plan(spec(**changes))


def test_forecast_counts_programs_by_shape():
    plan = make_plan(spec(environments={"a": world(), "b": world()}))
    about = forecast(plan, workers=2)
    assert about.programs == 2  # one per policy: environments of one shape and budgets share it
    assert forecast(make_plan(spec()), workers=2).programs == 4
    assert about.memory > 50 << 20 and about.seconds > 0


# ---- the command

SPEC = """
import jax, jaxbandits as jb
sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]),
    environments=jb.environments.random_bernoulli(jax.random.key(1), instances=2, arms=3),
    constraint=jb.TotalBudget(8.0, last_pull="counts"), replicates=2, engine="scan")
"""


def test_the_commands(tmp_path, capsys):
    (tmp_path / "spec.py").write_text(SPEC)
    out = tmp_path / "out"
    line = f"sweep {tmp_path / 'spec.py'} --out {out}"
    assert command(f"{line} --dry-run") == 0
    output = capsys.readouterr().out
    assert "= 8 lanes" in output
    assert "memory: at most" in output
    assert "time: about" in output
    assert not out.exists()
    assert command(line) == 0
    output = capsys.readouterr().out
    assert "OmegaUCB  rho = " in output and "written:" in output
    assert command(f"status {out}") == 0
    assert "1 of 1 blocks done, 100% of the work" in capsys.readouterr().out
    assert command(f"{line} --dry-run") == 0
    assert "1 of them done" in capsys.readouterr().out


def test_status_of_an_unfinished_sweep(done, tmp_path):
    folder = Folder(tmp_path / "part")
    with folder.alone():
        folder.open(make_plan(spec()))
        assert status_lines(folder.path)[-1] == "a run is using it now"
    lines = status_lines(folder.path)
    assert lines[0].endswith("blocks done, 0% of the work")
    assert "no run is using it now" in lines[-1]
    assert any("unknown before the first block" in line for line in lines)
    work = [block["seconds"] for block in folder.manifest()["blocks"]]
    for number in (0, 1):
        folder.put({number: Folder(done[0]).get(number)})
    notes = [{"time": 100.0, "event": "start"}]
    notes += [
        {"time": 100.0 + 5 * (i + 1), "event": "block", "seconds": work[i], "worker": "a"}
        for i in (0, 1)
    ]
    (folder.path / "log" / "a.jsonl").write_text("\n".join(map(json.dumps, notes)) + '\n{"cut')
    seconds_left = sum(work[2:]) / (sum(work[:2]) / 10)
    text = f"{seconds_left:.0f} s" if seconds_left < 90 else f"{seconds_left / 60:.0f} min"
    assert any(f"time left: about {text}" in line for line in status_lines(folder.path))


@pytest.mark.parametrize(
    "text, message",
    [
        ("sweep = 3", "sweep: 3 given; it must be a jaxbandits.Sweep"),
        ("x = 1\ny = 1 / 0", "line 2: ZeroDivisionError"),
        ("import jaxbandits as jb\nraise jb.InputError('mine')", "line 2: mine"),
        ("raise SystemExit(0)", "line 1: SystemExit: 0"),
    ],
)
def test_bad_spec_files(tmp_path, text, message):
    (tmp_path / "spec.py").write_text(text)
    with pytest.raises(jb.InputError, match=message):
        load_spec(str(tmp_path / "spec.py"))
    assert sum(name.startswith("jaxbandits_spec_spec") for name in sys.modules) == (
        text == "sweep = 3"
    )
    sys.modules.pop("jaxbandits_spec_spec", None)


CODE = """
import dataclasses
import pathlib
import jax
import numpy as np
import jaxbandits as jb
from jaxbandits.policies.base import IndexPolicy
import sweep_helpers

@jb.pytree
class Mine(IndexPolicy):
    def score(self, arms):
        return sweep_helpers.scaled(arms.reward) * float(pathlib.Path({file!r}).read_text())

@jb.pytree
class World(jb.environments.FiniteArms):
    def values(self):
        reward, cost = super().values()
        return {best} * reward, cost

@jb.pytree
class Rounds(jb.Horizon):
    def expected_clock(self, ledger):
        return {clock} * ledger["rounds"]

sweep = jb.Sweep(
    policies=Mine(), environments={world}, constraint={limit}, replicates=2, engine="scan")
"""
ARMS = "jb.environments.random_bernoulli(jax.random.key(1), instances=2, arms=3)"


def test_a_sweep_is_the_code_that_it_plays(tmp_path, monkeypatch):
    """Not the text around it: a helper in another file counts, a comment does not."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "factor.txt"

    def code(
        factor=2, comment="one", read=1.0, best=1.0, clock=2**24, limit="jb.Horizon(20)", world=ARMS
    ):
        sys.modules.pop("sweep_helpers", None)
        (tmp_path / "sweep_helpers.py").write_text(f"def scaled(x):\n    return {factor} * x\n")
        file.write_text(str(read))
        text = CODE.format(file=str(file), best=best, clock=clock, limit=limit, world=world)
        (tmp_path / "spec.py").write_text(f"# {comment}\n{text}")
        return make_plan(load_spec(str(tmp_path / "spec.py"))).identity["code"]

    assert make_plan(spec()).identity["code"] == {}  # this package's code has its version only
    first = code()
    assert list(first) == ["Mine on FiniteArms"]
    assert first == code(comment="two") != code(factor=3)
    assert first == code() != code(read=2.0)
    # What the host asks for is no part of a trace, and counts too.
    world = f"World(**{{field.name: getattr({ARMS}, field.name) for field in dataclasses.fields(World)}})"
    assert code(world=world) != code(world=world, best=0.5)
    limit = "Rounds(20)"
    assert code(limit=limit) == code(limit=limit) != code(limit=limit, clock=2**23)


@pytest.mark.integration
def test_another_process_makes_the_same_sweep_and_the_same_programs(tmp_path):
    file = tmp_path / "spec.py"
    (tmp_path / "sweep_helpers.py").write_text("def scaled(x):\n    return 2 * x\n")
    (tmp_path / "factor.txt").write_text("1")
    limits = {"best": 1.0, "clock": 2**24, "limit": "Rounds(20)", "world": ARMS}
    file.write_text(CODE.format(file=str(tmp_path / "factor.txt"), **limits))
    script = (
        "from jaxbandits.sweeps.spec import load_spec, make_plan\n"
        "from tests.core.test_fingerprint import PLAYED, Reads, program\n"
        f"print(make_plan(load_spec({str(file)!r})).identity['code'])\n"
        "print([program(Reads(x)) for x in PLAYED])"
    )

    def another(seed):
        return python(script, environ={"PYTHONHASHSEED": seed}).stdout.splitlines()

    code, digests = first = another("1")
    assert first == another("2") and code != "{}" and len(set(digests.split(", "))) == 3
