"""Blocks played by other processes: what is sent to them, what they do with it, what they answer.

A request is made of plain values only (numbers, text, bytes), so that a worker with another version can read it, and
say so. The spec in it is source, or was pickled by value.
"""

from __future__ import annotations

import functools
import json
import pickle
import platform
import sys
import threading
from collections.abc import Sequence
from typing import Any

import jax

from jaxbandits._engine.resources import usual_workers
from jaxbandits.core.errors import InputError, shown
from jaxbandits.core.printable import said
from jaxbandits.sweeps.compiled import for_this_processor
from jaxbandits.sweeps.here import Answer, Here, worker_name
from jaxbandits.sweeps.identity import arrived, first_difference, versions
from jaxbandits.sweeps.plan import SweepPlan, make_plan
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.spec_file import run_spec, source_of

_SECONDS_PER_CALL = 10.0  # of one core's expected work, at most; an executor may say otherwise
_PART = 4  # a call is this part of a worker's fair part of what is left, so that all end together
_ARRIVING = threading.Lock()  # one spec at a time: to run one changes the working folder for a moment


class Elsewhere:
    """The workers of an executor, for the blocks of one plan.

    Args:
        executor: anything with ``submit(function, *args) -> future``.
        plan: what is played.
    """

    takes_all = False

    def __init__(self, executor: Any, plan: SweepPlan):
        self._executor, self._request, self._calls = executor, request_of(plan), 0

    def about(self) -> dict[str, Any]:
        """For the log."""
        return {"executor": type(self._executor).__name__}

    def submit(self, calls: Sequence[Sequence[int]]) -> list[Any]:
        """Send these; each is the numbers of blocks that one worker plays and answers together."""
        futures = []
        for numbers in calls:
            self._calls += 1  # no two calls are equal: Dask would answer the second from its memory
            futures.append(self._executor.submit(play, self._request, list(numbers), self._calls))
        return futures

    def seconds_per_call(self, fair: float) -> float:
        """So many that the lanes of one block follow those of another, and few enough that little is lost."""
        return getattr(self._executor, "seconds_per_call", min(_SECONDS_PER_CALL, fair / _PART))

    def rounds(self) -> float:
        """Unknown before a block is here."""
        return 0.0

    def close(self) -> None:
        """Nothing: the executor is its owner's."""


def request_of(plan: SweepPlan) -> dict[str, Any]:
    """What a worker needs to know.

    Raises:
        InputError: the spec cannot be pickled.
    """
    how: str
    if (source := source_of(plan.spec)) is not None:
        how, spec = "source", source
    else:
        try:
            import cloudpickle as pickler
        except ImportError:
            pickler = pickle
        try:
            how, spec = pickler.__name__, (f"{sys.version_info[0]}.{sys.version_info[1]}", pickler.dumps(plan.spec))
        except Exception as problem:
            more = "" if pickler is not pickle else "; the package cloudpickle pickles more"
            raise InputError(
                f"spec: cannot be sent to another process ({type(problem).__name__}: {said(problem)}); it must be made "
                f"of values that can be pickled{more}, or come from a file (jaxbandits sweep SPEC.py)"
            ) from None
    return {"identity": json.dumps(plan.identity), "how": how, "spec": spec, "host": platform.node()}


def play(request: dict[str, Any], numbers: Sequence[int], call: int = 0) -> Answer:
    """In a worker: play blocks and give their bytes.

    Args:
        request: of :func:`request_of`.
        numbers: which blocks.
        call: makes each call another one; not used.

    Returns:
        ``worker``, and ``blocks`` by number, each with its name (which holds the checksum) and its bytes; or
        ``refused``, why this worker must not play; or ``failed``, what went wrong.
    """
    try:
        with _ARRIVING:
            if odd := _misfit(request):
                return {"worker": worker_name(), "refused": odd}
            if request["host"] != platform.node():
                for_this_processor()
            here = _resident(request["identity"], request["how"], request["spec"])
        return here.submit([numbers])[0].result()
    except InputError as problem:
        return {"worker": worker_name(), "refused": said(problem, 400)}
    except Exception as problem:
        return {"worker": worker_name(), "failed": f"{type(problem).__name__}: {said(problem, 400)}"}


def _misfit(request: dict[str, Any]) -> str:
    """Why this process could make other bits, before anything of the spec is touched; empty if it could not."""
    here = {**versions(), "platform": jax.default_backend()}
    there = json.loads(request["identity"])["versions"]
    if request["how"] != "source":
        here["python"], there["python"] = f"{sys.version_info[0]}.{sys.version_info[1]}", request["spec"][0]
    if found := first_difference(here, there):
        name, mine, wanted = found
        return f"it has {_NAMES.get(name, name)} {shown(mine)}; it must be {shown(wanted)}, as where the sweep began"
    return ""


_NAMES = {"code": "other source files of jaxbandits, digest", "platform": "the kind of device"}


@functools.lru_cache(maxsize=1)
def _resident(identity: str, how: str, spec: tuple[str, bytes]) -> Here:
    """The sweep in this process; it stays between calls, and so do its compiled programs."""
    if how == "source":
        found = run_spec(*spec)
    else:
        try:
            found = pickle.loads(spec[1])
        except Exception as problem:
            raise InputError(f"spec: cannot be read here ({type(problem).__name__}: {said(problem)})") from None
    assert isinstance(found, Sweep)
    devices = jax.local_devices()
    plan = make_plan(found, devices[0].platform)
    sent = json.loads(identity)
    mine = arrived(json.loads(json.dumps(plan.identity)), sent, by_value=how == "cloudpickle")
    if difference := first_difference(mine, sent):
        where, now, then = difference
        raise InputError(f"{where}: {shown(now)} here; it must be {shown(then)}, as where the sweep began")
    return Here(plan, devices, _threads(devices), block_by_block=True)


def _threads(devices: Sequence[Any]) -> int:
    """As many as Dask gave this process, if it is one of Dask's, but no more than is usual."""
    if "distributed" in sys.modules and devices[0].platform == "cpu":
        from distributed import get_worker

        try:
            return min(get_worker().state.nthreads, usual_workers(devices))
        except ValueError:
            pass
    return usual_workers(devices)
