"""Policies for censored arms: which arm, and up to which limit."""

from jaxbandits.policies.censored.rcucb import RCUCB
from jaxbandits.policies.censored.reductions import ThompsonReduction, UCBReduction
from jaxbandits.policies.censored.z_rcucb import ZRCUCB, fine_limits

__all__ = [
    "RCUCB",
    "ZRCUCB",
    "ThompsonReduction",
    "UCBReduction",
    "fine_limits",
]
