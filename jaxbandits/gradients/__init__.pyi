from . import bound as bound
from . import exact as exact
from . import policy_score as policy_score
from . import score_function as score_function
from . import smoothed as smoothed
from . import straight_through as straight_through
from .estimates import GradientEstimate as GradientEstimate
