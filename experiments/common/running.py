"""What the command line said, an experiment as items by name, how they are run, and what was played before."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.common.rows import Row, read_summary, write_summary
from jaxbandits._cli.command_line import listed
from jaxbandits.core.errors import bad


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line said.

    Attributes:
        quick, full: at most one is set; with neither, an experiment takes a size in between.
        only: the one item to run, or None.
        out: the folder for pictures and summary.csv; it exists when an item runs.
        data: the folder of real data files, which may be missing.
    """

    quick: bool = False
    full: bool = False
    only: str | None = None
    out: Path = Path("jaxbandits-out")
    data: Path = Path("../shared/data")

    def pick(self, quick: Any, usual: Any, full: Any) -> Any:
        """The value for this size."""
        return quick if self.quick else full if self.full else usual


Item = Callable[[Options], list[Row]]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What a paper's package offers to ``python -m experiments``.

    Attributes:
        name: its name, for the lines with the seconds.
        items: what there is to run, by name.
        not_in_quick: names that ``--quick`` leaves out, unless asked for by ``--only``.
        any_size: does the verdict of this row hold at any size? What others say about the published sizes is neither
            shown nor refuted by smaller ones, so it is unclear without ``--full``.
        closing: rows about the whole run.
    """

    name: str
    items: Mapping[str, Item]
    not_in_quick: Collection[str] = ()
    any_size: Callable[[Row], bool] = lambda row: True
    closing: Callable[[], list[Row]] = list

    def chosen(self, options: Options) -> list[str]:
        """The items whose names begin with ``--only``; without it, all that this size has.

        Raises:
            InputError: no item's name begins so.
        """
        if not options.only:
            return [name for name in self.items if not (options.quick and name in self.not_in_quick)]
        chosen = [name for name in self.items if name.startswith(options.only)]
        if not chosen:
            raise bad("--only", options.only, f"one of {listed(options.only, self.items)}")
        return chosen

    def run(self, options: Options) -> list[Row]:
        """Run the chosen items, write summary.csv after each, and give its rows.

        With ``--only``, what other items wrote to the same folder earlier stays in summary.csv.
        """
        chosen = self.chosen(options)
        options.out.mkdir(parents=True, exist_ok=True)
        rows = read_summary(options.out, set(self.items) - set(chosen)) if options.only else []
        for name in chosen:
            began = time.perf_counter()
            found = [each._replace(made_by=name) for each in self.items[name](options)]
            rows += [each if options.full or self.any_size(each) else _short(each) for each in found]
            write_summary(options.out, rows)
            print(f"{self.name} {name}: {time.perf_counter() - began:.0f} s", flush=True)
        if closing := self.closing():
            rows += closing
            write_summary(options.out, rows)
        return rows


def _short(row: Row) -> Row:
    return row._replace(verdict="unclear", note=f"{row.note}; not --full".removeprefix("; "))


def kept(
    options: Options, name: str, depends_on: Iterable[object], make: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """What ``make`` gives, from ``OUT/runs/name.npz`` if the very same was made there before.

    ``depends_on`` holds all that the numbers depend on and that may change between two runs: arrays; objects, whose
    modules' source counts; anything else by its text. The version of jax counts too.
    """
    state = hashlib.sha256(jax.__version__.encode())
    for thing in depends_on:
        if isinstance(thing, (np.ndarray, jax.Array)):
            state.update(np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, (str, int, float)):
            state.update(repr(thing).encode())
        else:
            state.update(inspect.getsource(inspect.getmodule(type(thing))).encode())  # type: ignore[arg-type]
    mark = state.hexdigest()
    path = options.out / "runs" / f"{name}.npz".replace(" ", "_").replace("*", "star")
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["mark"]) == mark:
                return {key: stored[key] for key in stored.files if key != "mark"}
    made = make()
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, mark=np.array(mark), **made)  # type: ignore[arg-type]
    return made
