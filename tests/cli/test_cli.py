"""The command: what it writes, what it refuses and how, and Ctrl-C."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shlex
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxbandits as jb
from jaxbandits._cli import compare
from jaxbandits._cli.compare import chosen_policies
from jaxbandits._cli.console import main
from jaxbandits._engine import pool
from jaxbandits.comparison.comparison import ANSWER_FILES, FILES
from jaxbandits.comparison.plan import POLICIES
from jaxbandits.core.checks import InputError

ARMS = "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\nc,0.4,0.25\n"
TWO = "instance,name,mean_reward,mean_cost\nx,a,0.2,0.5\nx,b,0.5,0.9\ny,a,2,3\ny,b,1,6\ny,c,1,1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with arms files in it."""
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text(ARMS)
    Path("two.csv").write_text(TWO)
    return tmp_path


def command(arms: str = "arms.csv", budget: str = "20", policies: str = "omega_ucb,bts", *more: str) -> list[str]:
    return ["compare", "--arms", arms, "--budget", budget, "--policies", policies, *more]


SMALL = ("--runs", "6", "--marks", "4")
QUIET = ("--no-check", "--no-progress")


# ---- what it does


def test_every_policy_has_a_name_and_takes_its_parameters() -> None:
    extra = ["--min-cost", "0.25,0.5", "--c-rad", "2", "--epsilon", "0.2", "--factor", "1"]
    given = compare.parser().parse(command("arms.csv", "20", ",".join(POLICIES), *extra)[1:])
    chosen = chosen_policies(given)
    assert [type(policy) for policy in chosen] == list(POLICIES.values())
    bv1, pd = (next(p for p in chosen if isinstance(p, kind)) for kind in (jb.policies.UCBBV1, jb.policies.PDBwK))
    assert bv1.min_cost.tolist() == [0.25, 0.5] and pd.c_rad.tolist() == [2.0]


