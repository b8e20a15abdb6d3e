"""The usual way to write ω-UCB in JAX and in NumPy, which users compare with."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def scores(n, reward, cost, t, rho, np=jnp):
    """ω-UCB on float sums, by the difference of roots as the papers print it."""
    k = 2 * rho * np.log(t)
    r, c = reward / n, cost / n
    upper = (n * r + k / 2) / (n + k) + np.sqrt(k) / (n + k) * np.sqrt(n * r * (1 - r) + k / 4)
    lower = (n * c + k / 2) / (n + k) - np.sqrt(k) / (n + k) * np.sqrt(n * c * (1 - c) + k / 4)
    return np.where(n == 0, np.inf, np.where(cost == 0, np.inf, upper / lower))


def step(carry, _, mean_reward, mean_cost, budget, rho):
    """One round of one lane: split a key, play the best arm, add floats; masked when spent."""
    key, n, reward, cost, spent, t = carry
    key, key_reward, key_cost = jax.random.split(key, 3)
    arm = jnp.argmax(scores(n, reward, cost, t + 1.0, rho))
    r = jax.random.bernoulli(key_reward, mean_reward[arm]).astype(jnp.float32)
    c = jax.random.bernoulli(key_cost, mean_cost[arm]).astype(jnp.float32)
    on = (spent < budget).astype(jnp.float32)
    hit = jax.nn.one_hot(arm, n.shape[0]) * on
    return (key, n + hit, reward + hit * r, cost + hit * c, spent + on * c, t + on), None


@jax.jit
def chunk(carry, mean_reward, mean_cost, budget, rho):
    """1024 rounds of all lanes."""

    def lane(carry, mean_reward, mean_cost, budget):
        round_step = partial(
            step, mean_reward=mean_reward, mean_cost=mean_cost, budget=budget, rho=rho
        )
        return jax.lax.scan(round_step, carry, None, length=1024)[0]

    return jax.vmap(lane)(carry, mean_reward, mean_cost, budget)


def run_textbook(mean_reward, mean_cost, budget, rho, seed, max_rounds=None):
    """Rounds played in all lanes, until every budget is spent or ``max_rounds`` rounds a lane are done."""
    lanes, width = mean_reward.shape
    zero = jnp.zeros((lanes, width), jnp.float32)
    keys = jax.random.split(jax.random.key(seed), lanes)
    carry = (keys, zero, zero, zero, jnp.zeros(lanes, jnp.float32), jnp.zeros(lanes, jnp.float32))
    done = 0
    while True:
        carry = chunk(carry, mean_reward, mean_cost, budget, rho)
        done += 1024
        if bool((carry[4] >= budget).all()) or (max_rounds and done >= max_rounds):
            return float(carry[5].sum())


class NumpyOmegaUCB:
    """A policy object with a choice and an update per round, as the papers' codes do it."""

    def __init__(self, arms, rho):
        self.n, self.reward, self.cost = np.zeros(arms), np.zeros(arms), np.zeros(arms)
        self.rho, self.t = rho, 0

    def choose(self):
        """The arm to pull."""
        if self.t < self.n.size:
            return self.t
        return int(np.argmax(scores(self.n, self.reward, self.cost, self.t + 1, self.rho, np)))

    def update(self, arm, reward, cost):
        """Learn."""
        self.n[arm] += 1
        self.reward[arm] += reward
        self.cost[arm] += cost
        self.t += 1


def run_numpy(mean_reward, mean_cost, rho, seed, rounds):
    """``rounds`` rounds of one lane."""
    draw = np.random.default_rng(seed)
    policy = NumpyOmegaUCB(mean_reward.size, rho)
    with np.errstate(divide="ignore", invalid="ignore"):  # of arms that cost nothing yet
        for _ in range(rounds):
            arm = policy.choose()
            policy.update(
                arm, float(draw.random() < mean_reward[arm]), float(draw.random() < mean_cost[arm])
            )
    return rounds
