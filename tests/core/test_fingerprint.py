"""Edited code plays its own program (a new cell, autoreload, patching); static values are told
apart exactly.
"""

from __future__ import annotations

import array
import ast
import collections
import os
import pickle
import subprocess
import sys
import time
import types
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, ClassVar

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

ARMS = jb.environments.FiniteArms.bernoulli([0.9, 0.5, 0.1], [0.2, 0.5, 0.9])


def pulls(policy: Any) -> list[int]:
    result = jb.simulate(policy, ARMS, jb.Horizon(90), key=jax.random.key(0), marks=1)
    return [int(n) for n in result.final["pulls"][0, 0, 0]]


MODULE = """
import jaxbandits as jb
from jaxbandits.policies.base import IndexPolicy

SIGN = [{sign}]

def best(arms):
    return {sign} * arms.reward

@jb.pytree
class Mine(IndexPolicy):
    def score(self, arms):
        return {score}
"""
# The method's own code; a function that it calls; a list of the module that it reads.
EDITS = [
    ("best(arms)", 1),
    ("-arms.reward", 1),
    ("best(arms)", -1),
    ("SIGN[0] * arms.cost", 1),
    ("SIGN[0] * arms.cost", -1),
]


def of_a_new_process(score: str, sign: int) -> list[int]:
    """A class that was never seen, and no program of any other."""
    space: dict[str, Any] = {"__name__": "fresh"}
    exec(compile(MODULE.format(score=score, sign=sign), "fresh.py", "exec"), space)
    jax.clear_caches()
    return pulls(space["Mine"]())


@pytest.fixture(scope="module")
def wanted() -> list[list[int]]:
    found = [of_a_new_process(*edit) for edit in EDITS]
    assert len(set(map(tuple, found))) >= 3  # else no edit would show
    return found


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(tmp_path)
    shell = InteractiveShell()
    shell.push({"pulls": pulls})

    def run(code: str) -> Any:
        done = shell.run_cell(code)
        done.raise_error()
        return done.result

    return run


@pytest.mark.integration
def test_a_new_cell(cell: Any, wanted: list[list[int]]) -> None:
    found = []
    for score, sign in EDITS:
        cell(MODULE.format(score=score, sign=sign))
        found.append(cell("pulls(Mine())"))
    assert found == wanted


def test_autoreload(cell: Any, wanted: list[list[int]], tmp_path: Path) -> None:
    module, found = tmp_path / "edited.py", []
    for number, (score, sign) in enumerate(EDITS):
        module.write_text(MODULE.format(score=score, sign=sign))
        # An editor is slower than the clock of a file
        os.utime(module, (time.time() + 10 * number,) * 2)
        if number == 0:
            cell("%load_ext autoreload\n%autoreload 2\nimport edited\nmine = edited.Mine()")
        found.append(cell("pulls(edited.Mine())"))
        assert cell("pulls(mine)") == found[-1]  # an object that was made before the edit
    assert found == wanted


def test_patching_and_globals_of_the_session(cell: Any, wanted: list[list[int]]) -> None:
    cell(MODULE.format(score="best(arms)", sign=1))
    found = [cell("pulls(Mine())")]
    found.append(cell("Mine.score = lambda self, arms: -arms.reward\npulls(Mine())"))
    found.append(
        cell("SIGN = [-1]\nMine.score = lambda self, arms: SIGN[0] * arms.reward\npulls(Mine())")
    )
    found.append(
        cell("SIGN[0] = 1\nMine.score = lambda self, arms: SIGN[0] * arms.cost\npulls(Mine())")
    )
    found.append(cell("SIGN[0] = -1\npulls(Mine())"))
    assert found == wanted


WRAPPED = """
import functools
import jax
import jax.numpy as jnp
import jaxbandits as jb
from jaxbandits.policies.base import IndexPolicy

def times(factor):
    def of(method):
        @functools.wraps(method)
        def scaled(self, arms):
            return factor * method(self, arms)
        return scaled
    return of

plain = lambda self, arms: first(jnp.outer(arms.reward, jnp.ones(3)))

@jb.pytree
class Mine(IndexPolicy):
    score = times(1)(plain)
"""


