"""What is released: one version, packaging, workflows, a wheel without the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

import jaxbandits as jb

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_version_has_one_source() -> None:
    assert "version" not in PROJECT["project"] and "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "jaxbandits/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", jb.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert released and released[0][0] == jb.__version__
    assert changes.index("## [Unreleased]") < changes.index(f"## [{jb.__version__}]")


def test_addresses_are_said_once() -> None:
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= PROJECT["project"][
        "urls"
    ].keys()
    for name in ("README.md", "CONTRIBUTING.md", "CITATION.cff", "jaxbandits/__init__.py"):
        assert "example.org" not in (ROOT / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows(path: Path) -> None:
    """Actions by their major version, few rights, no secrets; targets of the Makefile that exist."""
    yaml = pytest.importorskip("yaml")
    text = path.read_text(encoding="utf-8")
    flow: dict[Any, Any] = yaml.safe_load(text)
    # "on" is a truth value
    assert flow["permissions"] == {"contents": "read"} and "secrets." not in text and flow[True]
    steps = [step for job in flow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "x/y@v1")), step
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for targets in re.findall(r"make PYTHON=python (.+)$", text, re.MULTILINE):
        for target in targets.split():
            assert re.search(rf"^{target}:", makefile, re.MULTILINE) or target == "docs", target


def test_the_workflows_that_are_asked_for() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"test", "docs", "publish", "newest-jax"}
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    job = flow["jobs"]["publish"]
    assert job["permissions"] == {"id-token": "write"} and job["environment"] == "pypi"
    assert job["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    weekly = yaml.safe_load((ROOT / ".github/workflows/newest-jax.yml").read_text(encoding="utf-8"))
    assert weekly[True]["schedule"][0]["cron"]


@pytest.mark.parametrize(
    ("versions", "whole", "quick"),
    [
        (("3.9.18", "3.12.1", "3.100.0", "3.11.7"), "3.11.7", "3.100.0"),
        (("3.10.13", "3.12.1"), "3.12.1", None),
    ],
)
def test_everything_on_the_oldest_python_and_the_quick_half_on_the_newest(
    tmp_path: Path, versions: tuple[str, ...], whole: str, quick: str | None
) -> None:
    """`.ci/run` among made-up interpreters, which a pyenv holds, and a made-up `make`."""
    tools = tmp_path / "bin"
    for place in (tools, tmp_path / ".ci"):
        place.mkdir()
    for tool in ("bash", "dirname", "head", "sort", "tail"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    programs = {tools / "make": 'echo "make $*"'}
    for version in versions:
        recent = int(version.split(".")[1]) >= 11
        programs[tmp_path / f"versions/{version}/bin/python3"] = (
            f'echo "{version} $0"' if recent else "exit 1"
        )
    for path, text in programs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{shutil.which('sh')}\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    environment = {"PATH": str(tools), "PYENV_ROOT": str(tmp_path)}
    command = [tools / "bash", tmp_path / ".ci/run"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    python = {version: tmp_path / f"versions/{version}/bin/python3" for version in versions}
    expected = [f"make PYTHON={python[whole]} {target}" for target in ("test-integration", "test")]
    if quick:
        expected.append(f"make VENV=.venv-newest PYTHON={python[quick]} unit-core")
    assert [line for line in done.stdout.splitlines() if line.startswith("make")] == expected
    assert done.stdout.endswith(f"Passed on Python {whole}{f' and {quick}' if quick else ''}\n")
    assert "3.9.18" not in done.stdout and "3.10.13" not in done.stdout


@pytest.mark.integration
def test_the_wheel_does_the_main_job_without_the_repository(tmp_path: Path) -> None:
    """Built here, installed beside this environment's dependencies, run elsewhere."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel: pip install '.[test]'")
    built = tmp_path / "dist"
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(built)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=60)
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"jaxbandits-{jb.__version__}-py3")
    names = zipfile.ZipFile(wheel).namelist()
    files = ("py.typed", "data/sample_ads.csv", "data/papers.bib", "pictures.mplstyle")
    for file in (*files, "column.mplstyle"):
        assert f"jaxbandits/{file}" in names, file
    assert not [
        x for x in names if re.search(r"(^|/)(tests|experiments|benchmarks|__pycache__)/|\.pyc$", x)
    ]
    with tarfile.open(source) as archive:
        packed = [x.split("/", 1)[1] for x in archive.getnames() if "/" in x]
    files = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md"}
    assert files | {"hatch_build.py", "docs/gallery/plot_ads_file.py"} <= set(packed)
    assert not [
        x for x in packed if re.search(r"(^|/)(__pycache__|_build|auto_gallery|\.cache)/|\.pyc$", x)
    ]

    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    python = fresh / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    pip += ["--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=60)
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    outside = {
        name: x for name, x in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    run = subprocess.run(
        [python, "-c", "import jaxbandits; print(jaxbandits.__file__, jaxbandits.cite('bts'))"],
        cwd=tmp_path, env=outside, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert run.stdout.startswith(str(packages)) and "xia2015b" in run.stdout
    command = fresh / "bin/jaxbandits"
    subprocess.run(
        [command, "demo", "--out", "demo"], cwd=tmp_path, env=outside, check=True, timeout=240
    )
    pictures = sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert pictures == ["regret.png", "sensitivity.png", "slope.png"]
