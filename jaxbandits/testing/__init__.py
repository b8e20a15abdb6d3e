"""Checks that your policy, environment or constraint keeps the rules the simulator relies on.

It is checked in one line, in your own tests::

    from jaxbandits.testing import check_constraint, check_environment, check_policy

    check_policy(MyUCB(width=0.5), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))
    check_environment(MyArms(...))
    check_constraint(MyBudget(...), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))

They raise :class:`AssertionError` with one sentence about the rule that is broken.
``POLICY_CHECKS`` and ``CONSTRAINT_CHECKS`` list the single checks, for a test runner that wants to
report them apart.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
