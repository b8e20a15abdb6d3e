"""The worlds of this package for learners of other libraries."""

from jaxbandits.interfaces.episodes import Episode, Episodes
from jaxbandits.interfaces.gymnax_worlds import gymnax_environment

__all__ = ["Episode", "Episodes", "gymnax_environment"]
