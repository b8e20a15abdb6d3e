"""Who wins when outcomes come late, or in batches: a total budget, ten Bernoulli arms."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, intervals, save
from experiments.common.looks import GREY, look
from experiments.common.rows import Row, mean_row, ranking
from experiments.common.running import Options, kept
from jaxbandits.environments import Batched, Delayed, FiniteArms, FixedDelay
from jaxbandits.policies import MUCB, BudgetedThompson, InFlight, OmegaUCB

KEY = jax.random.key(26)


@jb.pytree
class Herd(OmegaUCB):
    """ω-UCB that does not count in what is open: all that wait go the same way."""

    def select_while_open(self, state: Any, key: Any, view: Any, open: Any) -> Any:
        return self.select(state, key, view)


POLICIES: dict[str, Any] = {
    "ω-UCB, ρ = 1/4": OmegaUCB(rho=0.25),
    "BTS": BudgetedThompson(),
    "m-UCB": MUCB(),
    "ω-UCB, herd": Herd(rho=0.25),
}


def arms(instances: int, width: int) -> FiniteArms:
    """Means drawn uniformly, the same at every size."""
    rng = np.random.default_rng(26)
    reward, cost = rng.random((2, 10, 10))[:, :instances, :width]
    return FiniteArms.bernoulli(reward, 0.05 + 0.95 * cost)


def delay(options: Options) -> list[Row]:
    """The regret at the end of a budget, against the delay and against the size of a batch."""
    budget, instances, runs = options.pick((40.0, 2, 2), (2000.0, 4, 5), (4000.0, 10, 20))
    delays = options.pick([0], [0, 10, 100, 1000, 10_000], [0, 10, 100, 1000, 10_000])
    sizes = options.pick([1], [1, 10, 100, 1000], [1, 10, 100, 1000])
    chosen = dict(list(POLICIES.items())[: options.pick(1, None, None)])
    where = arms(instances, options.pick(4, 10, 10))
    found: dict[str, list[np.ndarray]] = {"delay": [], "batch": []}
    for kind, numbers in (("delay", delays), ("batch", sizes)):
        for number in numbers:
            if (kind, number) == ("batch", 1) and 0 in delays:  # the same world
                found[kind].append(found["delay"][delays.index(0)])
                continue
            law = FixedDelay(number) if kind == "delay" else Batched(number)
            room = number + 1 if kind == "delay" else number
            # with a fixed delay one outcome is due after each round: one place is enough for what is told
            world = Delayed(where, law, room=room, arrivals=1 if kind == "delay" else None)
            shares = [
                kept(
                    options,
                    f"{kind} {number} {place}",
                    [policy, repr(policy), world, budget, runs, where.mean_reward],
                    partial(_play, policy, world, budget, runs),
                )["share"]
                for place, policy in enumerate(chosen.values())
            ]
            found[kind].append(np.stack(shares))  # [policy, run]
            print(f"service delay: {kind} {number}", flush=True)
    rows = []
    for kind, numbers in (("delay", delays), ("batch", sizes)):
        for place, number in enumerate(numbers):
            samples = dict(zip(chosen, found[kind][place], strict=True))
            for name, x in samples.items():
                note = f"share of the best reward; budget {budget:g}, {instances} instances, {runs} runs"
                rows.append(mean_row(f"delay: {name}, {kind} {number}: regret", x, digits=".4f", note=note))
            rows.append(ranking(f"delay: ranking at {kind} {number}", samples))
    _picture(options, list(chosen), found, delays, sizes, budget)
    return rows


def _play(policy: Any, world: Delayed, budget: float, runs: int) -> dict[str, np.ndarray]:
    """The regret as a share of the best reward: the mean over instances, ``[run]``."""
    result = jb.simulate(
        InFlight(policy),
        world,
        jb.TotalBudget([budget], last_pull="counts"),
        key=KEY,
        replicates=runs,
        marks=[1.0],
    )
    reward, cost = world.environment.values()
    best = np.nanmax(reward / cost, axis=-1)
    return {"share": (result.regret.values[0, ..., -1] / (best[:, None] * budget)).mean(0)}


def _picture(
    options: Options,
    names: list[str],
    found: dict[str, list[np.ndarray]],
    delays: list[int],
    sizes: list[int],
    budget: float,
) -> None:
    picture, axes = figure(1, 2, (11, 4.6))
    for axis, kind, numbers in zip(axes, ("delay", "batch"), (delays, sizes), strict=True):
        for k, name in enumerate(names):
            samples = np.stack([x[k] for x in found[kind]])
            style = look(name) | ({"color": GREY} if name == "ω-UCB, herd" else {})
            intervals(axis, np.arange(len(numbers)) + 0.06 * (k - 2), samples, label=name, capsize=2, **style)
        axis.set_xticks(range(len(numbers)), [f"{x:,}" for x in numbers])
        axis.set_ylim(bottom=0)
        axis.set_ylabel("regret, share of the best reward")
    axes[0].set(xlabel="delay, rounds", title="Outcomes come late")
    axes[1].set(xlabel="size of a batch, rounds", title="Outcomes come in batches")
    title = f"Ten Bernoulli arms, budget {budget:,.0f}: who wins while requests are in flight"
    save(picture, options.out / "delay.png", title, legend=axes[:1], columns=5)
