"""The main job: which policy, with which parameter, spends a budget best on an arms file, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in,
multiplies on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from jaxbandits.comparison.answer import Answer, answer_of
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable, Instance, KeptOut
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.evidence import Daily, Evidence, NumberStyle, Pulls
from jaxbandits.comparison.named_policies import POLICIES
from jaxbandits.comparison.plan import NOISES, ComparisonPlan, prepare
from jaxbandits.comparison.running import Interrupted, compare, run_plan
from jaxbandits.comparison.scaled_arms import finite_arms
from jaxbandits.comparison.until import Clearness, Until

__all__ = [
    "NOISES",
    "POLICIES",
    "Answer",
    "ArmsTable",
    "Clearness",
    "Comparison",
    "ComparisonPlan",
    "Daily",
    "Evidence",
    "Instance",
    "Interrupted",
    "KeptOut",
    "NumberStyle",
    "Pulls",
    "Until",
    "answer_of",
    "compare",
    "finite_arms",
    "prepare",
    "read_arms",
    "run_plan",
]
