"""Tune a policy's parameters by stochastic gradient descent on the expected regret over a distribution of instances."""

from jaxbandits.tuning.problems import FAMILIES, Problem, fixed_problem, random_problem, uniform_problem
from jaxbandits.tuning.search import default_optimizer, tune
from jaxbandits.tuning.tuned import Gain, Tuned

__all__ = [
    "FAMILIES",
    "Gain",
    "Problem",
    "Tuned",
    "default_optimizer",
    "fixed_problem",
    "random_problem",
    "tune",
    "uniform_problem",
]