def test_what_wrappers_were_made_with(cell: Any) -> None:
    """In another cell than the class; the code of what they wrap stays the same."""
    first = "first = jax.vmap(lambda column: column[0], in_axes={})\n"
    cell(WRAPPED + first.format(0))
    edits = (
        "",
        "Mine.score = times(-1)(plain)\n",
        "Mine.score = times(1)(plain)\n" + first.format(1),
        first.format(0),
    )
    found = [cell(f"{edit}pulls(Mine())") for edit in edits]
    assert found[0] == found[3] and found[0] != found[1] and found[0] != found[2]


HELD = """
import functools
import jax
import sys
import types
import numpy as np
import jaxbandits as jb
from jaxbandits.policies.base import IndexPolicy

helpers = sys.modules["helpers"] = types.ModuleType("helpers")
helpers.plus, helpers.gain = lambda: 1, lambda arms: arms.reward

class Weights:
    factor = 1
    def __init__(self):
        self.own = 1
    def __call__(self):
        return self.factor * self.own

def one():
    return weights.own

@jax.jit
def jitted(x):
    return gains[0] * x

@jb.pytree
class Mine(IndexPolicy):
    factor: object = jb.static()
    _table = np.ones(1)
    def score(self, arms):
        from helpers import gain
        return self.factor() * helpers.plus() * jitted(self._table[0]) * gain(arms)

gains = [1]
weights = Weights()
mine = {made}
"""


@pytest.mark.parametrize(
    ("made", "edit"),
    [
        ("Mine(one)", "helpers.plus = lambda: -1"),
        ("Mine(one)", "helpers.gain = lambda arms: -arms.reward"),
        ("Mine(one)", "Mine._table[0] = -1"),
        ("Mine(one)", "Mine._table = -Mine._table"),
        ("Mine(one)", "one.__code__ = (lambda: -1).__code__"),
        ("Mine(one)", "weights.own = -1"),
        ("Mine(one)", "gains[0] = -1"),
        ("Mine(functools.partial(one))", "weights.own = -1"),
        ("Mine(weights)", "weights.own = -1"),
        ("Mine(weights)", "Weights.factor = -1"),
        ("Mine(weights.__call__)", "weights.own = -1"),
        ("Mine((lambda: (lambda: weights()))())", "Weights.__call__ = lambda self: -1"),
    ],
)
@pytest.mark.quick_rows(
    "Mine(one)-Mine._table[0] = -1",
    "Mine(one)-gains[0] = -1",
    "Mine(functools.partial(one))-weights.own = -1",
)
def test_what_methods_reach_through_objects(cell: Any, made: str, edit: str) -> None:
    """Other modules of the user's, attributes of classes, functions and objects in static fields."""
    cell(HELD.format(made=made))
    before, after = cell("pulls(mine)"), cell(f"{edit}\npulls(mine)")
    jax.clear_caches()
    assert before != after == cell("pulls(mine)")


def test_a_class_of_the_package_that_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pulls(jb.policies.UCB1())
    monkeypatch.setattr(jb.policies.UCB1, "score", lambda self, arms: -arms.reward)
    assert pulls(jb.policies.UCB1()) != before
    monkeypatch.undo()
    assert pulls(jb.policies.UCB1()) == before


@jb.pytree
class Fixed(IndexPolicy):
    fixed: Any = jb.static(default=0)

    def score(self, arms: Any) -> Any:
        return arms.reward * (1 if isinstance(self.fixed, float) and np.signbit(self.fixed) else -1)


def test_static_values_that_are_equal_but_not_the_same() -> None:
    values = [1, 1.0, True, 0.0, -0.0, (1,), (1.0,), "1", None]
    structures = [jax.tree.structure(Fixed(value)) for value in values]
    assert [structures.index(one) for one in structures] == list(range(len(values)))
    assert structures == [jax.tree.structure(Fixed(value)) for value in values]
    assert pulls(Fixed(0.0)) != pulls(Fixed(-0.0))


@pytest.mark.parametrize("value", [[1], np.ones(2), {1: 2}])
def test_a_static_value_without_a_hash_is_refused(value: Any) -> None:
    with pytest.raises(jb.InputError, match=r"Fixed\.fixed: .* given; it must be hashable"):
        pulls(Fixed(value))


