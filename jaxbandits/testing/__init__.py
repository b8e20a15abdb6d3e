"""The public contract kit: does your policy, does your environment keep the rules that the simulator leans on?

A new policy or environment is checked in one line, in your own tests::

    from jaxbandits.testing import check_constraint, check_environment, check_policy

    check_policy(MyUCB(width=0.5), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))
    check_environment(MyArms(...))
    check_constraint(MyBudget(...), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))

They raise :class:`AssertionError` with one sentence about the rule that is broken. ``POLICY_CHECKS`` and
``CONSTRAINT_CHECKS`` list the single checks, for a test runner that wants to report them apart.
"""

from jaxbandits.testing.accountant import CONSTRAINT_CHECKS, check_constraint
from jaxbandits.testing.lanes import Step, Subject, assert_same_results, compilations, episode, ulps_apart
from jaxbandits.testing.learner import POLICY_CHECKS, check_policy
from jaxbandits.testing.world import check_environment

__all__ = [
    "CONSTRAINT_CHECKS",
    "POLICY_CHECKS",
    "Step",
    "Subject",
    "assert_same_results",
    "check_constraint",
    "check_environment",
    "check_policy",
    "compilations",
    "episode",
    "ulps_apart",
]
