"""Differentiable analysis: exact gradients, estimators held against them, tuning, worst instances, sensitivity maps.

    python -m experiments gradients [--quick|--full] [--only ITEM] [--out DIR]

Items: exact, monte_carlo, unbiased, errors, bias, tuned, worst, maps. No published work differentiates budgeted regret:
``published`` holds digits computed apart from this project, or what the theory says.
"""

from __future__ import annotations

from experiments._gradients_checks import bias, errors, unbiased
from experiments._gradients_exact import exact_digits, monte_carlo
from experiments._gradients_uses import maps, tuned, worst
from experiments.common import Item, Options, run_items


def run(options: Options) -> None:
    """All items, or those whose names begin with ``--only``."""
    run_items("gradients", ITEMS, options, not_in_quick=NOT_IN_QUICK, any_size=lambda row: True)


ITEMS: dict[str, Item] = {
    "exact": exact_digits,
    "monte_carlo": monte_carlo,
    "unbiased": unbiased,
    "errors": errors,
    "bias": bias,
    "tuned": tuned,
    "worst": worst,
    "maps": maps,
}
NOT_IN_QUICK = ("errors", "bias", "tuned", "worst")  # minutes at any size
