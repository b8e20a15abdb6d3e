"""Policies for more arms than can be tried."""

from jaxbandits.policies.many_arms.sampling import (
    ArmIncreasing,
    SampledArms,
    arms_to_sample,
    rcb_air,
    rcb_i,
    room_needed,
)

__all__ = [
    "ArmIncreasing",
    "SampledArms",
    "arms_to_sample",
    "rcb_air",
    "rcb_i",
    "room_needed",
]
