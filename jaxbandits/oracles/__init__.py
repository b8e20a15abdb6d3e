"""Exact answers for small problems, to hold simulations and estimators against. Float64 on the host."""

from jaxbandits.oracles.bayes import bayes_optimal_regret as bayes_optimal_regret
from jaxbandits.oracles.bayes import bayes_optimal_reward as bayes_optimal_reward
from jaxbandits.oracles.exact import Choice as Choice
from jaxbandits.oracles.exact import Counts as Counts
from jaxbandits.oracles.exact import Ends as Ends
from jaxbandits.oracles.exact import Exact as Exact
from jaxbandits.oracles.exact import evaluate as evaluate
from jaxbandits.oracles.exact import play_out as play_out
