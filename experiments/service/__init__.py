"""Requests in flight and budgets that renew: who wins under delay and in batches, who gets most out of 30 days.

    python -m experiments service [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: delay, renewing.
"""

from __future__ import annotations

from experiments.common.running import Experiment
from experiments.service.days import renewing
from experiments.service.delays import delay

EXPERIMENT = Experiment("service", {"delay": delay, "renewing": renewing})
