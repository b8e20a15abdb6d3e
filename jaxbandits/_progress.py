"""A progress bar on stderr with the time left, and the count of runs that ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Status

Report = Callable[[float, int], None]
LINES = "lines"  # in place of a bar: for what is no terminal
_PAUSE = 10.0  # seconds before the first line, and between two
_PATIENCE = 2.0  # seconds before a bar that nobody asked for


def usual_progress(choice: bool | None) -> bool | str:
    """A command's progress: as asked, else a bar on a terminal or a line every ten seconds.

    ``!command`` in a notebook has a terminal that keeps every state of a bar as a line of its own.
    """
    terminal = sys.stderr.isatty() and "JPY_PARENT_PID" not in os.environ
    return choice if choice is not None else (terminal or LINES)


class Bar:
    """A bar on stderr: a title, the share of the work done, the time left; removed on exit.

    ``style`` is None for one after two seconds where somebody watches (a terminal, a notebook),
    False for none, ``"lines"`` for a line every ten seconds; ``count`` stands behind the bar, with
    ``{n}`` and ``{total}`` for the work done and all of it.
    """

    def __init__(self, style: bool | str | None, total: float, count: str = ""):
        watched = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._style, self._total, self._count = watched if style is None else style, total, count
        self._patience = _PATIENCE if style is None else 0.0
        self._began = self._printed_at = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, title: str, work: float) -> None:
        """Show the title, and how much of the work is done."""
        if self._style == LINES:
            self._say(title, work)
        elif self._style and (self._bar or time.monotonic() - self._began >= self._patience):
            if self._bar is None:
                from tqdm import tqdm

                form = f"{{desc}}: {{percentage:3.0f}}%|{{bar}}| {self._count}{{remaining}} left"
                # smoothing=0: the rate since the beginning, so that compiling counts
                options: dict[str, Any] = {"dynamic_ncols": True, "leave": False, "smoothing": 0}
                self._bar = tqdm(total=self._total, file=sys.stderr, bar_format=form, **options)
            self._bar.n = max(min(work, self._total), self._bar.n)
            self._bar.set_description_str(title)  # writes the bar anew

    def _say(self, title: str, work: float) -> None:
        now = time.monotonic()
        if now - self._printed_at < _PAUSE:
            return
        self._printed_at = now
        share = min(work / self._total, 1.0) if self._total else 1.0
        seconds = (now - self._began) * (1 - share) / max(share, 1e-9)
        remaining = f", about {seconds:.0f} s left" if share > 0 else ""
        count = self._count.format(n=work, total=self._total)
        print(f"{title}: {count}{share:.0%}{remaining}", file=sys.stderr, flush=True)


class Progress:
    """One bar for several tasks, each a policy and its runs. A context manager; removed on exit.

    Give one to ``simulate(..., progress=...)`` in several calls, and they share the bar. The runs
    are counted in any case: ``done`` of ``runs`` are finished. ``names`` replace those of a call.
    """

    def __init__(self, style: bool | str | None, tasks: int, runs: int, names: Sequence[str] = ()):
        if not isinstance(style, (bool, np.bool_, type(None))) and style != LINES:
            raise bad("progress", style, "True, False, None, 'lines' or a Progress")
        self.runs, self.done = runs, 0
        self._tasks, self._number, self._names = tasks, 0, names
        self._bar = Bar(style, runs, "{n:.0f}/{total:.0f} runs, ")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__()

    def start(self, names: Sequence[str], runs: int) -> Report:
        """Begin a task for each name, all at once, with so many runs in total.

        The result is to be called with (the runs' worth of work done in these tasks, of which runs
        finished).
        """
        names = self._names or names
        first, self._number = self._number + 1, self._number + len(names)
        numbers = f"{first}" if len(names) == 1 else f"{first}-{self._number}"
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        title, before = f"[{numbers}/{self._tasks}] {names[0]}{more}", self.done
        self._bar.show(f"{title}: compiling", before)

        def report(work: float, finished: int) -> None:
            self.done = before + finished
            self._bar.show(title if work > 0 else f"{title}: compiling", before + min(work, runs))

        return report


_GOOD = (Status.EXHAUSTED, Status.HORIZON, Status.CLOSED)
_REASONS = {
    Status.ROUND_CAP: "max_rounds was reached before the end of the clock",
    Status.CAPACITY: "a growing set is full: their regret stops early and is not comparable; rerun with more capacity",
    Status.INVALID: "the policy asked for an action that the environment does not have, or a score was NaN; "
    "jb.testing.check_policy and check_environment say where",
}


def unfinished(ended: np.ndarray) -> list[str]:
    """A line for each status that needs attention; ``ended`` has one per lane, −1 for none."""
    lanes = int((ended >= 0).sum())
    lines = []
    for status in (x for x in Status if x not in _GOOD):
        if count := int((ended == status).sum()):
            name = f"{status.name.lower()} ({_REASONS.get(status, 'unexpected')})"
            lines.append(f"{count} of {lanes} lanes ended with status {name}")
    return lines
