"""The command as a person writes it."""

from __future__ import annotations

from jaxbandits.apps._cli.console import main


def command(line: str, *words: str) -> int:
    """The exit code; ``words`` may have spaces."""
    return main([*line.split(), *words])
