"""One case of bad input, and how a command's answer becomes a case's."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
from collections.abc import Callable
from pathlib import Path

from jaxbandits.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class Case:
    """Something that must be refused in one line.

    Attributes:
        area: "numbers: parameters", "files: results", "command: compare", …; the report counts by it.
        name: what is tried, in a few words.
        call: gets an empty folder of its own, which is also the working folder; must raise InputError in one line.
        says: text that the line must hold (the argument's name, or the file's).
        leaves: the call itself puts files into the folder, so that it is not compared before and after.
        works: odd but right: the call must return.
        before: puts the files into the folder that the call shall find; what is there then, must be all that is left.
    """

    area: str
    name: str
    call: Callable[[Path], object]
    says: str = ""
    leaves: bool = False
    works: bool = False
    before: Callable[[Path], object] | None = None


def command(*arguments: str | os.PathLike[str]) -> Callable[[Path], str]:
    """A call of the command ``jaxbandits`` in this process.

    Exit code 2 with nothing on stdout becomes the InputError of the line on stderr, 0 returns what was printed, and
    anything else is an AssertionError.
    """

    def call(_: Path) -> str:
        from jaxbandits._cli.console import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([os.fspath(x) for x in arguments])
            except SystemExit as stop:
                raise AssertionError(f"SystemExit({stop.code!r}) instead of an exit code") from None
        return answer(code, out.getvalue(), err.getvalue())

    return call


def answer(code: int, out: str, err: str) -> str:
    """What a command printed, if it ended well; its refusal, if that is by the rules."""
    if code == 0:
        return out
    if code != 2:
        raise AssertionError(f"exit {code}: {err[-300:]!r}")
    if out:
        raise AssertionError(f"printed before it refused: {out[:200]!r}")
    if not err.endswith("\n"):
        raise AssertionError(f"stderr is no line: {err[-300:]!r}")
    raise InputError(err[:-1])
