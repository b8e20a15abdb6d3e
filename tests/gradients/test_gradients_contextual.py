"""The score function in worlds with contexts, against sums over all histories in float64."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.environments import ContextualArms, Gaussian, Rows, WithNullArm
from jaxbandits.environments.table import context_values
from jaxbandits.gradients import contextual, score_function
from tests.numerics.test_fluid import solved

ROWS = np.array([[-1.0], [1.0]])


@jb.pytree
class Counting(jb.Policy):
    """Arm 0 or 1 by what was seen: 1 a reward, 2 a unit of money, 1 where x is above 0."""

    plays: ClassVar[type] = jb.environments.FiniteSpec

    def init(self, spec: Any) -> jax.Array:
        return jnp.int32(0)

    def update(self, state: jax.Array, key: jax.Array, observation: Any) -> jax.Array:
        reward, cost = (x >> 24 for x in observation.feedback)
        return state + reward + 2 * jnp.sum(cost)

    def select(
        self, state: jax.Array, key: jax.Array, view: jb.View
    ) -> tuple[jax.Array, jax.Array]:
        return state, jnp.where((state + (view.context[0] > 0)) % 4 < 2, 0, 1).astype(jnp.int32)


def means(theta: np.ndarray, link: str) -> np.ndarray:
    """``[N, K, J]`` of θ ``[K, J, 2]``."""
    at = theta[None, ..., 0] + theta[None, ..., 1] * ROWS[:, :, None]
    return at.clip(0, 1) if link == "linear" else 1 / (1 + np.exp(-at))


def best(r: np.ndarray, c: np.ndarray, limits: np.ndarray) -> float:
    return solved(r, c, limits)[0]


def expected_regret(
    reward: np.ndarray, cost: np.ndarray, link: str, rounds: int, money: Any
) -> float:
    """Σ over histories of ``Counting``; ``money``: a list with rounds, a number, or None."""
    r, c = means(reward, link)[..., 0], means(cost, link)
    several_ends = isinstance(money, list)
    budget = np.atleast_1d(np.inf if money is None else money)
    if money is None:
        rate = best(r, c[..., :0], np.zeros(0))
    elif several_ends:
        rate = best(r, c, budget / rounds) * rounds / budget[0]
    else:
        rules = [
            [r[[0, 1], rule].sum(), c[[0, 1], rule].sum()] for rule in product(range(2), repeat=2)
        ]
        rate = max(gain / paid for gain, paid in rules)

    @cache
    def ahead(round: int, spent: tuple[int, ...], count: int) -> float:
        if round == rounds or (np.array(spent) >= budget).any():
            return (
                rate * budget[0] if several_ends else 0.0
            )  # a run that ended has used all of its share
        total = 0.0
        for n in range(2):
            arm = 0 if (count + n) % 4 < 2 else 1
            p, q = r[n, arm], c[n, arm]
            total += ((0.0 if several_ends else rate * (1.0 if money is None else q[0])) - p) / 2
            for y, z in product((0, 1), product((0, 1), repeat=q.size)):
                chance = (p if y else 1 - p) * np.prod(np.where(z, q, 1 - q)) / 2
                if chance > 0:
                    later = tuple(int(a + b) for a, b in zip(spent, z, strict=True))
                    total += chance * ahead(round + 1, later, (count + y + 2 * sum(z)) % 4)
        return total

    return ahead(0, (0,) * c.shape[-1], 0)


def slopes(
    reward: np.ndarray, cost: np.ndarray, *arguments: Any, step: float = 1e-6
) -> dict[str, np.ndarray]:
    gradients = {"reward": np.zeros_like(reward), "cost": np.zeros_like(cost)}
    for name, gradient in gradients.items():
        for place in np.ndindex(gradient.shape):
            ends = []
            for sign in (1, -1):
                theta = {"reward": reward.copy(), "cost": cost.copy()}
                theta[name][place] += sign * step
                ends.append(expected_regret(theta["reward"], theta["cost"], *arguments))
            gradient[place] = (ends[0] - ends[1]) / (2 * step)
    return gradients


LINEAR = np.array([[0.5, 0.2], [0.9, 0.3]])[:, None]  # arm 1 is clipped where x = 1
PAID = np.array([[0.5, -0.2], [0.6, 0.1]])[:, None]
LOGITS = np.array([[0.3, -0.8], [0.5, 0.6]])[:, None]
TWO = np.array([[[0.2, 0.5], [-0.6, 0.3]], [[0.5, -0.4], [0.1, 0.9]]])
CASES = {
    "horizon": ("linear", LINEAR, PAID, 4, None),
    "money": ("linear", LINEAR, PAID, 60, 2.0),
    "rounds and budgets": ("logistic", LOGITS, TWO, 5, [2.0, 2.0]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.quick_rows("money")
def test_against_all_histories(case: str) -> None:
    link, reward, cost, rounds, money = CASES[case]
    resources = len(money) if isinstance(money, list) else None
    limit: Any = jb.Horizon(rounds)
    if money is not None:
        limit = jb.TotalBudget(money, last_pull="counts", rounds=rounds if resources else None)
    if case == "money":  # a third arm, which is absent
        reward, cost = (np.append(x, x[:1], axis=0) for x in (reward, cost))
    world: Any = getattr(ContextualArms, link)(
        reward[:, 0], cost if resources else cost[:, 0], Rows.of(ROWS), resources=resources,
        present=np.arange(len(reward)) < 2,
    )  # fmt: skip
    world = WithNullArm(world) if case == "horizon" else world
    estimate = score_function.estimate(
        Counting(), world, limit, wrt=("reward", "cost"), key=jax.random.key(5), replicates=8000
    )
    reward, cost = reward[:2], cost[:2]
    value = expected_regret(reward, cost, link, rounds, money)
    assert abs(estimate.value.item() - value) < 4 * estimate.standard_error["value"].item()
    for name, must in slopes(reward, cost, link, rounds, money).items():
        got, error = (x[name][0, 0] for x in (estimate.gradient, estimate.standard_error))
        assert np.isnan(got[2:]).all()
        got, error = got[:2], error[:2]
        assert np.abs(must).max() > 0.05
        must = must.reshape(got.shape)
        assert (np.abs(got - must) <= 4 * error + 1e-5).all(), (name, got, must, error)


SLOPES: dict[str, tuple[Any, Any, int | None]] = {
    "two budgets": (Rows, jb.TotalBudget([300.0, 350.0], last_pull="counts", rounds=1000), 2),
    "average cost": (Gaussian, jb.AverageCost(c=0.45, rounds=1000), None),
    "money": (Rows, jb.TotalBudget(300.0, last_pull="counts"), None),
}


@pytest.mark.parametrize("case", SLOPES)
def test_slopes_of_the_benchmark_are_those_of_its_values(case: str) -> None:
    law, limit, resources = SLOPES[case]
    rng = np.random.default_rng(3)
    contexts = Rows.of(rng.normal(size=(7, 2))) if law is Rows else Gaussian(2)
    theta = {"reward": rng.normal(size=(3, 3)), "cost": rng.normal(size=(3, resources or 1, 3))}

    def world(reward: np.ndarray, cost: np.ndarray) -> ContextualArms:
        return ContextualArms.logistic(
            reward, cost if resources else cost[:, 0], contexts, resources=resources
        )

    def value(**theta: np.ndarray) -> Any:
        return world(**theta).value_of_context(limit, 2**14)

    arms, best = world(**theta), value(**theta)
    assert (best[0].price > 0.1).all()  # the budget is felt
    _, slopes_of_rates = contextual._rates(arms, best, limit.prepare(arms), ("reward", "cost"))
    units = 0.3 if resources else 1.0
    for name, place in (
        ("reward", (0, 1)),
        ("reward", (1, 0)),
        ("cost", (1, 0, 0)),
        ("cost", (2, 0, 2)),
    ):
        ends = []
        for sign in (1, -1):
            shifted = {key: x.copy() for key, x in theta.items()}
            shifted[name][place] += sign * 1e-3
            ends.append(value(**shifted)[0].contextual / units)
        slope = (ends[0] - ends[1]) / 2e-3
        got = slopes_of_rates[name][(0, place[0], 0, place[-1])]
        assert abs(got - slope) < (2e-4 if law is Rows else 5e-3) * max(1, abs(slope)), (
            name,
            place,
            got,
            slope,
        )


@pytest.mark.parametrize(
    ("fields", "limit", "wrt", "sentence"),
    [
        (
            {"noise": jb.environments.noise.Tent(0.1)},
            jb.Horizon(3),
            "reward",
            "it must be Bernoulli noise",
        ),
        ({}, jb.Horizon(3), "mean_reward", "one of reward, cost"),
        ({}, jb.TotalBudget(2.0, last_pull="forfeits"), "cost", "last_pull='counts'"),
    ],
)
def test_refusals(fields: dict, limit: Any, wrt: str, sentence: str) -> None:
    world = ContextualArms.linear([[0.5, 0.2]] * 2, [[0.5, 0.2]] * 2, Rows.of(ROWS), **fields)
    with pytest.raises(jb.InputError, match=sentence):
        score_function.estimate(
            Counting(), world, limit, wrt=wrt, key=jax.random.key(0), replicates=5
        )


def test_slopes_of_a_sampled_benchmark_are_those_of_the_sample_that_gives_its_value() -> None:
    """On a horizon the value is a mean over fixed contexts, with an exact slope."""
    theta, cost = np.array([[0.5, 0.2, -0.1], [0.4, -0.3, 0.2]]), np.full((2, 3), 0.1)

    def rates(theta: np.ndarray) -> tuple[float, np.ndarray]:
        world = ContextualArms.logistic(theta, cost, Gaussian(2))
        ready = jb.Horizon(10).prepare(world)
        values = context_values(world.value_tables(), ready)
        rate, slopes = contextual._rates(world, values, ready, ["reward"])  # type: ignore[arg-type]
        return rate.item(), slopes["reward"].reshape(theta.shape)

    _, slope = rates(theta)
    for place in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[place] = 1e-3
        by_differences = (rates(theta + step)[0] - rates(theta - step)[0]) / 2e-3
        assert abs(by_differences - slope[place]) < 1e-3, place
