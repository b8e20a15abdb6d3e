"""A progress bar with time left, on stderr; silent unless asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Progress:
    """One bar for each policy. Use as a context manager."""

    def __init__(self, shown: bool, policies: int):
        self._shown, self._policies, self._number = shown, policies, 0
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def start(self, name: str, lanes: int) -> Callable[[float], None]:
        """Begin a policy's bar; the result is called with the lanes done so far (fractions count)."""
        self._number += 1
        if not self._shown:
            return lambda done: None
        from tqdm import tqdm

        self._close()
        self._bar = tqdm(
            total=lanes,
            desc=f"[{self._number}/{self._policies}] {name}: compiling",
            unit="run",
            file=sys.stderr,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} runs, {remaining} left",
            dynamic_ncols=True,
        )
        bar, title = self._bar, f"[{self._number}/{self._policies}] {name}"

        def report(done: float) -> None:
            if done > 0:
                bar.set_description(title, refresh=False)
            bar.update(min(done, lanes) - bar.n)

        return report
