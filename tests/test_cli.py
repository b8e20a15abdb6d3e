"""The command: what it writes, what it refuses and how, and Ctrl-C."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxbandits as jb
from jaxbandits._cli import compare
from jaxbandits._cli.answer_files import ANSWER_FILES
from jaxbandits._cli.chosen_policies import chosen_policies
from jaxbandits._cli.console import main
from jaxbandits._engine import pool
from jaxbandits.comparison.comparison import FILES
from jaxbandits.comparison.named_policies import POLICIES
from jaxbandits.core.errors import InputError

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


# ---- what it does


def test_every_policy_has_a_name_and_takes_its_parameters() -> None:
    extra = ["--min-cost", "0.25,0.5", "--c-rad", "2", "--epsilon", "0.2", "--factor", "1"]
    given = compare.parser().parse(command("arms.csv", "20", ",".join(POLICIES), *extra)[1:])
    chosen = chosen_policies(given)
    assert [type(policy) for policy in chosen] == list(POLICIES.values())
    bv1, pd = (next(p for p in chosen if isinstance(p, kind)) for kind in (jb.policies.UCBBV1, jb.policies.PDBwK))
    assert bv1.min_cost.tolist() == [0.25, 0.5] and pd.c_rad.tolist() == [2.0]


def test_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = command("two.csv", "20", "omega_ucb,m_ucb", "--rho", "0.25,1", "--reward-max", "2", "--no-check", *SMALL)
    assert main([*given, "--out", "deep/results"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "read two.csv: means, 2 instances, 5 arms (2 to 3 in an instance)" in out
    assert "a reward is counted in reward, at most 2" in out and "a cost is counted in cost, at most 6.061" in out
    assert "a pull is bernoulli" in out and "36 runs; seed 0" in out
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

    monkeypatch.setattr(pool.Run, "finish", never)
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
        ("", "bad.csv: the file is empty"),
        ("name,mean_reward,mean_cost\n", "a header but no rows"),
        ("name,mean_reward,mean_cost\na,.5,.5\n", "number of arms: 1 given; it must be 2 or more"),
        ("name,mean_reward\na,.5\nb,.5\n", "columns missing for the nearest format (means): mean_cost"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,many,.5\n", "line 3, column mean_reward: 'many' given"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,-1,.5\n", "line 3, column mean_reward: '-1' given"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,nan,.5\n", "line 3, column mean_reward: 'nan' given"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,.5,inf\n", "line 3, column mean_cost: 'inf' given"),
        (
            "name,mean_reward,mean_cost\na,.5,.5\nb,.5,0\n",
            "arm 'b', mean cost: 0.0 given; it must be finite and above 0",
        ),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,1.5,.5\n", "mean reward 1.5 is above its bound 1.0; raise reward_max"),
        ("name,mean_reward,mean_cost\na,.5,.5\nb,.5,1e-9\nc,1,1\n", "arm 'b', mean cost: 1e-09 given"),
        ("name,clicks,spent,conversions\na,0,1,0\nb,1,1,0\n", "line 2, column clicks: '0' given; it must be above 0"),
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
    ("arguments", "said"),
    [
        ([], "read|compare|demo|sweep|status|tune: missing; it must be given"),
        (["compair"], "compair: unknown command; did you mean compare?"),
        (["compare"], "--arms, --budget, --policies: missing"),
        (command(budget="0"), "--budget: '0' given; it must be a finite number above 0"),
        (command(budget="-5"), "--budget: '-5' given"),
        (command(budget="nan"), "--budget: 'nan' given"),
        (command(budget="-inf"), "--budget: '-inf' given"),
        (command(budget="lots"), "--budget: 'lots' given; it must be a finite number above 0"),
        (command(budget="1e12"), "--budget: 1000000000000.0 given; it must be from"),
        (command(policies="omega_ubc"), "--policies: 'omega_ubc' given; it must be one of omega_ucb, omega_star_ucb"),
        (command(policies="budget_ucb"), "--min-cost: not given; budget_ucb has no default for it"),
        (command("arms.csv", "20", "ucb_bv1", "--min-cost", "0"), "--min-cost: 0.0 given; it must be a finite number"),
        (command(policies="omega_ubc"), "; did you mean omega_ucb?"),
        (command(policies="M-UCB"), "; did you mean m_ucb?"),
        (command(policies="bts,bts"), "--policies: 'bts' given; it must be given once"),
        (command(policies=""), "--policies: '' given"),
        (command("arms.csv", "20", "omega_ucb", "--rho", "0"), "--rho: 0.0 given; it must be a finite number above 0"),
        (command("arms.csv", "20", "omega_ucb", "--rho", "0.25,-1"), "--rho: -1.0 given"),
        (command("arms.csv", "20", "omega_ucb", "--rho", "-1,2"), "--rho: -1.0 given"),
        (command("arms.csv", "20", "omega_ucb", "--rho", "0.25,x"), "--rho: 'x' given; it must be numbers"),
        (command("arms.csv", "20", "omega_ucb", "--rho", "1,1"), "--rho: [1.0, 1.0] given; it must be different"),
        (command("arms.csv", "20", "bts", "--rho", "1"), "--rho: [1.0] given; it must be left out: no chosen policy"),
        (command("arms.csv", "20", "m_ucb", "--alpha", "nan"), "--alpha: 'nan' given"),
        (
            command("arms.csv", "20", "bts", "--runs", "0"),
            "--runs: '0' given; it must be a whole number from 1 to 2**32 - 1",
        ),
        (command("arms.csv", "20", "bts", "--runs", "-3"), "--runs: '-3' given"),
        (command("arms.csv", "20", "bts", "--runs", "1.5"), "--runs: '1.5' given; it must be a whole number"),
        (command("arms.csv", "20", "bts", "--runs", "100000000"), "--runs: 100000000 given; it must be at most"),
        (command("arms.csv", "20", "bts", "--seed", "-1"), "--seed: '-1' given"),
        (command("arms.csv", "20", "bts", "--marks", "0"), "--marks: '0' given"),
        (
            command("arms.csv", "20", "bts", "--noise", "empirical"),
            "--noise: 'empirical' given; it must be 'bernoulli'",
        ),
        (
            command("arms.csv", "20", "bts", "--noise", "gauss"),
            "--noise: 'gauss' given; it must be one of bernoulli, beta, clicks, empirical",
        ),
        (
            command("arms.csv", "20", "bts", "--beta-concentration", "4"),
            "--beta-concentration: 4.0 given; it must be left",
        ),
        (
            command("arms.csv", "20", "bts", "--noise", "beta", "--beta-concentration", "-4"),
            "--beta-concentration: '-4' given",
        ),
        (
            command("arms.csv", "20", "bts", "--reward-max", "0.45"),
            "mean reward 0.5 is above its bound 0.45; raise reward_max",
        ),
        (command("arms.csv", "20", "bts", "--cost-max", "-1"), "--cost-max: '-1' given"),
        (command("arms.csv", "20", "bts", "--instances", "all"), "--instances: 'all' given"),
        (
            command("arms.csv", "20", "bts", "--last-pul", "counts"),
            "--last-pul: unknown option; did you mean --last-pull?",
        ),
        (command("arms.csv", "20", "bts", "--out"), "--out: nothing given; it must have a value"),
        (command("arms.csv", "20", "bts", "--out", ""), "--out: '' given; it must be the name of a folder"),
        (command("arms.csv", "20", "bts", "--out", "arms.csv"), "--out: 'arms.csv' given; it must be a folder"),
        (command("arms.csv", "20", "bts", "--out", "arms.csv/deep/er"), "--out: 'arms.csv/deep/er' given"),
        (
            command("arms.csv", "20", "bts", "--out", "/proc/results"),
            "--out: '/proc/results' given; it must be a folder",
        ),
        (command("arms.csv", "20", "bts", "--out", "blocked"), "regret.png in it is no file"),
        (command("."), "arms file: '.' given"),
    ],
)
def test_bad_arguments(
    arguments: list[str],
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "blocked/regret.png").mkdir(parents=True)
    assert said in refused(arguments, folder, capsys, monkeypatch)


def test_refused_within_seconds_as_a_process(folder: Path) -> None:
    began = time.perf_counter()
    done = run_process(command(budget="-1"), folder)
    _, err = done.communicate(timeout=60)
    assert (
        done.returncode == 2 and err == b"jaxbandits: error: --budget: '-1' given; it must be a finite number above 0\n"
    )
    assert time.perf_counter() - began < 20  # seconds on an idle machine: two
    assert not (folder / "jaxbandits-out").exists()


def test_bad_keys_and_shapes_in_python() -> None:
    bernoulli, budget = jb.environments.FiniteArms.bernoulli, jb.TotalBudget(5.0, last_pull="counts")
    arms, policy = bernoulli([0.5, 0.4], [0.9, 0.3]), jb.policies.OmegaUCB()
    with pytest.raises(InputError, match="key: implementation rbg given; it must be a threefry2x32 key"):
        jb.simulate(policy, arms, budget, key=jax.random.key(0, impl="rbg"))
    with pytest.raises(InputError, match=r"key: .* given; it must be a key"):
        jb.simulate(policy, arms, budget, key=0)
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(2,\) given"):
        bernoulli([0.5, 0.4, 0.1], [0.9, 0.3])
    with pytest.raises(InputError, match=r"budget: an array of shape \(3,\) given"):
        jb.simulate(policy, arms, jb.TotalBudget(jnp.ones(3), last_pull="counts"), key=jax.random.key(0))
    with pytest.raises(InputError, match=r"OmegaUCB.rho: an array of shape \(2, 3\) given"):
        jb.simulate(jb.policies.OmegaUCB(rho=jnp.ones((2, 3))), arms, budget, key=jax.random.key(0))


def test_a_raw_key_is_converted_with_a_note() -> None:
    arms, policy = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3]), jb.policies.OmegaUCB()
    budget = jb.TotalBudget(5.0, last_pull="counts")
    with pytest.warns(UserWarning, match="raw uint32 key was converted"):
        raw = jb.simulate(policy, arms, budget, key=jax.random.PRNGKey(3), marks=1)
    typed = jb.simulate(policy, arms, budget, key=jax.random.key(3), marks=1)
    assert raw.reward.identical(typed.reward)


# ---- Ctrl-C


def run_process(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    # a shell that runs the tests in the background makes its children ignore SIGINT
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from jaxbandits._cli.console import main; sys.exit(main(sys.argv[1:]))"
    )
    root = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    "moment", [rb"OmegaUCB and 1 more: compiling", rb"OmegaUCB and 1 more:\s+\d+%.*\b[1-9][0-9]*/10000 runs"]
)
def test_interrupted(moment: bytes, folder: Path) -> None:
    job = run_process(command("arms.csv", "1e4", "omega_ucb,bts", "--runs", "5000", "--progress"), folder)
    assert job.stderr is not None
    seen = b""
    while not re.search(moment, seen):
        part = job.stderr.read1(4096)  # type: ignore[attr-defined]
        assert part, f"the job ended by itself: {seen!r}"
        seen += part
    job.send_signal(signal.SIGINT)
    _, rest = job.communicate(timeout=60)
    last = re.split(rb"[\r\n]", rest.strip())[-1].decode()
    assert job.returncode == 130
    said = re.search(r"interrupted: (\d+) of 10000 runs finished; nothing was written$", last)
    assert said and 0 <= int(said[1]) < 10000
    assert b"Traceback" not in seen + rest
    assert sorted(path.name for path in folder.iterdir()) == ["arms.csv", "two.csv"]


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
    from jaxbandits._reports import progress

    clock = iter([0.0, 3.0, 12.0, 13.0, 24.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Bar("lines", 40.0, "{n:.0f}/{total:.0f} runs, ") as bar:
        for work in (1.0, 10.0, 11.0, 20.0):
            bar.show("[1/2] OmegaUCB", work)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] OmegaUCB: 10/40 runs, 25%, about 36 s left",
        "[1/2] OmegaUCB: 20/40 runs, 50%, about 24 s left",
    ]
    assert progress.usual_progress(None) == "lines" and progress.usual_progress(False) is False
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert progress.usual_progress(None) is True
    monkeypatch.setenv("JPY_PARENT_PID", "1")  # as ! in a notebook has it
    assert progress.usual_progress(None) == "lines"


def test_the_examples_come_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--examples", str(tmp_path / "specs")]) == 0
    copied = sorted((tmp_path / "specs").iterdir())
    shipped = sorted((Path(jb.__file__).parents[1] / "docs" / "examples").glob("*.py"))
    assert len(shipped) >= 4 and [x.read_text() for x in copied] == [x.read_text() for x in shipped]
    assert main(["demo", "--examples", str(tmp_path / "specs")]) == 2
    assert "--examples: " in capsys.readouterr().err
