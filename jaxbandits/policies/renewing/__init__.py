"""Policies for budgets that renew: a price on money, and what people do today."""

from jaxbandits.policies.renewing.even_pace import EvenPace
from jaxbandits.policies.renewing.price_pacer import PricePacer

__all__ = ["EvenPace", "PricePacer"]
