"""The house: who may import whom, and what is public. See docs/architecture.md."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
from pathlib import Path
from types import ModuleType

import pytest

import jaxbandits as jb
from tests.processes import python

ROOT = Path(jb.__file__).parent
MODULES = {
    ".".join(("jaxbandits", *p.relative_to(ROOT).with_suffix("").parts)): p
    for p in ROOT.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

# Rooms whose names are imported when they are first used, by their stubs: {room: {name: the module
# that has it}}.
LAZY = {
    name: {
        alias.asname or alias.name: ".".join(filter(None, (name, node.module or alias.name)))
        for node in ast.parse(MODULES[name].with_suffix(".pyi").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name in PACKAGES
    if MODULES[name].with_suffix(".pyi").exists()
}

# Each floor may import those above it in this list, never those below.
FLOORS = (
    ("_names", "_tables", "_plots"),
    ("core",),
    ("_numerics", "_files", "_progress", "_provenance", "statistics"),
    ("constraints", "draws", "environments", "policies"),
    ("_engine",),
    ("oracles", "result", "simulation", "trajectory"),
    ("gradients", "logs", "testing", "sweeps"),
    ("tuning",),
    ("tools",),
    ("apps.comparison", "apps.live"),
    ("apps.citing",),
    ("apps._cli", "apps"),
    ("__main__",),
)
FLOOR = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def imported(name: str) -> list[tuple[str, str]]:
    """(module, name) that a module takes from the package, in functions too; no types."""
    blocks = [
        x
        for x in ast.walk(TREES[name])
        if isinstance(x, ast.If) and ast.unparse(x.test) == "TYPE_CHECKING"
    ]
    aside = {id(inner) for block in blocks for inner in ast.walk(block)}
    names = []
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxbandits":
            names += [
                (node.module or "", alias.name) for alias in node.names if id(node) not in aside
            ]
        if isinstance(node, ast.Import):
            names += [
                (alias.name, "") for alias in node.names if alias.name.split(".")[0] == "jaxbandits"
            ]
    return names


def arrows() -> dict[str, set[str]]:
    """Who imports whom, module by module, every ``__init__`` included.

    Who takes a name from a lazy room takes it from the module that has it; who takes the room, from
    all of them. The root is lazy, too: a module that takes a room or the version from it runs
    nothing of it but its few lines.
    """
    out: dict[str, set[str]] = {}
    for name in MODULES:
        sources = {
            f"{module}.{part}"
            if f"{module}.{part}" in MODULES
            else LAZY.get(module, {}).get(part, module)
            for module, part in imported(name)
        }
        out[name] = sources & set(MODULES) - {"jaxbandits"}
        if name != "jaxbandits":
            out[name] |= set(LAZY.get(name, {}).values())
    return out


def circle(out: dict[str, set[str]]) -> list[str]:
    """What is left when those that import nothing are taken away, again and again."""
    remaining = dict(out)
    while free := [name for name, targets in remaining.items() if not targets & remaining.keys()]:
        for name in free:
            del remaining[name]
    return sorted(remaining)


def test_there_is_no_circle() -> None:
    assert circle(arrows()) == []
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == ["a", "b", "c"]  # it can fail


def test_imports_go_down_only() -> None:
    for name, targets in arrows().items():
        for target in targets:
            above, below = room(name), room(target)
            assert above == below or FLOOR[above] > FLOOR[below] or _beside(above, below), (
                f"{name} imports {target}"
            )


def room(name: str) -> str:
    """The folder or file of a module: ``core``, or ``apps.live`` of what is built on the simulator."""
    _, first, *rest = name.split(".")
    return f"apps.{rest[0]}" if first == "apps" and rest else first


def _beside(above: str, below: str) -> bool:
    """On one floor later names import earlier ones, and policies know no environment."""
    floor = FLOORS[FLOOR[above]]
    in_order = FLOOR[above] == FLOOR[below] and floor.index(below) < floor.index(above)
    return in_order and (above, below) not in (
        ("policies", "environments"),
        ("apps.live", "apps.comparison"),
    )


def test_no_file_takes_another_ones_private_names() -> None:
    for folder in (ROOT, ROOT.parent / "experiments", ROOT.parent / "benchmarks"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    "jaxbandits"
                ):
                    for alias in node.names:
                        private = alias.name.startswith("_") and not alias.name.startswith("__")
                        assert not private or f"{node.module}.{alias.name}" in MODULES, (
                            path,
                            alias.name,
                        )


SEAMLESS = ("apps.comparison", "apps.live", "apps._cli")  # rooms that stand on what is public


def test_what_is_built_on_the_simulator_takes_its_public_names_only() -> None:
    """No underscore of the simulator, and of ``core`` what the folder hands on."""
    rooms = [name for name in MODULES if "." in name and room(name) in SEAMLESS]
    for name in rooms:
        for module, part in imported(name):
            outside = [x for x in (*module.split(".")[1:], part) if x]
            if outside[:1] == ["apps"] or (module == "jaxbandits" and part == "__version__"):
                continue
            if outside == ["_names", "attach"]:  # how a folder hands on its names
                continue
            assert not [x for x in outside if x.startswith("_")], (name, module, part)
            if outside[:1] == ["core"]:
                assert outside == ["core", part], (name, module, part)
                assert part in LAZY["jaxbandits.core"], (name, module, part)
    assert len(rooms) > 10


@pytest.mark.parametrize("name", sorted(name for name in PACKAGES if not re.search(r"\._", name)))
def test_what_is_public_is_said(name: str) -> None:
    package = importlib.import_module(name)
    public = list(package.__all__)
    assert len(set(public)) == len(public) and all(hasattr(package, x) for x in public)
    if name not in LAZY:
        handed_on = [
            a.asname or a.name
            for x in TREES[name].body
            if isinstance(x, ast.ImportFrom)
            for a in x.names
        ]
        assert sorted(public) == sorted(
            {x for x in handed_on if not x.startswith("_") and x != "annotations"}
        )
    for x in public:  # `import jaxbandits.simulate as s` must not give a function
        hidden = f"{name}.{x}" in MODULES and not isinstance(getattr(package, x), ModuleType)
        assert not hidden, f"{name}.{x} is a module and something else"


def test_dir_shows_what_is_meant() -> None:
    assert dir(jb) == sorted([*jb.__all__, "__version__"])
    assert not [x for x in jb.__all__ if x.startswith("_")]
    with pytest.raises(AttributeError, match="simulat"):
        jb.simulat  # noqa: B018


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    """0.05 s on an idle machine, with or without jax; this bound leaves room for a busy one."""
    heavy = ("jax", "matplotlib", "xarray", "tqdm", "pandas", "scipy")
    code = (
        "import time, sys, signal; told = signal.getsignal(signal.SIGINT); before = time.perf_counter()\n"
        "import jaxbandits\n"
        f"print(time.perf_counter() - before, *(m for m in {heavy} if m in sys.modules))\n"
        "assert signal.getsignal(signal.SIGINT) is told"
    )
    words = [python(code).stdout.split() for _ in range(3)]
    assert words[0][1:] == []
    assert statistics.median(float(fields[0]) for fields in words) <= 0.5


def test_another_project_of_the_same_name_is_told_at_import(tmp_path: Path) -> None:
    (tmp_path / "jaxbandits-1.0.0.dist-info").mkdir()
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import jaxbandits"
    assert f"another project's jaxbandits 1.0.0 is installed in {tmp_path}" in python(code).stderr
    assert python("import jaxbandits").stderr == ""


def test_a_comparison_begins_without_what_is_slow_to_import() -> None:
    code = "import sys, jaxbandits.apps._cli.compare, jaxbandits.environments.closing\n"
    code += "print(*(m for m in ('scipy.optimize', 'xarray', 'pandas') if m in sys.modules))"
    assert python(code).stdout.split() == []
