"""Gradients of expected regret: named estimators with one face, each refusing what is undefined for it.

``ESTIMATOR.estimate(policy, environment, constraint, wrt=..., key=...)`` gives an :class:`Estimate`: value, gradient,
standard error. See docs/gradients.md for which one to take.
"""

from jaxbandits.gradients import adversarial as adversarial
from jaxbandits.gradients import bound as bound
from jaxbandits.gradients import exact as exact
from jaxbandits.gradients import policy_score as policy_score
from jaxbandits.gradients import score_function as score_function
from jaxbandits.gradients import smoothed as smoothed
from jaxbandits.gradients import straight_through as straight_through
from jaxbandits.gradients.face import Estimate as Estimate
