"""Rounds in one native function: whatever a user writes plays as before, with the same bits."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import driver, pool, scan
from jaxbandits._engine.setup import lay_out
from jaxbandits.policies import UCB1
from tests.contract.worlds import with_its_own

ARMS = jb.environments.random_bernoulli(jax.random.key(0), instances=5, arms=6)
LIMIT = jb.TotalBudget(20.0, last_pull="counts")


def play(policy: jb.Policy, limit: Any = LIMIT, **options: Any) -> jb.Result:
    keywords = {"key": jax.random.key(1), "replicates": 3, "marks": 3, "engine": "scan"}
    return jb.simulate(policy, ARMS, limit, **keywords | options)


def on_host(x: jax.Array) -> jax.Array:
    half = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda x: np.asarray(x) / 2, half, x, vmap_method="expand_dims")


def doubled_until_large(x: jax.Array) -> jax.Array:
    return jax.lax.while_loop(lambda x: x.min() < 1, lambda x: 2 * x, x + 0.1)


CODE = {  # what a score goes through, and what has no native form in it
    "argsort": (lambda x: x + jnp.argsort(x) / 8, "sort"),
    "scatter": (lambda x: x.at[jnp.argmin(x)].set(0.0), "scatter"),
    "callback": (on_host, "pure_callback"),
    "print": (lambda x: (jax.debug.callback(lambda _: None, x[0]), x)[1], "debug_callback"),
    "tan": (lambda x: x + jnp.tan(x / 8), "tan"),  # another last bit
    "matrix": (
        lambda x: x + jnp.outer(y := jnp.nan_to_num(x, posinf=9), y) @ y / 99,
        "",
    ),  # it may have, or not
    "cond": (lambda x: jax.lax.cond(jnp.argmax(x) > 2, jnp.sqrt, jnp.exp, x), None),
    "while": (doubled_until_large, None),
    "draws": (lambda x: x + jax.random.uniform(jax.random.key(3), x.shape), None),
    "unused": (lambda x: (jnp.cumsum(x) @ x, x)[1], ""),
}


@pytest.mark.parametrize("name", CODE)
@pytest.mark.quick_rows("argsort")
@pytest.mark.sample_rows("argsort", "callback", "scatter", "while", "draws")
def test_code_of_a_user_plays_with_the_bits_of_the_plain_program(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, foreign = CODE[name]
    policy = with_its_own(UCB1, "Mine", score=lambda self, *a: code(UCB1.score(self, *a)))()
    result = play(policy)
    reason = result.about.why_plain
    if foreign is None:
        assert reason is None
    elif foreign:
        assert reason == f"{foreign} has no native form"
    monkeypatch.setattr(scan, "NATIVE_LANES", 0)
    plain = play(policy)
    assert plain.about.why_plain is None
    assert plain.provenance()["digest"] == result.provenance()["digest"]
    assert (np.asarray(result.rounds)[..., -1] > 20).all()


def test_what_the_compiler_refuses_is_compiled_once_more_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever code generator compiles: here the refusal of a native program is ours."""
    tried: list[bool] = []
    real = pool.Queue._stored_program

    def stored(queue: pool.Queue, device: Any, native: bool, takes: Any) -> Any:
        tried.append(native)
        if native:
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: no such thing\nand more lines")
        return real(queue, device, native, takes)

    monkeypatch.setattr(pool.Queue, "_stored_program", stored)
    policy = with_its_own(UCB1, "Refused", score=lambda self, *a: 0.5 * UCB1.score(self, *a))()
    first, again = play(policy), play(policy)
    assert tried == [True, False]
    assert first.about.why_plain == again.about.why_plain == "UNIMPLEMENTED: no such thing"
    assert first.provenance()["digest"] == again.provenance()["digest"]


def test_threads_that_ask_at_once_have_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = driver._begin_all

    def late(*takes: Any) -> Any:
        time.sleep(0.5)
        return begin(*takes)

    monkeypatch.setattr(driver, "_begin_all", late)
    policy = with_its_own(UCB1, "Asked", score=lambda self, *a: 0.25 * UCB1.score(self, *a))()
    task = lay_out(policy, ARMS, LIMIT, key=jax.random.key(1), engine="scan").tasks[0]
    find = driver.Task.shapes.func  # without the lock that Python 3.11 has around it
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(find, [task, task])
    assert one is other


@pytest.mark.parametrize("leaves", [0, 3])
def test_arguments_that_nothing_reads_do_not_end_the_process(leaves: int) -> None:
    """The compiler aborts over one, so the program needs all of them."""

    def function(used: jax.Array, *unused: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, jnp.int32(3), lambda _, x: 2 * x, used)

    x = jnp.arange(4.0)
    takes = x, *[jnp.ones((2, n)) for n in range(leaves)], jnp.bool_(True)
    played = jax.jit(lambda *takes: driver.in_one_piece(function, *takes))(*takes)
    np.testing.assert_array_equal(played, 8 * x)
