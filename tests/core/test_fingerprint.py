"""Edited code plays its own program (autoreload, patching, reads); static values differ exactly."""

from __future__ import annotations

import contextvars
import functools
import os
import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jaxbandits as jb
from jaxbandits._engine.setup import lay_out
from jaxbandits.core.fingerprint import is_users
from jaxbandits.policies.base import IndexPolicy
from jaxbandits.testing.lanes import compilations
from tests.contract.worlds import with_its_own

ARMS = jb.environments.FiniteArms.bernoulli([0.9, 0.5, 0.1], [0.2, 0.5, 0.9])


def pulls(policy: Any) -> list[int]:
    result = jb.simulate(policy, ARMS, jb.Horizon(90), key=jax.random.key(0), marks=1)
    return [int(n) for n in result.final["pulls"][0, 0, 0]]


MODULE = """
import jaxbandits as jb
from jaxbandits.policies.base import IndexPolicy

def best(arms):
    return {sign} * arms.reward

@jb.pytree
class Mine(IndexPolicy):
    def score(self, arms):
        return {score}
"""


def test_autoreload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The method's code, a function that it calls; an object that was made before the edit, too."""
    monkeypatch.syspath_prepend(tmp_path)
    shell, module, digests = InteractiveShell(), tmp_path / "edited.py", []
    shell.push({"pulls": pulls})
    for number, (score, sign) in enumerate(
        (("best(arms)", 1), ("-arms.reward", 1), ("best(arms)", -1))
    ):
        module.write_text(MODULE.format(score=score, sign=sign))
        # An editor is slower than the clock of a file
        os.utime(module, (time.time() + 10 * number,) * 2)
        if number == 0:
            shell.run_cell(
                "%load_ext autoreload\n%autoreload 2\nimport edited\nold = edited.Mine()"
            )
        cell = shell.run_cell("pulls(edited.Mine()), pulls(old)")
        cell.raise_error()
        digests.append(cell.result)
    assert all(new == old for new, old in digests)
    assert digests[0] != digests[1] == digests[2]  # two ways to write one score


@jb.pytree
class Fixed(IndexPolicy):
    fixed: Any = jb.static(default=0)

    def score(self, arms: Any) -> Any:
        return arms.reward * (1 if isinstance(self.fixed, float) and np.signbit(self.fixed) else -1)


def test_static_values_that_are_equal_but_not_the_same() -> None:
    values = [1, 1.0, True, 0.0, -0.0, (1,), (1.0,), "1", None]
    structures = [jax.tree.structure(Fixed(value)) for value in values]
    assert [structures.index(structure) for structure in structures] == list(range(len(values)))
    assert structures == [jax.tree.structure(Fixed(value)) for value in values]
    assert pulls(Fixed(0.0)) != pulls(Fixed(-0.0))


@pytest.mark.parametrize("value", [[1], np.ones(2), {1: 2}])
def test_a_static_value_without_a_hash_is_refused(value: Any) -> None:
    with pytest.raises(jb.InputError, match=r"Fixed\.fixed: .* given; it must be hashable"):
        pulls(Fixed(value))


# ---- whatever a method reads while it is traced


class Holder:
    big = np.ones(300_000)
    file: Path


SIGN = 1.0


def closure() -> tuple[Any, Any]:
    sign = 1.0

    def read() -> float:
        return sign

    def put(value: float) -> None:
        nonlocal sign
        sign = value

    return read, put


CLOSED, PUT = closure()


@jax.jit
def jitted() -> Any:
    return jnp.float32(SIGN)


def body(i: Any, x: Any) -> Any:
    return SIGN * x


def put_global(value: float) -> None:
    global SIGN
    SIGN = value


def put_environ(value: float) -> None:
    os.environ["JAXBANDITS_TEST_SIGN"] = str(value)


class Sign:
    def read(self) -> float:
        return 1.0


READS: dict[str, tuple[Any, Any]] = {
    # Another array, not the same one edited: jax 0.10 keeps its float32 copy of a NumPy array.
    "array above a megabyte": (
        lambda: jnp.asarray(Holder.big)[7],
        lambda x: setattr(Holder, "big", np.full(300_000, x)),
    ),
    "os.environ": (lambda: os.environ["JAXBANDITS_TEST_SIGN"], put_environ),
    "file": (lambda: Holder.file.read_text(), lambda x: Holder.file.write_text(str(x))),
    "global": (lambda: SIGN, put_global),
    "closure": (lambda: CLOSED(), PUT),
    "patched method": (lambda: Sign().read(), lambda x: setattr(Sign, "read", lambda self: x)),
    "jitted function": (lambda: jitted(), put_global),
    "body of a loop": (lambda: jax.lax.fori_loop(0, 3, body, jnp.float32(1)), put_global),
}


@jb.pytree
class Reads(IndexPolicy):
    name: str = jb.static()
    width: float = jb.leaf(default=1.0)

    def score(self, arms: Any) -> Any:
        sign = READS[self.name][0]()
        return self.width * arms.reward * (float(sign) if isinstance(sign, str) else sign)


