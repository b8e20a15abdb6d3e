"""The public contract kit: does your policy, does your environment keep the rules that the simulator leans on?

A new policy or environment is checked in one line, in your own tests::

    from jaxbandits.testing import check_constraint, check_environment, check_policy

    check_policy(MyUCB(width=0.5), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))
    check_environment(MyArms(...))
    check_constraint(MyBudget(...), FiniteArms.bernoulli([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]]))

They raise :class:`AssertionError` with one sentence about the rule that is broken. ``POLICY_CHECKS`` and
``CONSTRAINT_CHECKS`` list the single checks, for a test runner that wants to report them apart.
"""

from jaxbandits.testing.accountant import CONSTRAINT_CHECKS as CONSTRAINT_CHECKS
from jaxbandits.testing.accountant import check_constraint as check_constraint
from jaxbandits.testing.bits import assert_same_results as assert_same_results
from jaxbandits.testing.bits import compilations as compilations
from jaxbandits.testing.bits import ulps_apart as ulps_apart
from jaxbandits.testing.episodes import Step as Step
from jaxbandits.testing.episodes import episode as episode
from jaxbandits.testing.learner import POLICY_CHECKS as POLICY_CHECKS
from jaxbandits.testing.learner import check_policy as check_policy
from jaxbandits.testing.subject import Subject as Subject
from jaxbandits.testing.world import check_environment as check_environment
