"""The house: who may import whom, what is public, how large a room may be. See docs/architecture.md."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import jaxbandits as jb

ROOT = Path(jb.__file__).parent
PAGE = (ROOT.parent / "docs/architecture.md").read_text()
MODULES = {".".join(("jaxbandits", *p.relative_to(ROOT).with_suffix("").parts)): p for p in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}
PACKAGES = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")
PUBLIC = [name for name in PACKAGES if not re.search(r"\._", name)]
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def for_types_only(tree: ast.AST) -> set[int]:
    """Nodes under ``if TYPE_CHECKING``."""
    blocks = [x for x in ast.walk(tree) if isinstance(x, ast.If) and ast.unparse(x.test).endswith("TYPE_CHECKING")]
    return {id(inner) for block in blocks for inner in ast.walk(block)}


def imported(name: str) -> list[tuple[str, str]]:
    """(module, name) of all that a module takes from the package, also inside of functions."""
    aside = for_types_only(TREES[name])
    found = []
    for node in ast.walk(TREES[name]):
        if id(node) in aside:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxbandits":
            found += [(node.module or "", alias.name) for alias in node.names]
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "jaxbandits"]
    return found


def arrows() -> dict[str, set[str]]:
    """Who imports whom, file by file; a package's ``__init__`` only hands names on, and is left out."""
    out: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            taken = (f"{module}.{part}" if f"{module}.{part}" in MODULES else module for module, part in imported(name))
            out[name] = {target for target in taken if target not in PACKAGES}
    return out


def circle(out: dict[str, set[str]]) -> list[str]:
    """What is left when those that import nothing are taken away, again and again."""
    left = dict(out)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_imports_go_down_only() -> None:
    assert circle(arrows()) == []
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == ["a", "b", "c"]  # it can fail


def test_folders_import_in_one_direction() -> None:
    def room(name: str) -> str:
        return ".".join(name.split(".")[:2])

    folders: dict[str, set[str]] = {}
    for name, targets in arrows().items():
        folders.setdefault(room(name), set()).update({room(target) for target in targets} - {room(name)})
    assert circle(folders) == []


def test_policies_know_no_environment() -> None:
    for name, targets in arrows().items():
        if name.startswith("jaxbandits.policies."):
            assert not [target for target in targets if target.startswith("jaxbandits.environments")], name


def test_no_file_takes_another_ones_private_names() -> None:
    for folder in (ROOT, ROOT.parent / "experiments", ROOT.parent / "benchmarks"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxbandits"):
                    for alias in node.names:
                        private = alias.name.startswith("_") and not alias.name.startswith("__")
                        assert not private or f"{node.module}.{alias.name}" in PACKAGES, (path, alias.name)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_said(name: str) -> None:
    package = importlib.import_module(name)
    tree = TREES[name]
    handed_on = [a.asname or a.name for x in tree.body if isinstance(x, ast.ImportFrom) for a in x.names]
    said = list(getattr(package, "__all__", ()))
    assert sorted(said) == sorted({x for x in handed_on if not x.startswith("_") and x != "interrupt"})
    assert len(set(said)) == len(said) and all(hasattr(package, x) for x in said)
    for x in said:  # `import jaxbandits.simulate as s` must not give a function
        hidden = f"{name}.{x}" in MODULES and not isinstance(getattr(package, x), ModuleType)
        assert not hidden, f"{name}.{x} is a module and something else"


def test_dir_shows_what_is_meant() -> None:
    assert dir(jb) == sorted([*jb.__all__, "__version__"])
    assert not [x for x in jb.__all__ if x.startswith("_")]


def test_rooms_are_small_unless_the_page_says_why() -> None:
    excused = set(re.findall(r"`([\w./]+)`", PAGE[PAGE.index("## Larger than the rule") :].split("\n## ")[0]))
    for name, path in MODULES.items():
        file = str(path.relative_to(ROOT))
        if file not in excused:
            assert len(path.read_text().splitlines()) <= 300, f"{file} has more than 300 lines"
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.FunctionDef) and node.name not in excused:
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body:
                    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
                    assert lines <= 50, f"{file}: {node.name} has {lines} lines"


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    """Half a second on an idle machine; this bound leaves room for a busy one."""
    heavy = ("matplotlib", "xarray", "tqdm", "pandas", "scipy.special", "scipy.stats", "scipy.optimize")
    code = (
        "import time, sys, jax; before = time.perf_counter(); import jaxbandits\n"
        f"print(time.perf_counter() - before, *(m for m in {heavy} if m in sys.modules))"
    )
    told = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    words = [done.stdout.split() for done in told]
    assert words[0][1:] == []
    assert statistics.median(float(found[0]) for found in words) <= 1.5
