"""A number is what the user gave, or it is refused: types, casts, means of the constructors."""

import datetime
import decimal
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jaxbandits as jb
from jaxbandits import environments, policies
from jaxbandits._numerics import beta
from jaxbandits.core import ticks
from jaxbandits.core.checks import as_played, booleans, numbers, positive_number, whole_number
from jaxbandits.core.settings import Settings
from jaxbandits.environments import FiniteArms

ARMS = FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4])
KEY = jax.random.key(0)

NO_NUMBERS: list[Any] = [
    *("0.5", "٣", b"1", True, np.True_, None, 1j, np.complex64(1), slice(1), len, object()),
    *(datetime.date(2020, 1, 1), np.datetime64("2020"), np.timedelta64(1)),
    *(decimal.Decimal(1), Fraction(1, 2), 10**400, [10**400], {"a": 1.0}, {1.0}, [None]),
    *(["0.5"], [True, 0.5], [[np.True_], [1.0]], [0.5, [1.0, 2.0]], jax.random.key(0)),
    *(np.array([0.5], object), np.array("0.5"), np.zeros(2, bool), jnp.zeros(2, bool)),
    *(np.ma.array([1.0, 2.0], mask=[False, True]), np.zeros(1, [("a", "f4")])),
]
NUMBERS = [
    *(2, 2.0, np.float16(2), np.int8(2), np.uint64(2), np.longdouble(2)),
    *(np.array(2), jnp.int32(2), jnp.bfloat16(2)),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda x: type(x).__name__)
def test_no_number(value):
    for read in (numbers, lambda name, x: as_played(name, x, {"above": 0}), positive_number):
        with pytest.raises(jb.InputError, match=r"^it: ") as caught:
            read("it", value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


@pytest.mark.parametrize("value", NUMBERS, ids=lambda x: type(x).__name__)
def test_numbers_are_welcome(value):
    assert numbers("it", value).dtype == np.float64 and numbers("it", value) == 2
    assert as_played("it", value, {"integer": True}).dtype == np.int32
    assert positive_number("it", value) == 2.0


def test_counts():
    for right in (2, np.int64(2), np.array(2), jnp.int32(2)):
        assert whole_number("it", right, 1) == 2
    for wrong in (2.0, True, np.True_, "2", np.array(2.0), np.array([2]), None):
        with pytest.raises(jb.InputError, match=r"it: .* a whole number of at least 1"):
            whole_number("it", wrong, 1)


# --- what is checked is what is played -------------------------------------------------------------------------


@given(
    st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
    st.sampled_from([0.0, 1.0, 0.999]),
)
@example(1e39, 0.0)
@example(1e-50, 0.0)
@example(1e-40, 0.0)
@example(1 + 1e-9, 1.0)
@example(0.999, 0.999)
def test_a_leaf_is_finite_and_in_range_as_it_is_played(x, bound):
    for word, inside in (
        ("above", np.greater),
        ("at_least", np.greater_equal),
        ("at_most", np.less_equal),
    ):
        try:
            leaf = as_played("leaf", x, {word: bound})
        except jb.InputError:
            continue
        assert leaf.dtype == np.float32 and np.isfinite(leaf)
        assert inside(leaf, np.float32(bound)) and (leaf == 0) == (x == 0)
        assert leaf == 0 or abs(float(leaf) / x - 1) <= 2.0**-24


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e39, r"OmegaUCB.rho: 1e\+39 given; it must be at most 3.402823e\+38 in size \(float32\)"),
        (1e-50, r"OmegaUCB.rho: 1e-50 given"),
        (1e-39, "OmegaUCB.rho: 1e-39 given"),
        ([0.25, 1e39], r"OmegaUCB.rho: 1e\+39 given"),
        (0, "OmegaUCB.rho: 0.0 given; it must be a finite number above 0"),
    ],
)
def test_beyond_float32(value, message):
    with pytest.raises(jb.InputError, match=message):
        Settings.of(policies.OmegaUCB(rho=value), ARMS.instances, ARMS.spec)


def test_a_bound_that_only_the_cast_reaches():
    with pytest.raises(
        jb.InputError, match=r"alpha: 1.000000001 given; .*above 1 in float32, where it is 1"
    ):
        as_played("alpha", 1 + 1e-9, {"above": 1})


def test_whole_numbers_beyond_int32():
    assert as_played("leaf", 2**31 - 1, {"integer": True}) == 2**31 - 1
    for wrong in (2**31, -(2**31), 1e10):
        with pytest.raises(jb.InputError, match=r"leaf: .* at most 2147483647 in size \(int32\)"):
            as_played("leaf", wrong, {"integer": True})


