"""Exact answers for small problems, to hold simulations and estimators against. Float64 on the host."""

from jaxbandits.oracles import bounds, optimum
from jaxbandits.oracles.exact import (
    Choice,
    Counts,
    Ends,
    Exact,
    bayes_optimal_regret,
    bayes_optimal_reward,
    evaluate,
    play_out,
)

__all__ = [
    "Choice",
    "Counts",
    "Ends",
    "Exact",
    "bayes_optimal_regret",
    "bayes_optimal_reward",
    "bounds",
    "evaluate",
    "optimum",
    "play_out",
]
