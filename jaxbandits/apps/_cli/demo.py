"""The parser of ``jaxbandits demo``: it needs no jax."""

from __future__ import annotations

import argparse

from jaxbandits.apps._cli.console import Parser


def parser() -> Parser:
    """The parser of ``demo``."""
    command = Parser(
        prog="jaxbandits demo",
        description="Regret, sensitivity and a gradient on the ads that come with the package: three pictures.",
    )
    command.add_argument(
        "--out", default="jaxbandits-demo", metavar="DIR", help="folder to write to"
    )
    return command


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Three studies, see :mod:`~jaxbandits.apps._cli.studies`."""
    from jaxbandits.apps._cli import studies

    return studies.run(arguments, argv)
