"""Bad values that a colleague may send: one line names the argument, its value and what it may be."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import environments as e
from jaxbandits import policies as p
from jaxbandits._engine import pool
from jaxbandits.apps._cli.console import main

KEY = jax.random.key(0)
ARMS = e.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
LAW: dict[str, Any] = {"cost": e.Linear(0.1), "penalty": e.Linear(0.1)}
NAN, INF = math.nan, math.inf


def play(policy: Any = None, arms: Any = ARMS, constraint: Any = None, **options: Any) -> jb.Result:
    """A call of ``simulate`` that must not get as far as compiling."""
    constraint = jb.TotalBudget(5.0, last_pull="counts") if constraint is None else constraint
    return jb.simulate(
        p.MUCB() if policy is None else policy, arms, constraint, **({"key": KEY} | options)
    )


def budget(value: Any) -> jb.Result:
    return play(constraint=jb.TotalBudget(value, last_pull="counts"))


def continuum(**options: Any) -> Any:
    slopes: dict[str, Any] = {"lipschitz_reward": 1.0, "lipschitz_cost": 1.0} | options
    return e.Continuum.of(lambda x, _: 0.5 * x, lambda x, _: 0.5 * x, **slopes).check()


def censored(**options: Any) -> Any:
    return e.row_arms([[([0.5], [0.5])]], limits=[1.0], **(LAW | options))


PENAL = censored(penalty=e.Constant(100.0))

# (what is called, the argument that the line names, its value as shown)
Row = tuple[Callable[[], object], str, str]
PARAMETERS: list[Row] = [
    (lambda: play(p.OmegaUCB(rho=-1.0)), "OmegaUCB.rho", "-1.0"),
    (lambda: play(p.OmegaUCB(rho=0.0)), "OmegaUCB.rho", "0.0"),
    (lambda: play(p.OmegaUCB(rho=NAN)), "OmegaUCB.rho", "nan"),
    (lambda: play(p.OmegaUCB(rho="0.5")), "OmegaUCB.rho", "'0.5'"),
    (lambda: play(p.OmegaUCB(rho=True)), "OmegaUCB.rho", "True"),
    (lambda: play(p.OmegaUCB(rho=1j)), "OmegaUCB.rho", "1j"),
    (lambda: play(p.OmegaUCB(rho=[0.5, [1.0, 2.0]])), "OmegaUCB.rho", "[0.5, [1.0, 2.0]]"),
    (lambda: play(p.OmegaUCB(rho=1e39)), "OmegaUCB.rho", "1e+39"),
    (lambda: play(p.OmegaUCB(rho=1e-50)), "OmegaUCB.rho", "1e-50"),
    (lambda: play(p.OmegaUCB(rho=np.ones((2, 3, 4)))), "OmegaUCB.rho", "(2, 3, 4)"),
    (lambda: play(p.UCBBV1(min_cost=0.0)), "UCBBV1.min_cost", "0.0"),
    (lambda: play(p.EpsilonFirst(epsilon=1.5)), "EpsilonFirst.epsilon", "1.5"),
    (lambda: play(p.PDBwK(c_rad=-1.0)), "PDBwK.c_rad", "-1.0"),
    (lambda: play(p.BestRatioOracle([0.5, NAN], [0.5, 0.5])), "BestRatioOracle.mean_reward", "nan"),
    (lambda: play(p.SUAK(c=0.5, horizon=2**31)), "SUAK.horizon", "2147483648"),
    (lambda: play(jb.grid(p.OmegaUCB, rho="x")), "rho", "'x'"),
    (lambda: play([]), "policies", "none"),
    (lambda: play("m_ucb"), "policies", "'m_ucb'"),
    (lambda: play(p.MUCB), "policies", "MUCB"),
    (lambda: play([p.MUCB(), None]), "policies", "None"),
]
CONSTRAINTS: list[Row] = [
    (lambda: budget(0.0), "budget", "0.0"),
    (lambda: budget(1e-9), "budget", "1e-09"),
    (lambda: budget(2.0**30 + 1), "budget", "1073741825"),
    (lambda: budget([5.0, 6.0, 7.0]), "budget", "(3,)"),
    (lambda: play(constraint=jb.TotalBudget(5.0, last_pull="count")), "last_pull", "'count'"),
    (lambda: play(constraint=jb.Horizon(10.5)), "Horizon.rounds", "10.5"),
    (lambda: play(constraint=jb.Horizon(2**30 + 1)), "rounds", "1073741825"),
    (lambda: play(constraint=jb.AverageCost(c=0.0, rounds=5)), "c", "0.0"),
    (lambda: play(p.UCBReduction(), PENAL, jb.Horizon(22_000_000)), "rounds", "22000000"),
    (lambda: play(constraint=5.0), "constraint", "5.0"),
    (lambda: play(constraint=jb.TotalBudget), "constraint", "TotalBudget"),
]
OPTIONS: list[Row] = [
    (lambda: play(replicates=0), "replicates", "0"),
    (lambda: play(replicates=1.5), "replicates", "1.5"),
    (lambda: play(replicates=[3, 3]), "replicates", "3"),
    (lambda: play(replicates=2**32 + 1), "replicates", "4294967297"),
    (lambda: play(replicates=2**31), "replicates", "2147483648"),
    (lambda: play(marks=0), "marks", "0"),
    (lambda: play(marks=[1.0, 0.5]), "marks", "[1.0, 0.5]"),
    (lambda: play(marks="x"), "marks", "'x'"),
    (lambda: play(max_rounds=2**30 + 1), "max_rounds", "1073741825"),
    (lambda: play(instance_ids=[2**32]), "instance_ids", "4294967296"),
    (lambda: play(instance_names=["a", "b"]), "instance_names", "2"),
    (lambda: play(engine="fast"), "engine", "'fast'"),
    (lambda: play(p.BudgetedThompson(), engine="leap"), "engine", "'leap'"),
    (lambda: play(devices=["cpu"]), "devices", "'cpu'"),
    (lambda: play(progress="yes"), "progress", "'yes'"),
    (lambda: play(key=0), "key", "0"),
    (lambda: play(key=jax.random.split(KEY, 3)), "key", "(3,)"),
    (lambda: play(arms=None), "environment", "None"),
    (lambda: jax.jit(lambda x: play(p.OmegaUCB(rho=x)))(0.5), "policies", "a traced value"),
]
WORLDS: list[Row] = [
    (lambda: e.FiniteArms.bernoulli([0.5, 1.5], [0.5, 0.5]), "mean_reward", "1.5"),
    (lambda: e.FiniteArms.bernoulli([0.5, 0.5], [0.5, -0.1]), "mean_cost", "-0.1"),
    (lambda: e.FiniteArms.bernoulli([0.5, NAN], [0.5, 0.5]), "mean_reward", "nan"),
    (lambda: e.FiniteArms.bernoulli([0.5, 0.5], [0.5, 0.5, 0.5]), "mean_cost", "(3,)"),
    (lambda: e.FiniteArms.beta([0.0], [1.0], [1.0], [1.0]), "reward_alpha", "0.0"),
    (lambda: e.FiniteArms.generalised_bernoulli([["x"] * 5], [[1.0] * 5]), "reward_weights", "x"),
    (lambda: e.FiniteArms.empirical([[([0.5], [1.5])]]), "logs", "1.5"),
    (lambda: e.random_bernoulli(KEY, instances=0, arms=3), "instances", "0"),
    (lambda: e.random_bernoulli(KEY, instances=1, arms=2**24 + 1), "arms", "16777217"),
    (lambda: e.g1(limits=[0.5, 0.5]), "limits", "0.5"),
    (lambda: censored(cost=e.Linear("x")), "Linear", "'x'"),
    (lambda: censored(penalty=e.Constant(101.0)), "penalty", "101"),
    (lambda: e.Reservoir.ratio(KEY, instances=2, capacity=0), "capacity", "0"),
    (lambda: e.Reservoir.ratio(KEY, instances=2, capacity=2, beta=1e39), "beta", "1e+39"),
    (lambda: continuum(lipschitz_reward=-1.0), "lipschitz_reward", "-1.0"),
    (lambda: continuum(parameters={"a": "x"}), "parameters", "'x'"),
    (lambda: e.cost_valley(2.0, lam=0.5), "centre", "2.0"),
    (lambda: e.LoggedAuctions.of(price=[-1.0], reward=[1.0]), "price", "-1.0"),
    (lambda: jb.live.start(p.MUCB(), e.FiniteSpec(2), left=NAN), "left", "nan"),
    (lambda: p.arms_to_sample(INF, beta=1.0), "budget", "inf"),
]


COMPARE = "compare --arms arms.csv --policies omega_ucb,m_ucb"
ARMS = "compare --arms arms.csv --budget 20 --policies"
TUNE = "tune --policy omega_ucb"
# (the words of the command, what its line on stderr says)
COMMANDS: list[tuple[str, str]] = [
    (f"{COMPARE} --budget 0", "--budget: 0.0 given; it must be"),
    (f"{COMPARE} --budget nan", "--budget: 'nan' given; it must be"),
    (f"{COMPARE} --budget 1_0", "--budget: '1_0' given; it must be"),
    (f"{COMPARE} --budget 1e12", "--budget: 1000000000000.0 given; it must be"),
    (f"{COMPARE} --budget 20 --runs 0", "--runs: 0 given; it must be"),
    (f"{COMPARE} --budget 20 --runs 1.5", "--runs: '1.5' given; it must be"),
    (
        f"{COMPARE} --budget 20 --runs 100000000",
        "--runs: 100000000 given; it must be at most 5368709 with so many",
    ),
    (f"{COMPARE} --budget 20 --seed -1", "--seed: -1 given; it must be"),
    (f"{COMPARE} --budget 20 --marks 10001", "--marks: '10001' given; it must be"),
    (f"{COMPARE} --budget 20 --rho 0.25,x", "--rho: 'x' given; it must be numbers"),
    (
        f"{COMPARE} --budget 20 --rho 1,1",
        "--policies: 'omega_ucb(rho=1)' given; it must be given once",
    ),
    (f"{COMPARE} --budget 20 --rho 1e39", "--rho: 1e+39 given; it must be"),
    (f"{COMPARE} --budget 20 --noise gauss", "--noise: 'gauss' given; it must be"),
    (f"{COMPARE} --budget 20 --last-pull count", "--last-pull: 'count' given; it must be"),
    (f"{COMPARE} --budgt 20", "--budgt: unknown option; did you mean --budget?"),
    (f"{COMPARE} --budget", "--budget: expected one argument"),
    (f"{COMPARE} --budget 20 more", "'more': not expected"),
    ("compare --arms arms.csv", "--budget, --policies: missing"),
    ("compare --arms nofile.csv --budget 20 --policies m_ucb", "'nofile.csv' given; it must be"),
    (
        f"{ARMS} omega_ubc",
        "--policies: 'omega_ubc' given; it must be one of omega_ucb, omega_star_ucb",
    ),
    (f"{ARMS} omega_ubc", "; did you mean omega_ucb?"),
    (f"{ARMS} bts,bts", "--policies: 'bts' given; it must be given once"),
    (f"{ARMS} bts --rho 1", "--rho: [1.0] given; it must be left out: no chosen policy"),
    (f"{ARMS} budget_ucb", "--min-cost: not given; budget_ucb has no default for it"),
    (f"{ARMS} ucb_bv1 --min-cost 0", "--min-cost: 0.0 given; it must be a finite number above 0"),
    (f"{ARMS} bts --noise empirical", "--noise: 'empirical' given; it must be 'bernoulli'"),
    (f"{ARMS} bts --reward-max 0.45", "mean reward 0.5 is above its bound 0.45; raise reward_max"),
    (f"{ARMS} bts --instances all", "--instances: 'all' given"),
    (f"{ARMS} bts --uncertainty maybe", "--uncertainty: 'maybe' given"),
    (f"{ARMS} bts --out arms.csv", "--out: 'arms.csv' given; it must be a folder"),
    (f"{ARMS} bts --out blocked", "regret.png in it would be replaced"),
    (f"{ARMS} suak --constraint average-cost:5", "--constraint: 5.0 given; it must be at most"),
    (f"{ARMS} bts --constraint average-cost:-1", "or average-cost:C with C above 0"),
    (f"{ARMS} bts --constraint average-cost:0.5", "it is for --constraint budget"),
    (f"{ARMS} suak", "it is for --constraint average-cost:C"),
    (f"{ARMS} omega_ucb --policy bts", "--policy: 'bts' given; it must be one of omega_ucb"),
    (f"{ARMS} omega_ucb --policy omega_ucb --no-answer", "it must be left out with --no-answer"),
    (f"{ARMS} none.py:Mine", "FileNotFoundError: "),
    (f"{ARMS} broken.py:Mine", "(ZeroDivisionError: division by zero)"),
    (f"{ARMS} mine.py:Mein", "has no attribute 'Mein'"),
    (f"{ARMS} mine.py:Other", "Other is no policy"),
    ("", "read|compare|demo|sweep|status|audit|tune: missing; it must be given"),
    ("compair --arms arms.csv", "did you mean compare?"),
    (f"{TUNE} --k 1", "--k: '1' given; it must be"),
    (f"{TUNE} --start 1e39", "OmegaUCB.rho: "),
    (f"{TUNE} --parameter rhoo", "--parameter: 'rhoo' given; it must be"),
    (f"{TUNE} --arms arms.csv", "--budget: missing"),
    ("tune --policy bts", "--policy: 'bts' given"),
    ("sweep nofile.py --out o", "SPEC.py: 'nofile.py' given"),
    ("sweep spec.py", "--out: missing"),
    ("sweep spec.py --out o --workers 0", "--workers: '0' given; it must be"),
    ("sweep spec.py --out o", "sweep: None given; it must be"),
    ("status nofolder", "DIR: 'nofolder' given"),
]
ARMS_FILES: list[tuple[str, str]] = [
    ("", "empty"),
    ("name,mean_reward\na,.5\nb,.5\n", "no column is known to be mean_cost"),
    ("name,mean_reward,mean_cost\na,.5,.5\n", "number of arms"),
    (
        "name,mean_reward,mean_cost\na,.5,.5\nb,x,.5\n",
        "line 3, column mean_reward: 'x' given; it must be",
    ),
    (
        "name,mean_reward,mean_cost\na,.5,.5\nb,.5,-1\n",
        "line 3, column mean_cost: '-1' given; it must be",
    ),
    (
        "name,mean_reward,mean_cost\na,.5,.5\nb,.5,nan\n",
        "line 3, column mean_cost: 'nan' given; it must be",
    ),
    (
        "name,mean_reward,mean_cost\na,.5,.5\nb,1.5,.5\n",
        "mean reward 1.5 is above its bound 1.0; raise reward_max",
    ),
    (
        "name,mean_reward,mean_cost\na,.5,.5\nb,.5,1e-9\nc,1,1\n",
        "arm 'b', mean cost: below a 2**24th",
    ),
    ("name,mean_reward,mean_cost\na,.5,.5\na,.5,.6\n", "another name"),
    ("name,mean_reward,mean_cost\na,.5,.5\nb,.5,.5,1\n", "number of cells"),
    ("name,clicks,spent,conversions\na,0,1,0\nb,1,1,0\n", "clicks"),
    ("name,clicks,spent,conversions\na,1,0,0\nb,1,1,0\n", "mean cost"),
]


def sweep_spec(change: str) -> str:
    return f"""import jaxbandits as jb
