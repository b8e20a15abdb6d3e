"""What the SUAK experiment plays: the two instances of the paper and the policies of its figures."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.rows import Row, row
from experiments.common.running import Options, kept
from jaxbandits.environments import FiniteArms, WithNullArm
from jaxbandits.policies import SUAK, Guarded, OnePhase, PrimalDualTwoPhase, UCBSimplex

KEY = jax.random.key(8)
C = 0.5
MEANS = {
    1: ([0.45, 0.70, 0.80], [0.30, 0.75, 0.80]),
    2: (
        [0.35, 0.45, 0.52, 0.72, 0.84, 0.90, 0.92, 0.90],
        [0.25, 0.30, 0.40, 0.60, 0.70, 0.75, 0.80, 0.85],
    ),
}
ROUNDS = {1: 500_000, 2: 2_500_000}
RADII = (3.0, 2.4, 2.0)
LAMBDAS = (9.0, 5.0)


class Played(NamedTuple):
    """One figure's runs; arrays by policy name, ``[run, mark]``."""

    t: np.ndarray  # [mark]
    regret: dict[str, np.ndarray]  # realised: T·r* − Σ r
    skips: dict[str, np.ndarray]
    gap: dict[str, np.ndarray]  # c − average cost
    violation: float
    best: float  # r*
    seconds: dict[str, tuple[float, float]]  # by kind of policy: (wall clock, processor)
    rounds: int  # played in all

    def last(self, name: str) -> np.ndarray:
        """Regret at T, ``[run]``."""
        return self.regret[name][:, -1]


def violation(item: str, largest: float, note: str) -> Row:
    """The row that says whether the constraint held in every round."""
    return row(f"{item}: largest violation", largest, published="0", holds=largest == 0, note=note, digits="g")


def beta_arms(mean_reward: Any, mean_cost: Any) -> WithNullArm:
    """Reward and cost Beta(10m, 10(1 − m)), independent, and a null arm."""
    m, r = np.asarray(mean_reward, float), np.asarray(mean_cost, float)
    return WithNullArm(FiniteArms.beta(10 * m, 10 * (1 - m), 10 * r, 10 * (1 - r)))


def marks() -> np.ndarray:
    """Some early ones, then a hundred equally spaced ones."""
    return np.unique(np.round(np.concatenate([np.geomspace(1e-3, 1e-2, 8), np.linspace(0.01, 1, 100)]), 6))


def size(figure: int, options: Options) -> tuple[int, int]:
    """(rounds, runs) of a figure."""
    quick = (20_000, 20) if figure == 1 else (50_000, 12)
    return options.pick(quick, (ROUNDS[figure] // 5, 50), (ROUNDS[figure], 200))


@functools.cache
def play(figure: int, options: Options) -> Played:
    """Run a figure once; the items that need it share it."""
    rounds, runs = size(figure, options)
    radii, lams = np.array(RADII), np.array(LAMBDAS)
    groups: list[tuple[list[str], Any]] = [
        (["SUAK"], SUAK(c=C)),
        ([f"OPS, a = {a:g}" for a in RADII], Guarded(OnePhase(c=C, horizon=rounds, a=radii))),
    ]
    if figure == 2:
        groups.append((["PDS"], Guarded(PrimalDualTwoPhase(c=C, horizon=rounds))))
        groups.append(([f"USS, λ = {x:g}" for x in LAMBDAS], Guarded(UCBSimplex(c=C, lam=lams))))
    played = Played(np.zeros(0), {}, {}, {}, 0.0, 0.0, {}, 0)
    world = jax.tree.leaves(beta_arms(*MEANS[figure]))
    for names, policy in groups:
        text = f"{C} {rounds} {runs} {marks().tolist()}"
        depends_on = [*jax.tree.leaves(policy), policy, getattr(policy, "policy", policy), *world, text]
        made = functools.partial(_run, names, policy, figure, rounds, runs)
        played = _with(played, names, kept(options, f"figure{figure}_{names[0]}", depends_on, made))
    return played


def _run(names: list[str], policy: Any, figure: int, rounds: int, runs: int) -> dict[str, np.ndarray]:
    clock, processor = time.perf_counter(), time.process_time()
    result = jb.simulate(
        policy,
        beta_arms(*MEANS[figure]),
        jb.AverageCost(c=C, rounds=rounds),
        key=KEY,
        replicates=runs,
        marks=marks(),
        slots=-(-runs * len(names) // 2),  # all lanes are equally long: one wave on two cores
        progress=sys.stderr.isatty(),
    )
    took = (time.perf_counter() - clock, time.process_time() - processor)
    count = int(result.ledger["rounds"][..., -1].sum())
    print(f"  {', '.join(names)}: {count:.3g} rounds in {took[0]:.0f} s ({took[1]:.0f} s of processor)", flush=True)
    t = result.ledger["rounds"][0, 0, 0]
    return {
        "t": t,
        "regret": np.asarray(result.realised_regret)[:, 0],
        "skips": np.asarray(result.count("skips"))[:, 0],
        "gap": np.asarray(C - result.spent.values / t)[:, 0],
        "other": np.array([result.violation.max(), result.best_rate[0], *took, count]),
    }


def _with(before: Played, names: list[str], made: dict[str, np.ndarray]) -> Played:
    """One more group of policies, ``[policy, run, mark]``."""
    broken, best, wall, processor, count = made["other"].tolist()

    def by_name(what: str) -> dict[str, np.ndarray]:
        return dict(zip(names, made[what], strict=True))

    return Played(
        t=made["t"],
        regret=before.regret | by_name("regret"),
        skips=before.skips | by_name("skips"),
        gap=before.gap | by_name("gap"),
        violation=max(before.violation, broken),
        best=best,
        seconds=before.seconds | {names[0].split(",")[0]: (wall, processor)},
        rounds=before.rounds + int(count),
    )
