"""Infinitely many arms with a budget (the RCB paper): the first empirical study of RCB-I and RCB-AIR.

    python -m experiments rcb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: regret, known, baselines, wrong_beta, multiplier, exploration, ads. The paper has theory only, so ``published``
holds the bounds. Instances: ρ* = 2, λ = 0.1, Bernoulli outcomes unless said, one reservoir for each replicate.
"""

from __future__ import annotations

from experiments.rcb.play import CLOCK
from experiments.rcb.budgets import known, regret
from experiments.rcb.studies import ads, baselines, exploration, multiplier, wrong_beta
from experiments.common import Item, Options, Row, run_items, write_summary


def run(options: Options) -> None:
    """All items, or those whose names begin with ``--only``; then how fast each policy was."""
    write_summary(options.out, run_items("rcb", ITEMS, options, any_size=lambda row: True) + _timings())


def _timings() -> list[Row]:
    found = []
    for name, (wall, processor, rounds) in CLOCK.items():
        note = f"{rounds:.3g} rounds, {1e9 * processor / rounds:.0f} ns of processor a round, compile included"
        found.append(Row(f"seconds: {name}", "", f"{wall:.1f}", "", "unclear", note))
        print(f"  {name}: {wall:.1f} s, {note}", flush=True)
    return found


ITEMS: dict[str, Item] = {
    "regret": regret,
    "known": known,
    "baselines": baselines,
    "wrong_beta": wrong_beta,
    "multiplier": multiplier,
    "exploration": exploration,
    "ads": ads,
}
