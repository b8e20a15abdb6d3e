"""The parser of ``jaxbandits demo``: it needs no jax."""

from __future__ import annotations

import argparse

from jaxbandits.apps._cli.console import Parser


def parser() -> Parser:
    """The parser of ``demo``."""
    about = (
        "Regret, sensitivity and a gradient on the ads that come with the package: three pictures."
    )
    out = {"out": {"default": "jaxbandits-demo"}}
    return Parser("demo", about, "--out  DIR  folder to write to", out)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Three studies, see :mod:`~jaxbandits.apps._cli.studies`."""
    from jaxbandits.apps._cli import studies

    return studies.run(arguments, argv)
