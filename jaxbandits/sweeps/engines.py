"""Engines by name, as ``--on`` gives them: ``processes:4``, ``dask:tcp://host:8786``, ``dask:local:4``, ``slurm:…``."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from jaxbandits.core import machine
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.printable import said
from jaxbandits.sweeps.compiled import shared_programs
from jaxbandits.sweeps.processes import AT_ONCE, Processes

NAMES = "processes:N, dask:tcp://HOST:PORT, dask:local:N or slurm[:NAME=VALUE,…]"
_PATIENCE = "10s"  # for a scheduler that does not answer
_JOB_SECONDS = 600.0  # of one core's expected work in a Slurm job


@contextlib.contextmanager
def open_engine(name: str) -> Iterator[Any]:
    """An executor for :func:`~jaxbandits.sweep`, as long as the context lasts.

    Args:
        name: ``processes:N``; ``dask:tcp://HOST:PORT``, a scheduler that runs; ``dask:local:N``, a Dask cluster of so
            many processes on this machine; ``slurm`` with options of ``submitit.AutoExecutor``, such as
            ``slurm:slurm_partition=cpu,cpus_per_task=4,timeout_min=60``, and ``seconds``, expected work of one core
            in a job (600), ``folder``, which all nodes see (``jaxbandits-slurm``), and ``cluster`` (``slurm``;
            ``local`` runs the jobs here).

    Raises:
        InputError: there is no such engine, its package is not installed, or it does not answer.

    Example:
        >>> with open_engine("processes:1") as executor:
        ...     executor.submit(max, 2, 3).result()
        3
    """
    kind, _, rest = name.partition(":")
    if kind == "processes" and (count := _whole(rest)):
        with Processes(count) as processes:
            yield processes
    elif kind == "dask" and rest.startswith("local:") and (count := _whole(rest.removeprefix("local:"))):
        with _dask_here(name, count) as client:
            yield client
    elif kind == "dask" and re.fullmatch(r"(tcp|tls|ws|wss|ucx)://.+:\d{1,5}", rest, re.ASCII):
        with _dask(name, rest) as client:
            yield client
    elif kind == "slurm":
        yield Slurm(name, dict(_option(name, part) for part in rest.split(",") if part))
    else:
        raise bad("executor", name, NAMES)


def _whole(text: str) -> int:
    """A number of workers; 0 if it is none."""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text, re.ASCII) else 0


def _option(name: str, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (equals and key.isidentifier() and value):
        raise bad("executor", name, f"{NAMES}; {text!r} is no NAME=VALUE")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return key, kind(value)
    return key, value


def _package(name: str, extra: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except ImportError as problem:
        text = f"executor: {name!r} given; it needs a package that is not installed ({said(problem)}): "
        raise InputError(f"{text}pip install 'jaxbandits[{extra}]'") from None


def _distributed() -> ModuleType:
    import distributed

    return distributed


def _submitit() -> ModuleType:
    import submitit

    return submitit


@contextlib.contextmanager
def _dask(name: str, address: str) -> Iterator[Any]:
    distributed = _package(name, "dask", _distributed)
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, TimeoutError, ValueError) as problem:
        reason = said(problem)
        raise bad("executor", name, f"the address of a Dask scheduler that runs ({reason})") from None
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


@contextlib.contextmanager
def _dask_here(name: str, count: int) -> Iterator[Any]:
    distributed = _package(name, "dask", _distributed)
    parts = [machine.part_of_cores(number, count) for number in range(count)]
    with (
        shared_programs() as variables,
        distributed.LocalCluster(
            n_workers=count, threads_per_worker=max(AT_ONCE, len(parts[0])), dashboard_address=":0", env=variables
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for worker, part in zip(client.scheduler_info()["workers"], parts, strict=False):
            client.run(_stay_on, part, workers=[worker])
        yield client


def _stay_on(cores: Sequence[int]) -> None:
    """In a worker, before jax starts there: XLA makes threads for these cores only."""
    if cores:
        os.sched_setaffinity(0, cores)


class Slurm:
    """Jobs by ``submitit``, each of several blocks.

    Args:
        name: what the user typed.
        options: see :func:`open_engine`.
    """

    def __init__(self, name: str, options: dict[str, Any]):
        submitit = _package(name, "slurm", _submitit)
        self.seconds_per_call = float(options.pop("seconds", _JOB_SECONDS))
        folder, cluster = options.pop("folder", "jaxbandits-slurm"), options.pop("cluster", "slurm")
        try:
            self._executor = submitit.AutoExecutor(folder=os.fspath(folder), cluster=cluster)
            self._executor.update_parameters(name="jaxbandits", **options)
        except Exception as problem:  # it raises its own kinds for options, for a cluster, and where sbatch is missing
            raise bad("executor", name, f"slurm with options that submitit takes ({said(problem)})") from None

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Begin a job."""
        return self._executor.submit(function, *args)
