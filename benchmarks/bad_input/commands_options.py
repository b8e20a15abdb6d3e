"""Wrong command lines: names, values, numbers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bad_input.case import Case, command

ARMS = "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\nc,0.4,0.25\n"
COMPARE = ("compare", "--arms", "arms.csv", "--policies", "omega_ucb,m_ucb")
TUNE = ("tune", "--policy", "omega_ucb")
SWEEP = ("sweep", "spec.py", "--out", "o")
NO_SHARDS = ("", "/", "1", "2/2", "-1/2", "a/b", "1/", "0/0", "٣/5", "0.5/2")

# What is no number in any option, and what is none above 0.
NO_NUMBERS = (
    "",
    " ",
    "x",
    "1_0",
    "٣",
    "５",
    "²",
    "0x10",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1,5,",
    "1 0",
    "1e",
    "½",
    "5\x00",
)
NOT_ABOVE_0 = ("0", "-1", "-0.0", "1e-400")
NO_WHOLE = ("", "x", "1.5", "1e3", "1_0", "٣", "５", "0x10", "nan", "inf", "-1", "9" * 60, "9" * 5000)


def put(folder: Path) -> None:
    """The files that the commands read."""
    (folder / "arms.csv").write_text(ARMS)
    (folder / "spec.py").write_text("sweep = None\n")


def cases() -> list[Case]:
    """Of all commands."""
    return [*_numbers(), *_names(), *_lists(), *_other_lines()]


def _refuses(area: str, name: str, says: str, *words: str) -> Case:
    return Case(area, name, command(*words), says=says, before=put)


def _numbers() -> list[Case]:
    found = []
    for option in ("--budget", "--reward-max", "--cost-max", "--beta-concentration"):
        line = COMPARE if option == "--budget" else (*COMPARE, "--budget", "20", "--noise", "beta")
        for value in (*NO_NUMBERS, *NOT_ABOVE_0):
            found.append(_refuses("command: compare, numbers", f"{option} {value[:9]!r}", option, *line, option, value))
    compare, tune = (*COMPARE, "--budget", "20"), TUNE
    for option, least in (("--runs", 1), ("--seed", 0), ("--marks", 1)):
        for value in (*NO_WHOLE, *(("0",) if least else ())):
            name = f"{option} {value[:9]!r}"
            found.append(_refuses("command: compare, whole numbers", name, option, *compare, option, value))
    for option in ("--k", "--steps", "--instances", "--grid", "--grid-instances", "--fresh", "--seed"):
        for value in NO_WHOLE:
            found.append(
                _refuses("command: tune, whole numbers", f"{option} {value[:9]!r}", option, *tune, option, value)
            )
    for option in ("--k", "--steps", "--instances", "--grid-instances", "--fresh"):
        found.append(_refuses("command: tune, whole numbers", f"{option} 0", option, *tune, option, "0"))
    for option, value in (
        ("--k", "1"),
        ("--grid", "1"),
        ("--fresh", "1"),
        ("--grid-instances", "1"),
        ("--k", "2000000000"),
        ("--k", "16000000"),
        ("--instances", "16000000"),
        ("--fresh", "16000000"),
        ("--steps", "2000000000"),
        ("--grid", "100000000"),
    ):
        found.append(_refuses("command: tune, whole numbers", f"{option} {value}", "--", *tune, option, value))
    for option in ("--budget", "--start", "--temperature", "--rate", "--sigma"):
        for value in (*NO_NUMBERS, *NOT_ABOVE_0):
            found.append(_refuses("command: tune, numbers", f"{option} {value[:9]!r}", option, *tune, option, value))
    for option, value in (
        ("--start", "1e39"),
        ("--start", "1e-44"),
        ("--sigma", "1e300"),
        ("--sigma", "50"),
        ("--rate", "1e9"),
        ("--budget", "1e12"),
        ("--budget", "1e-12"),
    ):
        found.append(_refuses("command: tune, numbers", f"{option} {value}", option, *tune, option, value))
    for value in (*NO_WHOLE, "0"):
        name, words = f"--workers {value[:9]!r}", (*SWEEP, "--workers", value)
        found.append(_refuses("command: sweep, whole numbers", name, "--workers", *words))
    huge = (
        ("--runs", "4294967295"),
        ("--runs", "100000000"),
        ("--budget", "1e12"),
        ("--budget", "1e-30"),
        ("--marks", "10001"),
    )
    for option, value in huge:
        budget = () if option == "--budget" else ("--budget", "20")
        name = f"{option} {value}"
        found.append(_refuses("command: compare, numbers", name, option, *COMPARE, *budget, option, value))
    for value in ("1e308", "1e16", "-1e-300"):
        beta = (*COMPARE, "--budget", "20", "--noise", "beta", "--beta-concentration", value)
        name = f"beta with concentration {value}"
        found.append(_refuses("command: compare, numbers", name, "--beta-concentration", *beta))
    return found


def _names() -> list[Case]:
    found = []
    for typed, meant in (
        ("--polices", "--policies"),
        ("--Arms", "--arms"),
        ("--budgt", "--budget"),
        ("--run", "--runs"),
        ("--last_pull", "--last-pull"),
        ("-policies", "--policies"),
        ("--rhoo", "--rho"),
        ("--noize", "--noise"),
        ("--instance", "--instances"),
        ("--beta_concentration", "--beta-concentration"),
    ):
        found.append(_refuses("command: names", f"compare {typed}", f"{typed}: unknown", "compare", typed, "x"))
        found.append(
            _refuses(
                "command: names", f"compare {typed}, the rest right", f"did you mean {meant}", *COMPARE, typed, "x"
            )
        )
    for job, typed, meant in (
        ("sweep", "--dryrun", "--dry-run"),
        ("sweep", "--worker", "--workers"),
        ("sweep", "--ouT", "--out"),
        ("tune", "--polcy", "--policy"),
        ("tune", "--step", "--steps"),
        ("tune", "--optimiser", "--optimizer"),
        ("tune", "--learning-rate", "--rate"),
        ("status", "--hep", "--help"),
    ):
        found.append(_refuses("command: names", f"{job} {typed}", meant, job, typed))
    for typed, meant in (
        ("compair", "compare"),
        ("Sweep", "sweep"),
        ("stat", "status"),
        ("tunes", "tune"),
        ("compare ", "compare"),
    ):
        found.append(
            _refuses("command: names", f"the job {typed!r}", f"did you mean {meant}", typed, "--arms", "arms.csv")
        )
    for typed in ("", "zzz", "-", "--", "\x1b[2J", "x" * 5000, "--x", "-x", "--zzz=5"):
        found.append(_refuses("command: names", f"the job {typed[:9]!r}", "", typed))
    line = ("compare", "--arms", "arms.csv", "--budget", "20", "--policies")
    for typed, meant in (
        ("omega_ubc", "omega_ucb"),
        ("OMEGA-UCB", "omega_ucb"),
        ("bts,m_uc", "m_ucb"),
        ("ubc1", "ucb1"),
        ("omega_ucb;bts", "omega_ucb"),
        ("pd-bwk", "pd_bwk"),
    ):
        found.append(_refuses("command: names", f"--policies {typed}", f"did you mean {meant}", *line, typed))
        one = typed.split(",")[-1]
        found.append(
            _refuses("command: names", f"tune --policy {typed}", f"did you mean {meant}", "tune", "--policy", one)
        )
    found.append(_refuses("command: names", "tune --parameter", "did you mean rho", *TUNE, "--parameter", "rhoo"))
    found.append(_refuses("command: names", "tune --parameter ''", "--parameter", *TUNE, "--parameter", ""))
    for name in (
        "adm",
        "chain",
        "",
        "__name__",
        "lbfgs",
        "polyak_sgd",
        "os",
        "sgd.x",
        "inject_hyperparams",
        "apply_updates",
    ):
        found.append(
            _refuses("command: names", f"tune --optimizer {name!r}", "--optimizer", *TUNE, "--optimizer", name)
        )
    for option, value in (("--noise", "gauss"), ("--noise", ""), ("--last-pull", "count"), ("--instances", "all")):
        found.append(
            _refuses("command: names", f"compare {option} {value!r}", option, *COMPARE, "--budget", "20", option, value)
        )
    found.append(_refuses("command: names", "tune --family", "did you mean bernoulli", *TUNE, "--family", "bernouli"))
    return found


def _lists() -> list[Case]:
    found = []
    line = (*COMPARE, "--budget", "20")
    for value in (
        "",
        ",",
        "1,",
        ",1",
        "1,,2",
        "1;2",
        "1 2",
        "0.25,x",
        "1,1",
        "1,1.0",
        "nan",
        "1,inf",
        "0",
        "-1,2",
        "1_0",
        "1e39",
        "1e-50",
        "1e400",
        "٣",
        "0.25,0.250000001",
    ):
        found.append(_refuses("command: lists", f"--rho {value!r}", "rho", *line, "--rho", value))
    some = ("compare", "--arms", "arms.csv", "--budget", "20", "--policies")
    for value in ("", ",", "bts,", ",bts", "bts,,m_ucb", "bts bts", "bts,bts", "bts;m_ucb", "\x1b[2J", "bts\n"):
        found.append(_refuses("command: lists", f"--policies {value!r}", "--policies", *some, value))
    found.append(
        _refuses("command: lists", "--epsilon above 1", "--epsilon", *some, "epsilon_first", "--epsilon", "1.5")
    )
    found.append(_refuses("command: lists", "--rho for bts", "--rho", *some, "bts", "--rho", "1"))
    found.append(_refuses("command: lists", "--min-cost missing", "--min-cost", *some, "budget_ucb"))
    found.append(
        Case(
            "command: lists", "blanks after commas", command(*some, "m_ucb, c_ucb", "--runs", "0"), "--runs", before=put
        )
    )
    return found


def _other_lines() -> list[Case]:
    found = []
    for job, missing in (
        ("compare", "--arms, --budget, --policies"),
        ("tune", "--policy"),
        ("sweep", "SPEC.py"),
        ("status", "DIR"),
    ):
        found.append(_refuses("command: missing", job, missing, job))
    for option in ("--arms", "--budget", "--policies", "--rho", "--out", "--noise"):
        found.append(_refuses("command: missing", f"{option} at the end", option, *COMPARE, "--budget", "20", option))
        found.append(_refuses("command: missing", f"{option} before another", option, "compare", option, "--seed", "5"))
    for words, says in (
        ((*COMPARE, "--budget", "20", "more"), "'more'"),
        ((*COMPARE, "--budget", "20", "--progress=5"), "--progress"),
        ((*COMPARE, "--budget", "20", "--beta-concentration", "4"), "--beta-concentration"),
        ((*COMPARE, "--budget", "20", "--noise", "empirical"), "--noise"),
        (("status", "a", "b"), "'b'"),
        (("status", "nofolder"), "nofolder"),
        (("status", "arms.csv"), "arms.csv"),
        (("sweep", "nofile.py"), "nofile.py"),
        (("sweep", "nofile.py", "--out", "o"), "nofile.py"),
        (("sweep", "arms.csv", "--out", "o"), "arms.csv"),
        (("sweep", "spec.py"), "--out"),
        (("sweep", ".", "--out", "o"), "SPEC.py"),
        (("sweep", "", "--out", "o"), "SPEC.py"),
        (("sweep", "spec.py", "--out", ""), "--out"),
        *(((*SWEEP, "--shard", x), "--shard") for x in NO_SHARDS),
        ((*SWEEP, "part-0"), "part-0"),
        ((*SWEEP, "--finish", "all"), "--out"),
        (("sweep", "spec.py", "--finish", ""), "--finish"),
        ((*SWEEP, "--on", "processes:2", "--workers", "2"), "--workers"),
        ((*TUNE, "--arms", "arms.csv"), "--budget"),
        ((*TUNE, "--arms", "arms.csv", "--budget", "20", "--k", "5"), "--k"),
        ((*TUNE, "--arms", "arms.csv", "--budget", "20", "--family", "beta"), "--family"),
        ((*TUNE, "--arms", "arms.csv", "--budget", "1e12"), "--budget"),
        ((*TUNE, "--arms", "nofile.csv", "--budget", "5"), "nofile.csv"),
        (("tune", "--policy", "bts"), "--policy"),
        (("tune", "--policy", "budget_ucb"), "--start"),
        (("tune", "--policy", "epsilon_first", "--start", "2"), "--start"),
        (("tune", "--policy", "epsilon_first", "--grid", "8"), "--grid"),
        (("tune", "--policy", "epsilon_first", "--temperature", "1"), "--temperature"),
        ((*TUNE, "--temperature", "0.1", "--grid", "4"), "--grid"),
    ):
        found.append(_refuses("command: lines", " ".join(words)[-60:], says, *words))
    return found
