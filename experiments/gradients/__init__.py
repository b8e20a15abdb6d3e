"""Differentiable analysis: exact gradients, estimators held against them, tuning, worst instances, sensitivity maps.

    python -m experiments gradients [--quick|--full] [--only ITEM] [--out DIR]

Items: exact, monte_carlo, unbiased, errors, bias, tuned, worst, maps. No published work differentiates budgeted regret:
``published`` holds digits computed apart from this project, or what the theory says.
"""

from __future__ import annotations

from experiments.common.running import Experiment
from experiments.gradients.checks import bias, errors, unbiased
from experiments.gradients.digits import exact_digits, monte_carlo
from experiments.gradients.maps import sensitivity
from experiments.gradients.uses import tuned, worst

EXPERIMENT = Experiment(
    "gradients",
    {
        "exact": exact_digits,
        "monte_carlo": monte_carlo,
        "unbiased": unbiased,
        "errors": errors,
        "bias": bias,
        "tuned": tuned,
        "worst": worst,
        "maps": sensitivity,
    },
    not_in_quick=("errors", "bias", "tuned", "worst"),  # minutes at any size
)
