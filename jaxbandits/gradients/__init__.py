"""Gradients of expected regret: named estimators with one face, each refusing what is undefined for
it.

``ESTIMATOR.estimate(policy, environment, constraint, wrt=..., key=...)`` gives a
:class:`GradientEstimate`: value, gradient, standard error. See docs/gradients.md for which one to
take.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
