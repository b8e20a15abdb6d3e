"""Programs another process left on disk: the same bits, no trace; never of other code."""

from pathlib import Path
from typing import Any

import jax
import pytest

import jaxbandits as jb
from jaxbandits._engine import leap, pool, programs, scan
from jaxbandits.policies import MUCB, UCB1, BudgetedThompson, OmegaUCB
from tests.contract.worlds import with_its_own

ARMS = jb.environments.FiniteArms.bernoulli([[0.5, 0.4, 0.2]] * 2, [[0.5, 0.4, 0.1]] * 2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "FOLDER", tmp_path)
    return tmp_path


def digest_of(policy: Any, limit: Any = None, **options: Any) -> str:
    limit = limit or jb.TotalBudget([20.0, 30.0], last_pull="counts")
    keywords = {"key": jax.random.key(1), "replicates": 5, "marks": 3} | options
    return jb.simulate(policy, ARMS, limit, **keywords).provenance()["digest"]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def forget() -> None:
    """As a new process does."""
    programs._loaded.clear()
    pool._PROGRAMS.clear()


@pytest.mark.parametrize(
    ("policy", "engine"),
    [(OmegaUCB(rho=[0.25, 1.0]), "leap"), (BudgetedThompson(), "scan"), (UCB1(), "scan")],
)
@pytest.mark.quick_rows("policy2-scan")
def test_the_same_bits_without_a_trace(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policy: Any, engine: str
) -> None:
    first = digest_of(policy, engine=engine)
    assert len(files(folder)) == 1
    forget()
    monkeypatch.setattr(leap if engine == "leap" else scan, "chunk", None)  # a trace would call it
    assert digest_of(policy, engine=engine) == first
    monkeypatch.undo()  # FOLDER, too
    forget()
    assert digest_of(policy, engine=engine) == first


@pytest.mark.integration
def test_handed_out_lanes_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"replicates": 700, "engine": "scan"}
    expected = digest_of(MUCB(), **options)
    forget()
    assert len(files(folder)) == 1 and digest_of(MUCB(), **options) == expected
    monkeypatch.setattr(programs, "FOLDER", None)
    forget()
    assert digest_of(MUCB(), **options) == expected


def test_a_file_is_of_one_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers share it; static fields, engines, constraints and the source have others."""
    several = [
        lambda: digest_of(MUCB(alpha=0.25), engine="scan"),
        lambda: digest_of(MUCB(alpha=0.5), engine="scan"),
        lambda: digest_of(MUCB(alpha=0.5), engine="scan", key=jax.random.key(2)),
    ]
    assert len({run() for run in several}) == 3 and len(files(folder)) == 1
    forfeits = jb.TotalBudget(30.0, last_pull="forfeits")
    different = [
        lambda: digest_of(MUCB(alpha=0.25), engine="leap"),
        lambda: digest_of(MUCB(alpha=0.25), forfeits, engine="scan"),
        lambda: digest_of(UCB1(), engine="scan"),
    ]
    for number, run in enumerate(different):
        run()
        assert len(files(folder)) == 2 + number
    digest_of(UCB1(), engine="scan", replicates=40)
    assert len(files(folder)) == 5


def test_other_source_has_other_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest_of(MUCB())
    monkeypatch.setattr(programs, "package_digest", lambda: "as it was before")
    forget()
    # Found under no name, and not written: it has changed
    assert digest_of(MUCB()) == expected and len(files(folder)) == 1
    monkeypatch.setattr(programs, "digest_now", lambda: "as it was before")
    forget()
    assert digest_of(MUCB()) == expected and len(files(folder)) == 2


def test_a_users_code_is_not_kept(folder: Path) -> None:
    digest_of(with_its_own(MUCB, "Mine", score=lambda self, arms: -arms.n)())
    digest_of(
        jb.policies.Windowed(with_its_own(MUCB, "Mine", score=lambda self, arms: arms.n)(), 10)
    )
    assert not files(folder)


@pytest.mark.parametrize("content", [b"", b"no program"])
def test_a_broken_file_is_made_anew(folder: Path, content: bytes) -> None:
    expected = digest_of(MUCB())
    (file,) = folder.iterdir()
    size = file.stat().st_size
    file.write_bytes(content)
    forget()
    assert digest_of(MUCB()) == expected and file.stat().st_size == size