@pytest.fixture
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Puts a sign where the policy of this name reads it, in the end the first one."""
    Holder.file = tmp_path / "sign.txt"
    change = READS[request.param][1]
    change(1.0)
    yield change
    change(1.0)


def program(policy: Any) -> str:
    """The digest of what a call would play."""
    digest = lay_out(policy, ARMS, jb.Horizon(90), key=jax.random.key(0)).tasks[0].program
    assert digest is not None
    return digest


@pytest.mark.parametrize(("name", "put"), [(x, x) for x in READS], indirect=["put"])
def test_a_program_belongs_to_what_was_traced(name: str, put: Any) -> None:
    policy = Reads(name)
    first = program(policy)
    put(-1.0)
    assert program(policy) != first
    put(1.0)
    assert program(policy) == first


PLAYED = ["array above a megabyte", "jitted function", "body of a loop"]


@pytest.mark.parametrize(("name", "put"), [(x, x) for x in PLAYED], indirect=["put"])
def test_the_edited_program_is_played(name: str, put: Any) -> None:
    policy = Reads(name)
    first = pulls(policy)
    put(-1.0)
    second = pulls(policy)
    put(1.0)
    assert second != first == pulls(policy)


def test_other_values_of_leaves_compile_nothing() -> None:
    """The digest is of shapes: a sweep over a leaf of the user's own policy has one program."""
    assert program(Reads("global")) == program(Reads("global", width=3.0))
    pulls(Reads("global"))
    with compilations() as programs:
        pulls(Reads("global", width=2.0))
    assert programs == []


def test_no_dataclass_of_this_package_counts_as_a_users() -> None:
    """Whatever methods this Python's dataclasses add."""
    for room in (jb.policies, jb.environments):
        assert all(hasattr(room, name) for name in room.__all__)  # imported by the first look
    modules = [module for name, module in sys.modules.items() if name.startswith("jaxbandits.")]
    classes = {x for module in modules for x in vars(module).values() if isinstance(x, type)}
    ours = {x for x in classes if x.__module__.startswith("jaxbandits.") and is_dataclass(x)}
    assert len(ours) > 100 and [x for x in ours if is_users(x)] == []


def test_what_is_all_this_packages_is_not_traced() -> None:
    for policy in (jb.policies.OmegaUCB(), jb.policies.Guarded(jb.policies.UCB1())):
        assert not is_users(policy)
    for noun in (ARMS, jb.Horizon(90), jb.TotalBudget(9.0, last_pull="counts").prepare(ARMS)):
        assert not is_users(noun)
    assert is_users(Reads("global")) and is_users(jb.policies.Guarded(Reads("global")))
    slopes = {"lipschitz_reward": 1.0, "lipschitz_cost": 1.0}
    for mean in (body, functools.partial(body, 0), lambda x, _: body(0, x)):
        assert is_users(jb.environments.Continuum.of(mean, mean, **slopes))


def test_code_of_no_module_is_a_users() -> None:
    names: dict[str, Any] = {"IndexPolicy": IndexPolicy}
    exec("def score(self, arms):\n    return arms.reward", names)  # `__name__` is not among them
    assert names["score"].__module__ is None
    Mine = jb.pytree(type("Mine", (IndexPolicy,), {"score": names["score"]}))
    assert is_users(Mine()) and sum(pulls(Mine())) == 90


def test_asking_whose_code_it_is_costs_less_than_a_millisecond() -> None:
    owners = jb.policies.OmegaUCB(), Fixed(), ARMS, jb.Horizon(90)
    took = []
    for _ in range(20):
        began = time.perf_counter()
        for owner in owners:
            is_users(owner)
        took.append(time.perf_counter() - began)
    assert min(took) < 1e-3


def test_a_class_that_was_pickled_or_patched_for_a_while_is_the_packages_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class_, policy = jb.policies.UCBB2, jb.policies.UCBB2()
    # The class may be met for the first time while it is patched
    with monkeypatch.context() as patch:
        patch.setattr(class_, "score", lambda self, arms: arms.n)
        assert is_users(policy)
    assert not is_users(policy)
    pickle.loads(pickle.dumps(policy))  # adds __slotnames__ to the class
    assert not is_users(policy)


WISH = contextvars.ContextVar("WISH", default=0)
TABLES = {"by name": [np.zeros(3)]}


class Held:
    table = np.zeros(3, np.int64)


def wishing(reads: Any) -> Any:
    def score(self: Any, arms: Any) -> Any:
        return (0 * arms.reward + reads()).astype(jnp.float32)

    return with_its_own(IndexPolicy, score=score)()


def chosen(policy: Any) -> int:
    arms = jb.environments.FiniteArms.bernoulli([0.5] * 3, [0.5] * 3)
    result = jb.simulate(policy, arms, jb.Horizon(20), key=jax.random.key(0), marks=1)
    return int(result.final["pulls"].argmax())


@pytest.mark.parametrize("where", ["closure", "global", "class"])
def test_an_array_of_64_bits_that_was_edited_is_read_anew(where: str) -> None:
    """jax would keep its copy of 32 bits for as long as a program that reads it is there."""
    large = np.zeros(200_000)
    reads, table = {
        "closure": (lambda: jnp.asarray(large)[:3], large),
        "global": (lambda: 0 + TABLES["by name"][0], TABLES["by name"][0]),
        "class": (lambda: jnp.where(Held.table > 0, Held.table, 0), Held.table),
    }[where]
    for best in (1, 2, 1):
        table[:3] = 0
        table[best] = 1
        assert chosen(wishing(reads)) == best


def test_a_context_variable_of_the_caller_is_seen_where_programs_are_traced() -> None:
    policy = wishing(lambda: jnp.arange(3) == WISH.get())
    for best in (1, 2, 0):
        token = WISH.set(best)
        assert chosen(policy) == best
        WISH.reset(token)
