"""Differentiable analysis: exact gradients, estimators held against them, tuning, worst instances, sensitivity maps.

    python -m experiments gradients [--quick|--full] [--only ITEM] [--out DIR]

Items: exact, monte_carlo, unbiased, errors, bias, tuned, worst, maps. No published work differentiates budgeted regret:
``published`` holds digits computed apart from this project, or what the theory says.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from experiments._gradients_checks import bias, errors, unbiased
from experiments._gradients_exact import exact_digits, monte_carlo
from experiments._gradients_uses import maps, tuned, worst
from experiments.common import Options, Row, write_summary


def run(options: Options) -> None:
    """All items, or one; ``--quick`` leaves out those that take minutes at any size."""
    if options.only and options.only not in ITEMS:
        raise SystemExit(f"--only: {options.only} given; it must be one of {', '.join(ITEMS)}")
    rows: list[Row] = []
    for name in [options.only] if options.only else QUICK if options.quick else ITEMS:
        began = time.perf_counter()
        rows += ITEMS[name](options)
        write_summary(options.out, rows)
        print(f"gradients {name}: {time.perf_counter() - began:.0f} s", flush=True)


ITEMS: dict[str, Callable[[Options], list[Row]]] = {
    "exact": exact_digits,
    "monte_carlo": monte_carlo,
    "unbiased": unbiased,
    "errors": errors,
    "bias": bias,
    "tuned": tuned,
    "worst": worst,
    "maps": maps,
}
QUICK = ("exact", "monte_carlo", "unbiased", "maps")