# ---- whatever a method reads while it is traced


class Slots:
    __slots__ = ("sign",)


class Held:
    """One holder of a sign for each kind of thing that a method may read."""

    big = np.ones(300_000)
    slots = Slots()
    space = types.SimpleNamespace(sign=1.0)
    queue: ClassVar = collections.deque([1.0])
    mapping: ClassVar = collections.UserDict(sign=1.0)
    numbers = array.array("d", [1.0])
    objects = np.array([1.0], object)
    octets = bytearray([1])
    file: Path


Held.slots.sign = 1.0
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
    value = 1.0

    def read(self) -> float:
        return self.value


READS: dict[str, tuple[Any, Any]] = {
    "array above a megabyte": (lambda: Held.big[7], lambda x: Held.big.__setitem__(7, x)),
    "__slots__": (lambda: Held.slots.sign, lambda x: setattr(Held.slots, "sign", x)),
    "SimpleNamespace": (lambda: Held.space.sign, lambda x: setattr(Held.space, "sign", x)),
    "deque": (lambda: Held.queue[0], lambda x: Held.queue.__setitem__(0, x)),
    "UserDict": (lambda: Held.mapping["sign"], lambda x: Held.mapping.__setitem__("sign", x)),
    "array.array": (lambda: Held.numbers[0], lambda x: Held.numbers.__setitem__(0, x)),
    "object array": (lambda: Held.objects[0], lambda x: Held.objects.__setitem__(0, x)),
    "bytearray": (
        lambda: 2.0 * Held.octets[0] - 1,
        lambda x: Held.octets.__setitem__(0, int(x > 0)),
    ),
    "globals()": (lambda: globals()["SIGN"], put_global),
    "os.environ": (lambda: os.environ["JAXBANDITS_TEST_SIGN"], put_environ),
    "file": (lambda: Held.file.read_text(), lambda x: Held.file.write_text(str(x))),
    "global": (lambda: SIGN, put_global),
    "closure": (lambda: CLOSED(), PUT),
    "patched method": (lambda: Sign().read(), lambda x: setattr(Sign, "read", lambda self: x)),
    "class attribute": (lambda: Sign.value, lambda x: setattr(Sign, "value", x)),
    "jitted function": (lambda: jitted(), put_global),
    "body of a loop": (lambda: jax.lax.fori_loop(0, 3, body, jnp.float32(1)), put_global),
}


@jb.pytree
class Reads(IndexPolicy):
    name: str = jb.static()
    width: float = jb.leaf(default=1.0)

    def score(self, arms: Any) -> Any:
        sign = READS[self.name][0]()
        return (
            self.width
            * arms.reward
            * (float(sign) if isinstance(sign, (str, np.generic)) else sign)
        )


@pytest.fixture
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Puts a sign where the policy of this name reads it, in the end the first one."""
    Held.file = tmp_path / "sign.txt"
    change = READS[request.param][1]
    change(1.0)
    yield change
    change(1.0)


def program(policy: Any) -> str:
    """The digest of what a call would play."""
    found = lay_out(policy, ARMS, jb.Horizon(90), key=jax.random.key(0)).tasks[0].program
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "put"), [(x, x) for x in READS], indirect=["put"])
def test_a_program_belongs_to_what_was_traced(name: str, put: Any) -> None:
    policy = Reads(name)
    first = program(policy)
    put(-1.0)
    assert program(policy) != first
    put(1.0)
    assert program(policy) == first


PLAYED = ["array above a megabyte", "os.environ", "file", "jitted function", "body of a loop"]


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


def test_every_process_makes_the_same_digests() -> None:
    names = ["array above a megabyte", "jitted function", "body of a loop"]
    script = (
        f"from tests.core.test_fingerprint import *; print([program(Reads(x)) for x in {names!r}])"
    )

    def another(seed: str) -> list[str]:
        environ = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
        )
        return list(ast.literal_eval(done.stdout))

    first = another("1")
    assert first == another("2") and len(set(first)) == len(names)


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
