"""Specs that fail, and options of ``sweep`` that do not fit."""

# mypy: disable-error-code="func-returns-value, misc, arg-type, var-annotated, assignment"

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.bad_input.case import Case, command

Lay = Callable[[Path], object]
NO_ENGINES = (
    "",
    ":",
    "ray",
    "processes",
    "processes:0",
    "processes:٣",
    "dask:host",
    "dask:local:x",
    "slurm:x",
    "slurm:=",
)
SPEC = """
import jaxbandits as jb
sweep = jb.Sweep(
    policies=jb.policies.MUCB(), environments=jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3]),
    constraint=jb.Horizon(3), replicates=2, engine="scan")
"""
HEAD = "import jaxbandits as jb, numpy as np\narms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])\n"


def _specs() -> list[Case]:
    texts: dict[str, tuple[str, str]] = {
        "raises": ("x = 1\nraise ValueError('mine')", "line 2: ValueError: mine"),
        "divides by 0": ("1 / 0", "line 1: ZeroDivisionError"),
        "raises in a function": ("def f():\n    raise KeyError(3)\nf()", "line 2"),
        "raises our own error": (f"{HEAD}raise jb.InputError('mine')", "line 3: mine"),
        "raises two lines": ("raise ValueError('a\\nb')", "a b"),
        "raises an escape sequence": ("raise ValueError('\\x1b[2J')", "\\x1b"),
        "raises a megabyte": ("raise ValueError('x' * 10**6)", "spec.py"),
        "raises what cannot be shown": (
            "class E(Exception):\n    def __str__(self): raise OSError\nraise E",
            "line 3: E",
        ),
        "exits with 0": ("raise SystemExit(0)", "line 1: it exits"),
        "exits": ("import sys\nsys.exit()", "line 2: it exits"),
        "exits with a text": ("exit('done')", "it exits (done"),
        "quits": ("quit()", "line 1"),
        "raises a BaseException": ("class B(BaseException): pass\nraise B('b')", "line 2: B: b"),
        "recurses": ("def f(): f()\nf()", "RecursionError"),
        "is no Python": ("sweep = (", "line 1: SyntaxError"),
        "has bad indentation": ("x = 1\n  y = 2", "line 2: IndentationError"),
        "holds a null": ("x = 1\0", "spec.py"),
        "is no UTF-8": ("x = '\udcff'", "spec.py"),
        "imports what is not there": ("import not_there_at_all", "line 1: ModuleNotFoundError"),
        "asks for input": ("input()", "spec.py"),
        "reads stdin": ("import sys\nassert sys.stdin.read()", "line 2: AssertionError"),
        "takes itself off the path": ("import sys\nsys.path.clear()\n1 / 0", "line 3"),
        "goes elsewhere": ("import os\nos.chdir('/')\n1 / 0", "line 3"),
        "is empty": ("", "sweep: None given"),
        "sets no sweep": ("x = 1", "sweep: None given"),
        "deletes its sweep": (f"{SPEC}\ndel sweep", "sweep: None given"),
        "sets the class": ("import jaxbandits as jb\nsweep = jb.Sweep", "sweep:"),
        "sets a function": (f"{SPEC}\ns = sweep\ndef sweep(): return s", "sweep:"),
        "sets a list": (f"{SPEC}\nsweep = [sweep]", "sweep:"),
        "sets text": ("sweep = 'x'", "sweep: 'x' given"),
        "leaves out what is needed": ("import jaxbandits as jb\nsweep = jb.Sweep()", "line 2: TypeError"),
        "gives what there is not": ("import jaxbandits as jb\nsweep = jb.Sweep(polices=3)", "line 2: TypeError"),
    }
    fields: dict[str, str] = {
        **{f"title={x}": "title" for x in ("3", "None", "b'x'", "'a\\nb'", "'\\x1b[2J'", "[]")},
        **{f"seed={x}": "seed" for x in ("-1", "2**32", "0.5", "'0'", "None", "True", "[1]")},
        **{f"replicates={x}": "replicates" for x in ("0", "-1", "1.5", "'2'", "None", "True", "10**9", "[1, 2]")},
        **{f"over={x}": "over" for x in ("'lane'", "None", "3", "['replicate']", "np.ones(2)")},
        **{f"block_seconds={x}": "block_seconds" for x in ("0", "-1", "float('nan')", "'5'", "None", "True", "1j")},
        **{f"marks={x}": "marks" for x in ("0", "10**6", "[0.5]", "[1, 0.5]", "'x'", "None", "[]")},
        **{f"engine={x}": "engine" for x in ("'fast'", "None", "3")},
        **{f"max_rounds={x}": "max_rounds" for x in ("0", "-1", "2.5", "'3'", "2**40", "True")},
        **{f"budgets={x}": "budgets" for x in ("[]", "3", "[2, 1]", "['5']", "'5'", "[True, 2]", "[float('nan')]")},
        **{f"budgets={x}": "budgets" for x in ("[0, 1]", "[-1]", "[1, 1]", "[[1]]", "{1: 2}", "[None]", "[1j]")},
        **{f"policies={x}": "policies" for x in ("3", "None", "[]", "{}", "'MUCB'", "jb.policies.MUCB", "[3]")},
        "policies={'': jb.policies.MUCB()}": "policies",
        "policies={'a/b': jb.policies.MUCB()}": "policies",
        "policies={'a\\x1b': jb.policies.MUCB()}": "policies",
        "policies={'\\u202ea': jb.policies.MUCB()}": "policies",
        "policies={'x' * 300: jb.policies.MUCB()}": "policies",
        "policies={3: jb.policies.MUCB()}": "policies",
        "policies=[jb.policies.MUCB(), jb.policies.MUCB()]": "policies",
        **{f"environments={x}": "environments" for x in ("3", "None", "[]", "{}", "[arms]", "{'a': 3}", "{3: arms}")},
        "environments={'\\x1b[2J': arms}": "environments",
        **{f"constraint={x}": "constraint" for x in ("3", "None", "jb.Horizon", "lambda e, b: jb.Horizon(b)")},
    }
    functions = {
        "lambda: 3": "constraint",
        "lambda e: jb.Horizon(3)": "constraint",
        "lambda e, b: 1 / 0": "constraint",
        "lambda e, b: None": "constraint",
        "lambda e, b: jb.Horizon": "constraint",
        "lambda e, b: jb.Horizon(-b)": "rounds",
        "jb.Horizon(3)": "constraint",
    }
    base = (
        "kind = dict(policies=jb.policies.MUCB(), environments=arms, constraint=jb.Horizon(3), replicates=2, "
        "engine='scan')\n"
    )
    for change, says in fields.items():
        more = ", constraint=lambda e, b: jb.Horizon(b)" if change.startswith("budgets") else ""
        texts[f"with {change}"] = (f"{HEAD}{base}sweep = jb.Sweep(**(kind | dict({change}{more})))", says)
    for function, says in functions.items():
        text = f"{HEAD}{base}sweep = jb.Sweep(**(kind | dict(budgets=[2, 3], constraint={function})))"
        texts[f"with budgets and {function}"] = (text, says)
    return [_spec(f"a spec that {name}" if " " in name else name, *text) for name, text in texts.items()]