def test_a_traced_value_is_one_line():
    def play(key, **options):
        return jb.simulate(
            options.pop("policy", policies.OmegaUCB()), ARMS, jb.Horizon(3), key=key, **options
        )

    for name, call in (
        ("key", lambda: jax.jit(play)(KEY)),
        ("policies", lambda: jax.grad(lambda x: play(KEY, policy=policies.OmegaUCB(rho=x)))(0.5)),
        ("mean_reward", lambda: jax.vmap(lambda x: FiniteArms.bernoulli(x, x))(jnp.ones((2, 2)))),
        ("marks", lambda: jax.jit(lambda x: play(KEY, marks=x))(jnp.ones(1))),
        ("replicates", lambda: jax.jit(lambda x: play(KEY, replicates=x))(1)),
    ):
        with pytest.raises(jb.InputError, match=f"{name}: a traced value given"):
            call()


# --- means of the constructors ---------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1, allow_subnormal=True), min_size=1, max_size=4))
def test_bernoulli_means_are_the_nearest_ticks_or_refused(means):
    try:
        reward, cost = FiniteArms.bernoulli(means, means).values()
    except jb.InputError as problem:
        assert any(0 < x <= 2.0**-25 for x in means) and "half a tick" in str(problem)
        return
    assert (reward == cost).all() and np.abs(reward[0] - means).max() <= 2.0**-25
    assert ((reward[0] == 0) == (np.array(means) == 0)).all()


@given(
    st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda w: max(w) > 1e-3),
    st.sampled_from([1e-320, 1e-300, 1e-30, 1.0, 1e30, 1e307, 1.7e308]),
)
def test_weights_of_any_size_have_the_mean_of_their_shares(weights, size):
    scaled = np.array(weights) * size
    exact = (
        sum(Fraction(float(w)) * j for j, w in enumerate(scaled))
        / 4
        / sum(Fraction(float(w)) for w in scaled)
    )
    with np.errstate(all="raise", under="ignore"):
        reward, cost = FiniteArms.generalised_bernoulli([scaled], [scaled]).values()
    assert reward == cost and abs(float(reward[0, 0]) - float(exact)) <= 4 * 2.0**-24


def test_beta_means_are_right():
    rng = np.random.default_rng(1)
    wide, coins = 10.0 ** rng.uniform(-300, 9, (2, 60)), 10.0 ** rng.uniform(-9, -1, (2, 200))
    extremes = np.array(
        [[1e9, 1e9, 5e-324, 1e9, 1e-5, 1.19e-3], [1e9, 5e-324, 5e-324, 1.0, 1e-6, 9.5e-5]]
    )
    a, b = np.concatenate([wide, coins, extremes], axis=1)
    exact = [float(Fraction(x) / (Fraction(x) + Fraction(y))) for x, y in zip(a, b, strict=True)]
    reward, _ = FiniteArms.beta(a, b, np.ones_like(a), np.ones_like(a)).values()
    error = np.abs(reward[0] - exact)
    assert error.max() <= 1e-4 and error[np.maximum(a, b) >= 0.1].max() <= 1e-5
    knots, _ = beta.quantile_table(a, b)
    assert (np.diff(knots) >= 0).all()
    assert knots.min() == 0
    assert knots.max() == ticks.ONE


@pytest.mark.parametrize("shape", [1.1e9, 1e18, 1e308, np.inf, np.nan, 0.0, -1.0])
def test_shapes_beyond_the_tables(shape):
    with pytest.raises(jb.InputError, match=r"cost_beta: .*finite, above 0 and at most 1e\+09"):
        FiniteArms.beta([1.0], [1.0], [1.0], [shape])


def test_a_log_may_hold_tiny_values_but_not_as_its_mean():
    reward, _ = FiniteArms.empirical([[([1e-9, 1.0], [1e-9, 0.5])]]).values()
    assert reward[0, 0] == 0.5
    with pytest.raises(jb.InputError, match=r"logs.0..0. costs: 1e-09 given"):
        FiniteArms.empirical([[([1.0], [1e-9])]])


def charged(value: Any) -> Any:
    limits = {"limits": [1.0], "cost": environments.Linear(0.1)}
    return environments.row_arms([[([0.5], [0.5])]], penalty=environments.Constant(value), **limits)


def coarse() -> None:
    beta.refuse_inexact(
        "concentration", np.array([0.5]), np.array([0.5]), np.array([0.49 * ticks.ONE])
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda x=x: booleans("it", x), "it: .* booleans")
            for x in ("no", ["no"], [0.5], [np.nan], [None], None, 2)
        ),
        *((lambda x=x: charged(x), r"Constant.value: ") for x in (1e-50, 1e39, "1", True)),
        (lambda: FiniteArms.bernoulli([0.5], [0.5], present=["no"]), r"present: .* booleans"),
        (lambda: jb.grid(policies.OmegaUCB, rho=["1", "2"]), "rho: "),
        (coarse, r"concentration: .0.5, 0.5. given"),
    ],
)
def test_what_is_none_of_its_kind_is_refused(call: Any, message: str) -> None:
    with pytest.raises(jb.InputError, match=message):
        call()


def test_what_is_of_its_kind_is_taken() -> None:
    assert (
        booleans("it", [True, False]).tolist() == booleans("it", [1, 0]).tolist() == [True, False]
    )
    assert jb.grid(policies.OmegaUCB, rho=[1, 2]).rho.tolist() == [1.0, 2.0]
