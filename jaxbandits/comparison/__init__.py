"""The main job: which policy, with which parameter, spends a budget best on an arms file, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in,
multiplies on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from jaxbandits._tables import NumberStyle
from jaxbandits.comparison.answer import Answer, answer_of
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable, Daily, Evidence, Instance, KeptOut, Pulls
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.plan import NOISES, POLICIES, ComparisonPlan, prepare
from jaxbandits.comparison.running import Interrupted, compare, run_plan
from jaxbandits.comparison.until import Clearness
from jaxbandits.comparison.until import StoppingRule as Until
from jaxbandits.comparison.worlds import finite_arms

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
