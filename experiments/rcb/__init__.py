"""Infinitely many arms with a budget (the RCB paper): the first empirical study of RCB-I and RCB-AIR.

    python -m experiments rcb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: regret, far (budgets beyond, 100 reservoirs each), known, baselines, wrong_beta, multiplier, exploration, ads.
The paper has theory only, so ``published`` holds the bounds. Instances: ρ* = 2, λ = 0.1, Bernoulli outcomes unless
said, one reservoir for each replicate. The last rows say how fast each policy was.
"""

from __future__ import annotations

from experiments.common.rows import OURS
from experiments.common.running import Experiment
from experiments.rcb.budgets import far, known, regret
from experiments.rcb.play import timings
from experiments.rcb.studies import ads, baselines, exploration, multiplier, wrong_beta

EXPERIMENT = Experiment(
    "rcb",
    {
        "regret": regret,
        "far": far,
        "known": known,
        "baselines": baselines,
        "wrong_beta": wrong_beta,
        "multiplier": multiplier,
        "exploration": exploration,
        "ads": ads,
    },
    not_in_quick=("far",),
    # a bound's exponent is one of large budgets; what is asked besides names the budget it was asked at
    any_size=lambda row: row.published in ("", OURS),
    closing=timings,
)