sweep = jb.Sweep(**(dict(policies=jb.policies.MUCB(), constraint=jb.Horizon(3), replicates=2,
    environments=jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])) | dict({change})))
"""


SPECS: list[tuple[str, str]] = [
    (sweep_spec("seed=-1"), "seed: -1 given; it must be"),
    (sweep_spec("replicates=0"), "replicates: 0 given; it must be"),
    (sweep_spec("engine='fast'"), "engine: 'fast' given; it must be"),
    (sweep_spec("over='lane'"), "over: 'lane' given; it must be"),
    (sweep_spec("policies=[]"), "policies: [] given; it must be"),
    (
        sweep_spec("budgets=[2, 1], constraint=lambda e, b: jb.Horizon(b)"),
        "budgets: [2, 1] given; it must be",
    ),
    (sweep_spec("polices=3"), "line 2: TypeError"),
    ("x = 1\n1 / 0\n", "line 2: ZeroDivisionError"),
]


@pytest.mark.parametrize(("call", "name", "value"), [*PARAMETERS, *CONSTRAINTS, *OPTIONS, *WORLDS])
def test_python_names_the_argument_its_value_and_what_it_may_be(
    call: Callable[[], object], name: str, value: str
) -> None:
    with warnings.catch_warnings(), pytest.raises(jb.InputError) as caught:
        warnings.simplefilter("error")  # nothing is said before the line
        call()
    arguments, _, may_be = str(caught.value).partition(" given")
    assert re.search(rf"\b{name}\b", arguments.partition(": ")[0]) and value in arguments
    assert " must be " in may_be and "\n" not in may_be and len(may_be) < 300


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; no file may be left."""
    before = sorted(Path().iterdir())
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and len(err) < 600
    assert sorted(Path().iterdir()) == before
    return err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms.csv").write_text(
        "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\nc,0.4,0.25\n"
    )
    (tmp_path / "spec.py").write_text("sweep = None\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    user_file = "@jb.pytree\nclass Mine(jb.policies.MUCB):\n    pass\nclass Other:\n    pass\n"
    (tmp_path / "mine.py").write_text(f"import jaxbandits as jb\n{user_file}")
    (tmp_path / "blocked/regret.png").mkdir(parents=True)
    monkeypatch.setattr(pool.Workers, "submit", None)  # nothing is simulated
    return tmp_path


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=lambda x: x[-40:])
def test_commands(
    folder: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(words.split(), capsys)


@pytest.mark.parametrize(
    ("text", "message"), ARMS_FILES, ids=[message for _, message in ARMS_FILES]
)
def test_arms_files(
    folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "arms.csv").write_text(text)
    err = refused([*COMPARE.split(), "--budget", "20"], capsys)
    assert "arms" in err and message in err


@pytest.mark.parametrize(("text", "message"), SPECS, ids=[message for _, message in SPECS])
def test_specs(folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "spec.py").write_text(text)
    assert message in refused(["sweep", "spec.py", "--out", "out"], capsys)
