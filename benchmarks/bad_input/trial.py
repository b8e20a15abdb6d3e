"""Trying a case, and what counts as passed."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import benchmarks.bad_input
from benchmarks.bad_input.case import Case
from jaxbandits.core.errors import InputError

LONGEST_LINE, MOST_LINES = 600, 22
SECONDS = {"numbers": 5.0}  # of the areas that begin so
OTHERWISE = 10.0
SECONDS_OF_WORK = 60.0  # what works may have to compile


class TooLong(BaseException):
    """The case's time is over; no Exception, so that nobody takes it for bad input."""


def all_cases() -> list[Case]:
    """Those of every module of this folder that has a function ``cases``."""
    found: list[Case] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(benchmarks.bad_input.__path__)):
        if module != "__main__":
            make = getattr(importlib.import_module(f"benchmarks.bad_input.{module}"), "cases", None)
            found += make() if make else []
    return found


def failure(case: Case) -> str:
    """Why the case failed; empty if it passed."""
    limit = next((s for start, s in SECONDS.items() if case.area.startswith(start)), OTHERWISE)
    limit = SECONDS_OF_WORK if case.works else limit
    with tempfile.TemporaryDirectory(prefix="bad-input-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        with contextlib.chdir(folder):
            if case.before is not None:
                case.before(folder)
            there, began = _listing(folder), time.perf_counter()
            said, loud = _outcome(case, folder, limit)
            seconds = time.perf_counter() - began
        if not said and not (case.leaves or case.works) and _listing(folder) != there:
            said = f"left behind or changed: {sorted(_listing(folder).items() ^ there.items())[:4]}"
    if not said and loud and not case.works:
        said = f"said before the error: {loud[:200]}"
    return said or (f"took {seconds:.1f} s; at most {limit:g}" if seconds > limit else "")


def _outcome(case: Case, folder: Path, limit: float) -> tuple[str, str]:
    """(why it failed, warnings and prints before the error)"""
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stderr(printed), _at_most(2 * limit):
                given = case.call(folder)
            said = "" if case.works else f"no error; gave {str(given)[:200]!r}"
        except TooLong:
            said = f"hung for {2 * limit:g} s"
        except InputError as problem:
            said = f"refused: {problem}" if case.works else _wrong_words(str(problem), case.says)
        except (Exception, SystemExit) as problem:
            at = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{Path(at.filename).name}, line {at.lineno}"
            said = f"{type(problem).__name__} ({where}): {' '.join(str(problem).split())[:200]}"
    loud = [f"{w.category.__name__}: {w.message}" for w in warned if not issubclass(w.category, ResourceWarning)]
    return said, "; ".join([*loud, *filter(None, [printed.getvalue()])])


def _wrong_words(message: str, says: str) -> str:
    """What is wrong with a refusal: one line, or a line with a count and then one indented line per problem."""
    first, *more = message.split("\n")
    if more and (len(more) > MOST_LINES or not all(line.startswith("  ") for line in more)):
        return f"{1 + len(more)} lines: {message[:300]!r}"
    if not first.strip() or max(map(len, (first, *more))) > LONGEST_LINE:
        return f"an empty line, or one of over {LONGEST_LINE} characters: {message[:300]!r}"
    if any(not line.isprintable() for line in (first, *more)):
        return f"unprintable characters: {message[:300]!r}"
    return "" if says in message else f"{says!r} is not in: {message[:300]}"


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Break off what takes longer; a second time soon after, should the first have been swallowed."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLong

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 2.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything in a folder, with size and time of the last change."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            about = os.lstat(os.path.join(place, name))
            is_folder = name in folders
            path = os.path.relpath(os.path.join(place, name), folder)
            found[path] = (0, 0) if is_folder else (about.st_size, about.st_mtime_ns)
    return found


def table(results: Sequence[tuple[Case, str]]) -> list[str]:
    """Lines ``area | tried | passed``, and then every failure."""
    areas = sorted({case.area for case, _ in results})
    width = max((len(area) for area in (*areas, "all")), default=0)
    lines = [f"{'area':{width}} | tried | passed"]
    for area in (*areas, "all"):
        these = [said for case, said in results if area in (case.area, "all")]
        lines.append(f"{area:{width}} | {len(these):5} | {these.count(''):6}")
    return lines + [f"failed: {case.area}: {case.name}: {said}" for case, said in results if said]
