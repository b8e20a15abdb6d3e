"""Gradients of expected regret: named estimators, each of which rejects what it cannot estimate.

``ESTIMATOR.estimate(policy, environment, constraint, wrt=..., key=...)`` returns a
:class:`GradientEstimate`: value, gradient, standard error. See docs/gradients.md for which one to
choose.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
