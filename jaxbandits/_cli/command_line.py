"""What the project's commands share: a parser whose errors are one line and name the right argument, and printing.

A command line is checked in this order, so that a slip of the fingers is told as what it is: names of options, values
that are missing, options that are missing, then each value by its converter. Converters (:func:`number`, :func:`whole`,
:func:`one_of`, …) know the range, so that nothing is read, made or compiled for a number that cannot be used.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jaxbandits.core.errors import InputError, shown

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InputError and prints no usage.

    Args:
        must: names of positional arguments that must be given; declare them with ``nargs="?"``.
        **options: of :class:`argparse.ArgumentParser`.

    Example:
        >>> parser = Parser(prog="demo")
        >>> _ = parser.add_argument("--budget", type=number(above=0), required=True)
        >>> parser.parse(["--budget", "1e3"]).budget
        1000.0
        >>> parser.parse(["--buget", "5"])
        Traceback (most recent call last):
        jaxbandits.core.errors.InputError: --buget: unknown option; did you mean --budget? (see demo --help)
    """

    def __init__(self, *, must: Sequence[str] = (), **options: Any):
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, exit_on_error=False, **options)
        self.must = tuple(must)

    def parse(self, given: Sequence[str]) -> argparse.Namespace:
        """The values; ``--help`` and ``--version`` print and leave by SystemExit(0).

        Raises:
            InputError: naming the argument.
        """
        try:
            arguments, left = self.parse_known_args(self._checked_options(list(given)))
        except argparse.ArgumentError as problem:
            name = (problem.argument_name or "").split("/")[-1]
            raise InputError(f"{name}: {problem.message}") from None
        if left := [part for part in left if part != "--"]:
            raise InputError(f"{shown(left[0])}: not expected here (see {self.prog} --help)")
        for action in self._actions:
            if action.dest in self.must and getattr(arguments, action.dest) is None:
                raise InputError(f"{action.metavar or action.dest}: missing; it must be given")
        return arguments

    def _checked_options(self, given: list[str]) -> list[str]:
        """The same with every value attached to its option, as in ``--rho=-1``; names and missing values checked.

        Options first: :mod:`argparse` fills all that stands without one from the first group of such words.
        """
        known, attached, others, found = self._option_string_actions, list[str](), list[str](), set()
        parts = iter(given)
        for part in parts:
            name, equals, value = part.partition("=")
            if part == "--":
                others += [part, *parts]
            elif not part.startswith("-") or part == "-":
                others.append(part)
            elif name not in known:
                raise InputError(f"{typed(name)}: unknown option{nearest(name, known)} (see {self.prog} --help)")
            elif known[name].nargs == 0:
                if equals:
                    raise InputError(f"{name}: {shown(value)} given; it must be without a value")
                if isinstance(known[name], (argparse._HelpAction, argparse._VersionAction)):
                    return [part]
                found.add(known[name].dest)
                attached.append(part)
            else:
                value = value if equals else next(parts, "--")
                if value.startswith("--") and not equals:
                    raise InputError(f"{name}: nothing given; it must have a value")
                found.add(known[name].dest)
                attached.append(f"{name}={value}")
        missing = [a.option_strings[-1] for a in self._actions if a.required and a.dest not in found]
        if missing:
            raise InputError(f"{', '.join(missing)}: missing; it must be given")
        return attached + others

    def error(self, message: str) -> NoReturn:
        """Anything that argparse finds and :meth:`parse` does not."""
        raise InputError(message)

    def print_help(self, file: Any = None) -> None:
        """Print the help; quietly, if nobody reads it to the end."""
        say(self.format_help().rstrip("\n"))


def parse_or_leave(parser: Parser, given: Sequence[str] | None = None) -> argparse.Namespace:
    """The values of the process's arguments (or of those given); bad ones are told in one line, and end it with 2."""
    try:
        return parser.parse(sys.argv[1:] if given is None else given)
    except InputError as problem:
        complain(problem, parser.prog)
        sys.exit(2)


def folder(text: str) -> Path:
    """A converter to a folder, which is there or can be made; it is not made."""
    nearest = Path(text)
    try:
        while not nearest.exists():
            nearest = nearest.parent
    except (OSError, ValueError):
        nearest = Path(os.devnull)
    if not text.strip() or "\0" in text or not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise refused(text, "a folder that can be written")
    return Path(text)


