"""Slopes that are not finite are named; slopes are the same in every unit; how far a kink is."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import gradients
from jaxbandits.environments import ContextualArms, FiniteArms, Rows
from jaxbandits.gradients import estimates
from jaxbandits.testing import POLICY_CHECKS, Subject

from .test_gradients_contextual import Counting

ARMS, HORIZON, KEY = FiniteArms.bernoulli([0.7, 0.4], [0.5, 0.5]), jb.Horizon(10), jax.random.key(0)


@jb.pytree
class Soft(jb.policies.RandomisedPolicy):
    """Logits 3 m + θ/unit m, and what else depends on θ."""

    theta: Any = jb.leaf()
    unit: Any = jb.leaf()

    def more(self, m: jax.Array) -> jax.Array:
        return self.theta / self.unit * m

    def logits(self, arms: Any, available: jax.Array) -> jax.Array:
        m = arms.reward / jnp.maximum(arms.n, 1)
        return jnp.where(available, 3 * m + self.more(m), -jnp.inf)


@jb.pytree
class Steep(Soft):
    """√(θ m (1 − m)), at m = 0 finite with a slope of 0/0; or θ ln m: there an arm that is never
    drawn, and a slope of −∞. A leaf says which, so that one program plays both.
    """

    by_log: Any = jb.leaf(default=0)

    def more(self, m: jax.Array) -> jax.Array:
        root = jnp.sqrt(self.theta * m * (1 - m))
        log = jnp.where(jnp.all(m == 0), 0, self.theta * jnp.log(m))
        return jnp.where(self.by_log > 0, log, root)


@jb.pytree
class RootedIndex(jb.policies.IndexPolicy):
    """An argmax policy of that kind."""

    theta: Any = jb.leaf()

    def score(self, arms: Any) -> jax.Array:
        m = arms.reward / jnp.maximum(arms.n, 1)
        return m + jnp.sqrt(self.theta * m * (1 - m))


def tune(policy: Any, environment: Any, constraint: Any, *, wrt: str, **options: Any) -> Any:
    problem = jb.tuning.fixed_problem(environment, constraint)
    return jb.tune(policy, problem, wrt=wrt, steps=1, instances=8, fresh=2, key=KEY)


@pytest.mark.parametrize("policy", [Steep(4.0, 1.0), Steep(4.0, 1.0, by_log=1)])
@pytest.mark.parametrize("estimator", ["policy_score", "exact", "straight_through"])
def test_a_slope_that_is_not_finite_is_named(policy: Any, estimator: str) -> None:
    estimate = getattr(gradients, estimator).estimate
    with pytest.raises(jb.InputError, match="wrt: the slope by theta is not finite"):
        estimate(policy, ARMS, HORIZON, wrt="theta", key=KEY)


@pytest.mark.integration
def test_an_index_and_a_score_inside_another_policy_are_named_too() -> None:
    options = {"wrt": "theta", "key": KEY, "replicates": 8}
    with pytest.raises(jb.InputError, match=r"the slope by theta is not finite in . of 8 runs"):
        gradients.straight_through.estimate(RootedIndex(4.0), ARMS, HORIZON, **options)
    soft = jb.policies.SoftIndex(RootedIndex(4.0), temperature=0.5)
    with pytest.raises(jb.InputError, match=r"the slope by policy.theta is not finite in"):
        gradients.policy_score.estimate(soft, ARMS, HORIZON, **options)
    # Not asked for: by the temperature it is finite
    assert np.isfinite(
        gradients.policy_score.estimate(
            soft, ARMS, HORIZON, **(options | {"wrt": "temperature"})
        ).gradient["temperature"]
    )


def test_the_kit_finds_it() -> None:
    check = {check.__name__: check for check in POLICY_CHECKS}["slopes_are_finite"]
    with pytest.raises(AssertionError, match=r"^instance 0: wrt: the slope by theta .* rounds"):
        check(Subject(Steep(4.0, 1.0), ARMS, HORIZON, KEY))


@pytest.mark.parametrize("estimator", ["policy_score", "straight_through"])
def test_slopes_are_the_same_in_every_unit(estimator: str) -> None:
    """θ in units of 2ᵉ: 10⁻³⁶ to 10³⁷, bit for bit but for one division."""
    estimate = getattr(gradients, estimator).estimate
    units = [2.0**e for e in (0, -120, -40, -27, 30, 40, 120)]
    # Settings share their worlds, but not the draws of a policy: one is 2⁻ᵉ of another to the bit
    policy = Soft([3 * unit for unit in units], units)
    found = estimate(policy, ARMS, HORIZON, wrt="theta", key=KEY, replicates=50)
    for part in (found.gradient["theta"], found.standard_error["theta"]):
        slopes = part[:, 0] * units
        assert slopes[0] != 0
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)


def test_contexts_are_the_same_in_every_unit() -> None:
    def slopes(unit: float) -> np.ndarray:
        by_feature = np.array([1, 1 / unit])
        world = ContextualArms.linear(
            np.array([[0.5, 0.2], [0.4, -0.3]]) * by_feature,
            np.array([[0.5, -0.2], [0.6, 0.1]]) * by_feature,
            Rows.of([[-unit], [unit]]),
        )
        found = gradients.score_function.estimate(
            Counting(), world, jb.Horizon(20), wrt=("reward", "cost"), key=KEY, replicates=50
        )
        return np.stack([found.gradient[name][0, 0] for name in ("reward", "cost")]) * by_feature

    plain = slopes(1.0)
    assert np.abs(plain).min() > 0
    for unit in (2.0**-40, 2.0**-27, 2.0**40):
        np.testing.assert_allclose(slopes(unit), plain, rtol=1e-6)


def test_sums_without_a_unit_keep_what_one_float_would_lose() -> None:
    """10⁵ terms of 0.1 beside one of 10⁶, and of any size."""

    def add(total: Any, x: jax.Array) -> tuple[Any, None]:
        return estimates.add_floats(total, x), None

    for unit in (1e-30, 1.0, 1e30):
        terms = np.append(1e6, np.full(100_000, 0.1)).astype(np.float32) * np.float32(unit)
        total, _ = jax.jit(lambda x: jax.lax.scan(add, estimates.no_floats(()), x))(terms)
        exact = np.asarray(terms, np.float64).sum()
        assert abs(float(total.whole) + float(total.rest) - exact) < 1e-9 * exact
        assert abs(float(np.cumsum(terms, dtype=np.float32)[-1]) - exact) > 1e-5 * exact
    ends, _ = jax.lax.scan(add, estimates.no_floats(()), jnp.array([1.0, jnp.inf, 2.0]))
    assert not np.isfinite(float(ends.whole) + float(ends.rest))


def test_a_score_that_is_nan_is_not_blamed_on_the_rounds() -> None:
    negative = RootedIndex(-1.0)
    with pytest.raises(jb.InputError, match=re.escape("runs end as invalid: a score is NaN, or")):
        gradients.straight_through.estimate(
            negative, ARMS, HORIZON, wrt="theta", key=KEY, replicates=8
        )


# --- Whole replicates, no tracers, kinks


def test_smoothing_plays_the_replicates_that_it_is_given() -> None:
    options: dict[str, Any] = {"wrt": "rho", "key": KEY}
    with pytest.raises(jb.InputError, match=r"replicates: 200 given"):
        gradients.smoothed.estimate(
            jb.policies.OmegaUCB(), ARMS, HORIZON, **options, replicates=200
        )
    found = gradients.smoothed.estimate(
        jb.policies.OmegaUCB(), ARMS, HORIZON, **options, replicates=200, directions=50
    )
    assert found.about["replicates"] == 200 and found.about["rounds"] == 2 * 200 * 10


TRACED = {
    "exact": lambda x, **_: gradients.exact.estimate(
        jb.policies.SoftElim(theta=x), ARMS, HORIZON, wrt="theta"
    ),
    "exact, budget": lambda x, **_: gradients.exact.estimate(
        jb.policies.SoftElim(), ARMS, jb.TotalBudget(x, last_pull="counts"), wrt="theta"
    ),
    "smoothed": lambda x, **more: gradients.smoothed.estimate(
        jb.policies.OmegaUCB(rho=x), ARMS, HORIZON, wrt="rho", **more
    ),
    "policy_score": lambda x, **more: gradients.policy_score.estimate(
        jb.policies.SoftElim(theta=x), ARMS, HORIZON, wrt="theta", **more
    ),
    "tune": lambda x, **_: tune(jb.policies.SoftElim(theta=x), ARMS, HORIZON, wrt="theta").regret,
}


@pytest.mark.parametrize("call", TRACED)
@pytest.mark.parametrize("transform", [jax.jit, jax.grad])
def test_a_traced_argument_is_one_clear_line(call: str, transform: Any) -> None:
    with pytest.raises(jb.InputError, match=r"^(policy|constraint): a traced value given"):
        transform(lambda x: TRACED[call](x, key=KEY, replicates=64).value.sum())(0.5)


@pytest.mark.parametrize("wrt", ["mean_reward", "mean_cost"])
@pytest.mark.parametrize("limit", [HORIZON, jb.TotalBudget(3.0, last_pull="counts")])
def test_the_next_kink_is_where_the_best_arm_changes(wrt: str, limit: Any) -> None:
    rng = np.random.default_rng(5)
    means = dict(zip(("mean_reward", "mean_cost"), rng.uniform(0.2, 0.8, (2, 4, 3)), strict=True))
    means["mean_reward"][3, :2] = 0.75, 0.75
    means["mean_cost"][3] = 0.5
    present = [[True] * 3, [True] * 3, [True, True, False], [True] * 3]
    arms = FiniteArms.bernoulli(*means.values(), present=present)
    found = gradients.score_function.estimate(
        jb.policies.CUCB(), arms, limit, wrt=wrt, key=KEY, replicates=4
    )
    if wrt == "mean_cost" and limit is HORIZON:
        assert "next_kink" not in found.about
        return
    by_money = limit is not HORIZON

    def best(instance: int, moved: np.ndarray) -> int:
        at = {name: x[instance] for name, x in (means | {wrt: moved}).items()}
        rate = at["mean_reward"] / (at["mean_cost"] if by_money else 1.0)
        return int(np.where(present[instance], rate, -1).argmax())

    def changes(instance: int, step: float) -> bool:
        steps = np.concatenate([np.eye(3), -np.eye(3)]) * step
        ends = [means[wrt] + by for by in steps]
        return any(best(instance, x) != best(instance, means[wrt]) for x in ends)

    for instance, far in enumerate(found.about["next_kink"]):
        assert (instance < 3) == (far > 1e-6)  # of equals it is at once
        assert not changes(instance, far - 1e-6) or far < 1e-6
        assert changes(instance, far + 1e-6)
