"""Gradients of expected regret: named estimators with one face, each refusing what is undefined for it.

``ESTIMATOR.estimate(policy, environment, constraint, wrt=..., key=...)`` gives an :class:`Estimate`: value, gradient,
standard error. See docs/gradients.md for which one to take.
"""

from jaxbandits.gradients import adversarial, bound, exact, policy_score, score_function, smoothed, straight_through
from jaxbandits.gradients.estimates import Estimate

__all__ = [
    "Estimate",
    "adversarial",
    "bound",
    "exact",
    "policy_score",
    "score_function",
    "smoothed",
    "straight_through",
]