def _spec(name: str, text: str, says: str) -> Case:
    before = lambda folder: (folder / "spec.py").write_bytes(text.encode(errors="surrogateescape"))  # noqa: E731
    return Case("files: specs", name, command("sweep", "spec.py", "--out", "out"), says=says, before=before)


def _spec_files() -> list[Case]:
    layouts: dict[str, tuple[Lay, str]] = {
        "is not there": (lambda folder: None, "SPEC.py: 'spec.py' given"),
        "is a FIFO": (lambda folder: os.mkfifo(folder / "spec.py"), "a FIFO"),
        "is a folder": (lambda folder: (folder / "spec.py").mkdir(), "a folder"),
        "is a link to itself": (lambda folder: (folder / "spec.py").symlink_to("spec.py"), "spec.py"),
        "is a link to /dev/zero": (lambda folder: (folder / "spec.py").symlink_to("/dev/zero"), "a device"),
    }
    made = [
        Case("files: specs", f"a spec that {name}", command("sweep", "spec.py", "--out", "out"), says=says, before=lay)
        for name, (lay, says) in layouts.items()
    ]
    for given in (
        ["nofile.py"],
        ["nofile.py", "--dry-run"],
        ["", "--out", "o"],
        ["a\0b.py", "--out", "o"],
        ["/dev/zero"],
    ):
        made.append(Case("files: specs", f"sweep {given}", command("sweep", *given), says="SPEC.py:"))
    text = lambda folder: (folder / "spec.txt").write_text(SPEC)  # noqa: E731
    made.append(Case("files: specs", "spec.txt", command("sweep", "spec.txt"), says="end in .py", before=text))
    spec = lambda folder: (folder / "spec.py").write_text(SPEC)  # noqa: E731
    options = [(["--workers", x], "--workers") for x in ("0", "-1", "x", "1_0", "1.5", "٣", "9" * 30)]
    options += [(["--shard", "1/1"], "--shard"), (["--out", ""], "--out")]
    options += [(["--on", x], "--on") for x in NO_ENGINES]
    for given, says in options:
        arguments = ["sweep", "spec.py", *(["--out", "o"] if "--out" not in given else []), *given]
        made.append(Case("files: specs", " ".join(given)[:40], command(*arguments), says=says, before=spec))
    made.append(Case("files: specs", "no --out", command("sweep", "spec.py"), says="--out", before=spec))
    return made


def cases() -> list[Case]:
    """All of them."""
    return [*_specs(), *_spec_files()]