def typed(name: str) -> str:
    """An option as it was typed, if that is printable and short."""
    return name if name.isprintable() and len(name) <= 40 else shown(name)


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` where one of the known names is like this one.

    Example:
        >>> nearest("--polices", ["--policies", "--out"]), nearest("zzz", ["one"])
        ('; did you mean --policies?', '')
    """
    spelt = {text.lower().replace("-", "_"): text for text in known}
    near = difflib.get_close_matches(name[:100].lower().replace("-", "_"), spelt, n=1, cutoff=0.4)
    return f"; did you mean {spelt[near[0]]}?" if near else ""


def listed(name: str, known: Iterable[str]) -> str:
    """The known names, and which of them was probably meant.

    Example:
        >>> listed("figre1", ["figure1", "maps"])
        'figure1, maps; did you mean figure1?'
    """
    known = tuple(known)
    return f"{', '.join(known)}{nearest(name, known)}"


# --- converters ------------------------------------------------------------------------------------------------


def refused(text: object, may_be: str) -> argparse.ArgumentTypeError:
    """The error of a converter, for it to raise."""
    return argparse.ArgumentTypeError(f"{shown(text)} given; it must be {may_be}")


def to_number(text: str, may_be: str = "a finite number") -> float:
    """A decimal number in ASCII, finite, and 0 only if it says 0; blanks around it are ignored.

    Example:
        >>> to_number(" 2.5e-3 ")
        0.0025
    """
    plain = text.strip(" ")
    value = float(plain) if _NUMBER.fullmatch(plain) and len(plain) <= 400 else math.nan
    if not math.isfinite(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", plain)[0])):
        raise refused(text, may_be)
    return value


def number(
    *, above: float | None = None, least: float | None = None, most: float | None = None
) -> Callable[[str], float]:
    """A converter to a number in a range."""
    ends = [f"above {above:g}"] if above is not None else []
    ends += [f"at least {least:g}"] if least is not None else []
    ends += [f"at most {most:g}"] if most is not None else []
    may_be = " ".join(["a finite number", " and ".join(ends)]).rstrip()

    def convert(text: str) -> float:
        value = to_number(text, may_be)
        fits = (above is None or value > above) and (least is None or value >= least)
        if not fits or (most is not None and value > most):
            raise refused(text, may_be)
        return value

    return convert


def numbers(text: str) -> list[float]:
    """A converter to numbers, separated by commas."""
    return [to_number(part, f"numbers, separated by commas, and not {shown(text)}") for part in text.split(",")]


def whole(least: int = 0, most: int | None = None, most_as: str = "") -> Callable[[str], int]:
    """A converter to a whole number in a range; ``most_as`` is how the message writes its upper end."""
    upper = f"of at least {least}" if most is None else f"from {least} to {most_as or format(most, ',')}"

    def convert(text: str) -> int:
        plain = text.strip(" ")
        value = int(plain) if _WHOLE.fullmatch(plain) else None
        if value is None or value < least or (most is not None and value > most):
            raise refused(text, f"a whole number {upper}")
        return value

    return convert


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A converter that takes one of some names."""
    known = tuple(names)

    def convert(text: str) -> str:
        if text not in known:
            raise refused(text, f"one of {listed(text, known)}")
        return text

    return convert


def names_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """A converter that takes several of some names, separated by commas, each once."""
    one = one_of(known)

    def convert(text: str) -> list[str]:
        found = [one(part.strip(" ")) for part in text.split(",")]
        for name in found:
            if found.count(name) > 1:
                raise refused(name, "given once")
        return found

    return convert


# --- printing --------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Print to stdout; a reader that has gone away, as ``head`` does, ends the printing and not the work."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # what is still to come, and what Python flushes at its end, goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(problem: object, program: str = "jaxbandits") -> None:
    """Print an error to stderr: one line, or a first line and one indented line for each of several problems."""
    from jaxbandits.core.printable import line

    first, *more = (line(" ".join(part.split())) for part in str(problem).split("\n"))
    print("\n".join([f"{program}: error: {first}", *(f"  {part}" for part in more)]), file=sys.stderr, flush=True)


# --- names -----------------------------------------------------------------------------------------------------


def option(parameter: str) -> str:
    """``--min-cost`` for ``min_cost``."""
    return f"--{parameter.replace('_', '-')}"


OTHERWISE = {"average_cost": "constraint", "wrt": "parameter"}
"""Options that are not called as the argument of the library is."""


def as_option(problem: InputError, arguments: argparse.Namespace) -> InputError:
    """``runs: 0 given; …`` as ``--runs: 0 given; …``, if the command has such an option."""
    message = str(problem)
    name = message.split(":")[0]
    own = OTHERWISE.get(name, name)
    return InputError(f"{option(own)}{message[len(name) :]}") if own in vars(arguments) else problem
