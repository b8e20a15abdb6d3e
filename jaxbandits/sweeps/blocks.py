"""What a finished block is: its bytes, its name, and whether its content can be what the sweep played there."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import numpy as np

from jaxbandits._engine import blanks
from jaxbandits._engine.booking import ledger_of
from jaxbandits._files import npz
from jaxbandits.core import ticks
from jaxbandits.core.ledger import Ledger
from jaxbandits.core.protocol import Status
from jaxbandits.sweeps.plan import Block, SweepPlan, Unit

Arrays = Mapping[str, np.ndarray]
ACCOUNTS = ("rounds", "reward", "spent", "expected_reward", "expected_spent", "clock", "expected_clock")
_PER_RESOURCE = ("spent", "expected_spent", "audit:")  # these may have one more axis
_ENDS = [int(status) for status in Status if status != Status.RUNNING]


def encode(arrays: Arrays) -> bytes:
    """Arrays as the bytes of an ``.npz`` file: uncompressed, so that they depend on nothing but the arrays."""
    file = io.BytesIO()
    np.savez(file, **npz.check_plain(arrays, "block"))  # type: ignore[arg-type]
    return file.getvalue()


def decode(content: bytes) -> dict[str, np.ndarray]:
    """What :func:`encode` was given.

    Raises:
        NotArrays: the bytes are none of :func:`encode`.
    """
    return dict(npz.read(io.BytesIO(content)))


def block_name(number: int, content: bytes) -> str:
    """The file name of a block, which holds its checksum."""
    return f"{number:05d}-{hashlib.sha256(content).hexdigest()[:32]}.npz"


def misfit(arrays: Arrays, lanes: int, marks: int) -> str:
    """Why these are not the accounts of so many lanes that have ended; empty if they may be. To be read after "it"."""
    if missing := [name for name in (*ACCOUNTS, "ended") if name not in arrays]:
        return f"holds no {missing[0]!r}"
    for name, x in arrays.items():
        kind, shape = (np.int8, (lanes,)) if name == "ended" else (np.int64, (lanes, marks))
        more = x.shape[len(shape) :] if name.startswith(_PER_RESOURCE) and x.ndim == 3 else ()
        if x.dtype != kind or x.shape != (*shape, *more):
            return f"holds {name!r} of shape {x.shape} and type {x.dtype}, not {shape} and {np.dtype(kind)}"
    ended, rounds = arrays["ended"], arrays["rounds"]
    if not np.isin(ended, _ENDS).all():
        return f"holds a lane that ended with status {ended[~np.isin(ended, _ENDS)].flat[0]}"
    counts = {"rounds": rounds} | {name: x for name, x in arrays.items() if name.startswith("event:")}
    for name, x in counts.items():
        if (x < 0).any() or (np.diff(x, axis=1) < 0).any():
            return f"holds {name!r} below 0, or falling from one mark to the next"
    return ""


class Content:
    """What the blocks of a sweep must hold."""

    def __init__(self, plan: SweepPlan):
        self._plan = plan
        self._shapes: dict[int, Ledger] = {}

    def misfit(self, number: int, arrays: Arrays) -> str:
        """Why these are not the accounts of the block's lanes; empty if they may be. To be read after "it"."""
        block = self._plan.blocks[number]
        if found := misfit(arrays, block.lanes.size, self._plan.shares.size):
            return found
        ledger = self._shape_of(block.unit)
        wanted = {name: getattr(ledger, name).whole.shape[1:] for name in ACCOUNTS[1:5]}
        wanted |= {f"event:{name}": () for name in ledger.events}
        wanted |= {f"audit:{name}": x.whole.shape[1:] for name, x in ledger.audit.items()}
        if odd := sorted(
            set(wanted).symmetric_difference(set(arrays) - {"rounds", "clock", "expected_clock", "ended"})
        ):
            return f"{'holds no' if odd[0] in wanted else 'also holds'} {odd[0]!r}"
        for name, shape in wanted.items():
            if arrays[name].shape[2:] != shape:
                return f"holds {name!r} of shape {arrays[name].shape}"
        return self._inconsistent(block, arrays)

    def _inconsistent(self, block: Block, arrays: Arrays) -> str:
        """The round cap, and the clock, which follows from the other accounts."""
        task = block.unit.task
        _, instance, _ = np.unravel_index(block.lanes, block.unit.layout.lane_shape(task))
        if (arrays["rounds"] > task.cap[instance][:, None]).any():
            return "holds more rounds than the round cap"
        rows = Ledger(
            arrays["rounds"].astype(np.int32),  # type: ignore[arg-type]
            *(ticks.split(arrays[name]) for name in ACCOUNTS[1:5]),  # type: ignore[arg-type]
            events={n.removeprefix("event:"): x for n, x in arrays.items() if n.startswith("event:")},  # type: ignore[misc]
            audit={n.removeprefix("audit:"): ticks.split(x) for n, x in arrays.items() if n.startswith("audit:")},
        )
        for name, x in ledger_of(rows, task.constraint).items():
            if not np.array_equal(x, arrays[name]):
                return f"holds {name!r} that does not fit its other accounts"
        return ""

    def _shape_of(self, unit: Unit) -> Ledger:
        """The shapes of a lane's ledger, ``[1]``."""
        if unit.first not in self._shapes:
            task = unit.task
            lanes = task.lanes(np.zeros(1, np.int64))
            _, outcome = blanks.blank_shapes(1, task.environment, lanes, task.root)
            self._shapes[unit.first] = outcome.ledger
        return self._shapes[unit.first]
