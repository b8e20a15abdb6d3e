"""A spec is Python code: read it, run it, and say in one line what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaxbandits._files.files import path_of, read_regular, reason_of
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.printable import said
from jaxbandits.sweeps.identity import SPEC_TEXT

_MOST_BYTES = 1 << 26
_MODULE = "jaxbandits_spec_"
_LONG = 10.0  # seconds after which we say what we wait for


def load_spec(path: str, notice: Callable[[str], None] | None = None) -> Any:
    """The :class:`~jaxbandits.Sweep` in a file, which is executed: run none that you would not run yourself.

    Args:
        path: the file.
        notice: is told if the file is still running after ten seconds.

    Raises:
        InputError: there is no such file, it fails, exits or asks for input, or it sets no sweep.
    """
    return run_spec(path, read_spec(path), notice)


def read_spec(path: str) -> bytes:
    """The text of a spec.

    Raises:
        InputError: it is no Python file.
    """
    file = path_of("SPEC.py", path)
    try:
        content = read_regular(file, _MOST_BYTES, follow=True)
    except OSError as problem:
        raise bad("SPEC.py", path, f"a Python file ({reason_of(problem)})") from None
    if file.suffix != ".py":
        raise bad("SPEC.py", path, "a Python file (its name must end in .py)")
    return content


def run_spec(path: str, content: bytes, notice: Callable[[str], None] | None = None) -> Any:
    """What a spec's text sets `sweep` to; see :func:`load_spec`."""
    from jaxbandits.sweeps.spec import Sweep

    file = Path(path).absolute()
    module = types.ModuleType(f"{_MODULE}{file.stem}")
    module.__file__ = str(file)
    vars(module)[SPEC_TEXT] = content  # what it is, whatever becomes of the file
    sys.modules[module.__name__] = module  # dataclasses and the spec's identity look there
    try:
        with _apart(file.parent), _told_if_long(path, notice):
            exec(compile(content, str(file), "exec"), vars(module))
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: a spec must not end us as if all were well
        del sys.modules[module.__name__]
        raise InputError(f"{path}: line {_line_of(problem, str(file))}: {_said(problem)}") from problem
    found = vars(module).get("sweep")
    if not isinstance(found, Sweep):
        raise bad(f"{path}: sweep", found, "a jaxbandits.Sweep")
    return found


def source_of(spec: Any) -> tuple[str, bytes] | None:
    """Path and text of the file that a spec came from, or None if it was made otherwise."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_MODULE) and vars(module).get("sweep") is spec:
            return str(module.__file__), vars(module)[SPEC_TEXT]
    return None


@contextlib.contextmanager
def _apart(folder: Path) -> Iterator[None]:
    """Modules beside the spec can be imported; nothing can be read from the keyboard; the working folder stays."""
    before, keyboard = os.getcwd(), sys.stdin
    sys.path.insert(0, str(folder))
    try:
        with open(os.devnull, encoding="utf-8") as sys.stdin:
            yield
    finally:
        sys.stdin = keyboard
        with contextlib.suppress(ValueError):  # the spec may have removed it
            sys.path.remove(str(folder))
        with contextlib.suppress(OSError):
            os.chdir(before)


@contextlib.contextmanager
def _told_if_long(path: str, notice: Callable[[str], None] | None) -> Iterator[None]:
    if notice is None:
        yield
        return
    timer = threading.Timer(_LONG, notice, [f"{path} still runs after {_LONG:g} s; Ctrl-C ends it"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _line_of(problem: BaseException, path: str) -> int:
    """The line of the spec at which it failed; 0 if none is to blame."""
    if isinstance(problem, SyntaxError) and problem.filename == path:
        return problem.lineno or 0
    frames = reversed(traceback.extract_tb(problem.__traceback__))
    return next((frame.lineno or 0 for frame in frames if frame.filename == path), 0)


def _said(problem: BaseException) -> str:
    """``ZeroDivisionError: division by zero``; our own messages as they are."""
    text = said(problem, 400)
    if isinstance(problem, InputError):
        return text
    if isinstance(problem, SystemExit):
        return f"it exits ({text or 'SystemExit'}); it must set `sweep` and come to its end"
    return f"{type(problem).__name__}{': ' if text else ''}{text}"