def test_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = command("two.csv", "20", "omega_ucb,m_ucb", "--rho", "0.25,1", "--reward-max", "2", *QUIET, *SMALL)
    assert main([*given, "--out", "deep/results"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "read two.csv: means, 2 instances, 5 arms (2 to 3 in an instance)" in out
    assert "a reward is counted in reward, at most 2" in out and "a cost is counted in cost, at most 6.061" in out
    assert "noise bernoulli: a pull brings its bound or nothing" in out and "36 runs; seed 0" in out
    assert re.search(r"^ +1  (omega|m)_ucb\(\w+=[\d.]+\) +[\d.]+ ± [\d.]+ .* best$", out, re.MULTILINE)
    assert len(re.findall(r", (?:clear|not clear(?: \(about [\d,]+ more runs; [^)]+\))?)$", out, re.MULTILINE)) == 2
    assert "m_ucb(alpha=0.0625)" in out
    assert "written: deep/results/regret.png, deep/results/table.csv, deep/results/run.json" in out
    written = folder / "deep/results"
    assert sorted(path.name for path in written.iterdir()) == sorted((*FILES, *ANSWER_FILES))
    assert out.startswith("If you had run this again with 20 to spend in each of 2 instances (40 in all):\n")
    assert (written / "regret.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((written / "table.csv").read_text().splitlines()))
    assert [row["scope"] for row in rows] == ["overall"] * 3 + ["instance"] * 6
    assert {row["instance"] for row in rows} == {"", "x", "y"}
    about = json.loads((written / "run.json").read_text())
    assert about["arms_file"]["sha256"] == hashlib.sha256(TWO.encode()).hexdigest()
    assert about["settings"][1] == {
        "label": "omega_ucb(rho=1)",
        "policy": "OmegaUCB",
        "parameters": {"OmegaUCB.rho": 1.0},
    }
    assert about["instances"][1]["cost_bound"] == pytest.approx(6 / 0.99)
    # run.json is enough to do it again, to the byte
    again = shlex.split(about["command"])
    assert again[0] == "jaxbandits"
    assert main([*again[1:], "--out", "again", "--no-answer"]) == 0
    assert (folder / "again/table.csv").read_bytes() == (written / "table.csv").read_bytes()
    assert main([*again[1:], "--out", "other", "--seed", "1", "--no-answer"]) == 0
    assert (folder / "other/table.csv").read_bytes() != (written / "table.csv").read_bytes()


def test_the_default_folder_and_files_that_are_there_already(folder: Path) -> None:
    out = folder / "jaxbandits-out"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    assert main(command("arms.csv", "30", "m_ucb", "--no-answer", *SMALL)) == 0
    assert main(command("arms.csv", "20", "m_ucb", "--no-answer", *SMALL)) == 0
    assert (out / "table.csv").read_text().startswith("scope,instance,")
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "regret.png", "run.json", "table.csv"]


def test_one_instance_and_one_run_and_beta(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("arms.csv", "20", "m_ucb", "--runs", "1", "--noise", "beta", "--marks", "1", "--no-check")) == 0
    out = capsys.readouterr().out
    assert "alpha + beta = 4" in out and "±" in out and "nan" not in out and "in each instance, by" not in out
    assert ",,," in (folder / "jaxbandits-out/table.csv").read_text()


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--version"], jb.__version__), (["compare", "--help"], "--last-pull")):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0 and said in capsys.readouterr().out


# ---- what it refuses


def refused(
    arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run the command, which must fail by the rules; its line on stderr."""

    def never(*_: object) -> None:
        raise AssertionError("something was simulated")

    monkeypatch.setattr(pool.Workers, "submit", never)
    before = sorted(folder.rglob("*"))
    began = time.perf_counter()
    assert main(arguments) == 2
    assert time.perf_counter() - began < 5
    out, err = capsys.readouterr()
    assert out == "" and err.endswith("\n") and err.count("\n") == 1 and "Traceback" not in err
    assert sorted(folder.rglob("*")) == before
    return err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "arms file: 'bad.csv' given; it must be a CSV file that can be read (No such file"),
        ("name,mean_reward\na,.5\nb,.5\n", "no column is known to be mean_cost"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,many,.5\n", "line 3, column mean_reward: 'many' given"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,1.5,.5\n", "mean reward 1.5 is above its bound 1.0; raise reward_max"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,.5,1e-9\nc,1,1\n", "arm 'b', mean cost: 1e-09 given"),
    ],
)
def test_bad_files(
    content: str | None,
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if content is not None:
        Path("bad.csv").write_text(content)
    assert said in refused(command("bad.csv"), folder, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "read|compare|demo|sweep|status|tune: missing; it must be given"),
        ("compair", "compair: unknown command; did you mean compare?"),
        ("compare", "--arms, --budget, --policies: missing"),
        ("bts --budget 0", "--budget: 0.0 given; it must be a finite number above 0"),
        ("bts --budget -5", "--budget: -5.0 given"),
        ("bts --budget nan", "--budget: 'nan' given; it must be a finite number"),
        ("bts --budget lots", "--budget: 'lots' given; it must be a finite number"),
        ("bts --budget 1e12", "--budget: 1000000000000.0 given; it must be from"),
        ("omega_ubc", "--policies: 'omega_ubc' given; it must be one of omega_ucb, omega_star_ucb"),
        ("omega_ubc", "; did you mean omega_ucb?"),
        ("bts,bts", "--policies: 'bts' given; it must be given once"),
        ("budget_ucb", "--min-cost: not given; budget_ucb has no default for it"),
        ("ucb_bv1 --min-cost 0", "--min-cost: 0.0 given; it must be a finite number above 0"),
        ("omega_ucb --rho 0.25,-1", "--rho: -1.0 given; it must be a finite number above 0"),
        ("omega_ucb --rho 0.25,x", "--rho: 'x' given; it must be numbers"),
        ("omega_ucb --rho 1,1", "--policies: 'omega_ucb(rho=1)' given; it must be given once"),
        ("bts --rho 1", "--rho: [1.0] given; it must be left out: no chosen policy"),
        ("bts --runs 0", "--runs: 0 given; it must be a whole number from 1 to 2**32 - 1"),
        ("bts --runs 1.5", "--runs: '1.5' given; it must be a whole number"),
        ("bts --runs 100000000", "--runs: 100000000 given; it must be at most"),
        ("bts --seed -1", "--seed: -1 given"),
        ("bts --marks 0", "--marks: '0' given"),
        ("bts --noise empirical", "--noise: 'empirical' given; it must be 'bernoulli'"),
        ("bts --noise gauss", "--noise: 'gauss' given; it must be one of bernoulli, beta, clicks, empirical"),
        ("bts --noise beta --beta-concentration -4", "--beta-concentration: -4.0 given"),
        ("bts --reward-max 0.45", "mean reward 0.5 is above its bound 0.45; raise reward_max"),
        ("bts --cost-max -1", "--cost-max"),
        ("bts --instances all", "--instances: 'all' given"),
        ("bts --last-pul counts", "--last-pul: unknown option; did you mean --last-pull?"),
        ("bts --out", "--out: expected one argument"),
        ("bts --out arms.csv", "--out: 'arms.csv' given; it must be a folder"),
        ("bts --out blocked", "regret.png in it would be replaced"),
        ("suak --constraint average-cost:5", "--constraint: 5.0 given; it must be at most"),
        ("bts --constraint average-cost:-1", "or average-cost:C with C above 0"),
    ],
)
def test_bad_arguments(
    words: str,
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "blocked/regret.png").mkdir(parents=True)
    policies, *more = words.split() or [""]
    arguments = words.split()
    if policies not in ("", "compair", "compare"):
        arguments = command("arms.csv", "20", policies, *more)
    assert said in refused(arguments, folder, capsys, monkeypatch)


def test_bad_shapes_in_python() -> None:
    bernoulli = jb.environments.FiniteArms.bernoulli
    arms, policy = bernoulli([0.5, 0.4], [0.9, 0.3]), jb.policies.OmegaUCB()
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(2,\) given"):
        bernoulli([0.5, 0.4, 0.1], [0.9, 0.3])
    with pytest.raises(InputError, match=r"budget: an array of shape \(3,\) given"):
        jb.simulate(policy, arms, jb.TotalBudget(jnp.ones(3), last_pull="counts"), key=jax.random.key(0))


# ---- the demo, and progress


def test_the_demo_is_a_comparison_of_the_shipped_sample(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jaxbandits._cli import compare, demo

    seen = {}
    monkeypatch.setattr(compare, "run", lambda arguments, given: seen.update(vars(arguments), given=given) or 0)
    assert main(["demo", "--out", "there"]) == 0
    assert Path(seen["arms"]).read_text().startswith("ad_id") and seen["out"] == "there" and seen["runs"] == 200
    assert capsys.readouterr().out.startswith("$ jaxbandits compare --arms ") and seen["given"][0] == "compare"
    assert demo.parser().parse([]).out == "jaxbandits-demo"


def test_off_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jaxbandits import _progress

    clock = iter([0.0, 3.0, 12.0, 13.0, 24.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with _progress.Bar("lines", 40.0, "{n:.0f}/{total:.0f} runs, ") as bar:
        for work in (1.0, 10.0, 11.0, 20.0):
            bar.show("[1/2] OmegaUCB", work)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] OmegaUCB: 10/40 runs, 25%, about 36 s left",
        "[1/2] OmegaUCB: 20/40 runs, 50%, about 24 s left",
    ]
    assert _progress.usual_progress(None) == "lines" and _progress.usual_progress(False) is False
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert _progress.usual_progress(None) is True
    monkeypatch.setenv("JPY_PARENT_PID", "1")  # as ! in a notebook has it
    assert _progress.usual_progress(None) == "lines"


def test_the_examples_come_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--examples", str(tmp_path / "specs")]) == 0
    copied = sorted((tmp_path / "specs").iterdir())
    shipped = sorted((Path(jb.__file__).parents[1] / "docs" / "examples").glob("*.py"))
    assert len(shipped) >= 4 and [x.read_text() for x in copied] == [x.read_text() for x in shipped]
    assert main(["demo", "--examples", str(tmp_path / "specs")]) == 2
    assert "--examples: " in capsys.readouterr().err
