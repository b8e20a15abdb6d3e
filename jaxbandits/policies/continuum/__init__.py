"""Policies for a continuum of arms: zooming, trees, points."""

from jaxbandits.policies.base.zooming import ZoomingPolicy
from jaxbandits.policies.continuum.b_zoom import BZoom, SinglePhaseBZoom
from jaxbandits.policies.continuum.on_points import OnPoints
from jaxbandits.policies.continuum.trees import HOO, StoOO
from jaxbandits.policies.continuum.zooming import SinglePhaseZooming, Zooming

__all__ = [
    "HOO",
    "BZoom",
    "OnPoints",
    "SinglePhaseBZoom",
    "SinglePhaseZooming",
    "StoOO",
    "Zooming",
    "ZoomingPolicy",
]
