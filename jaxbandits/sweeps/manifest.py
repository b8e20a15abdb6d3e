"""The manifest of a sweep's folder: what it says, and whether one that was read can be such."""

from __future__ import annotations

from typing import Any

from jaxbandits.core.errors import shown
from jaxbandits.sweeps.log import is_number
from jaxbandits.sweeps.plan import SweepPlan

_FORMAT = 1
_WORK = ("rounds", "seconds")


def manifest_of(plan: SweepPlan) -> dict[str, Any]:
    """What the sweep is, and how it was cut into blocks."""
    blocks = [
        {"of": b.unit.name, "lanes": int(b.lanes.size), "rounds": b.rounds, "seconds": b.seconds} for b in plan.blocks
    ]
    return {"format": _FORMAT, "identity": plan.identity, "blocks": blocks}


def odd_manifest(found: Any) -> str:
    """What is wrong with a manifest; empty if nothing is."""
    if not isinstance(found, dict):
        return "no JSON object"
    if type(found.get("format")) is not int or found["format"] != _FORMAT:
        return f"format {shown(found.get('format'))} of a sweep; it must be {_FORMAT}"
    identity, blocks = found.get("identity"), found.get("blocks")
    if not isinstance(identity, dict) or not isinstance(identity.get("marks"), list) or not identity["marks"]:
        return "no identity with marks"
    if not isinstance(blocks, list) or not blocks:
        return "no blocks"
    for number, block in enumerate(blocks):
        fits = isinstance(block, dict) and isinstance(block.get("of"), str) and type(block.get("lanes")) is int
        if not fits or block["lanes"] < 1 or not all(is_number(block.get(x)) and block[x] >= 0 for x in _WORK):
            return f"block {number} is {shown(block)}"
    if not sum(block["seconds"] for block in blocks) > 0:
        return "blocks without work"
    return ""
