"""The options of every command that reads an arms file."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import Any

from jaxbandits._cli.command_line import Parser, nearest, number, one_of, refused
from jaxbandits.comparison._reading.columns import ROLES

FORMATS = """\
The arms file is a CSV file, as programs export it; in plain form its header is one of
  name,mean_reward,mean_cost            means per pull
  name,clicks,spent,conversions         counts; means are taken per click
  name,reward,cost                      a log, one row per pull
or that of the Facebook ads file; a column `instance` holds several problems in one file. The usual words in several
languages (Campaign, Amount spent (USD), Kosten), semicolons, tabs, decimal commas, currencies, titles, totals and rows
per day are understood: `jaxbandits read FILE` shows how.
"""
_NAMED = ("instances", "reward_max", "cost_max", "columns", "reward", "prior", "decimal", "encoding")


def add_arms_options(made: Parser, *, facebook: bool = True) -> None:
    """Those that say how the file is to be read; ``--instances`` only where ``facebook``."""
    add, positive = made.add_argument, number(above=0)
    add("--columns", type=columns_of, metavar="name=TITLE,…",
        help=f"which column is what: {', '.join(ROLES)}; as cost a number: what every pull costs")  # fmt: skip
    add("--reward", metavar="TITLE", help="the column that counts as reward, such as revenue")
    add("--prior", type=positive, metavar="N",
        help="counts: as if every arm had had N more clicks of the file's average; keeps arms without any")  # fmt: skip
    add("--decimal", type=one_of((".", ",")), metavar=".|,", help="the decimal sign (default: told from the file)")
    add("--encoding", metavar="NAME", help="of the file's text (default: UTF-8, UTF-16 or Latin-1, told from the file)")
    if facebook:
        add("--instances", type=one_of(("published", "repaired")), metavar="published|repaired", default="published",
            help="Facebook file: drop or repair rows (published)")  # fmt: skip
    add("--reward-max", type=positive, metavar="X", help="bound of the reward of one pull, in the file's unit")
    add("--cost-max", type=positive, metavar="X", help="bound of the cost of one pull, in the file's unit")


def arms_options(arguments: argparse.Namespace, *, facebook: bool = True) -> dict[str, Any]:
    """The same as arguments of :func:`~jaxbandits.comparison.read_arms` and :func:`~jaxbandits.comparison.prepare`."""
    return {name: getattr(arguments, name) for name in _NAMED if facebook or name != "instances"}


def as_typed(arguments: argparse.Namespace) -> str:
    """The options that were given, as one would type them, with a blank before each."""
    parts = []
    for name, value in arms_options(arguments).items():
        if value not in (None, "published"):
            text = ",".join(f"{role}={title}" for role, title in value.items()) if name == "columns" else f"{value}"
            text = f"{value:.15g}" if isinstance(value, float) else text
            parts.append(f" --{name.replace('_', '-')} {shlex.quote(text)}")
    return "".join(parts)


def columns_of(text: str) -> dict[str, str]:
    """A converter of ``name=Campaign,cost=Cost, EUR``: a comma stands in a title unless ``key=`` follows it.

    Example:
        >>> columns_of("name=Campaign, cost=Cost, EUR")
        {'name': 'Campaign', 'cost': 'Cost, EUR'}
    """
    found: dict[str, str] = {}
    parts = re.split(r"(?:^|,)\s*([A-Za-z_-]+)\s*=", text)
    may_be = f"pairs such as name=Campaign,cost=Kosten with the keys {', '.join(ROLES)}"
    if parts[0].strip() or len(parts) < 3:
        raise refused(text, may_be)
    for role, title in zip(parts[1::2], parts[2::2], strict=True):
        role = role.replace("-", "_").lower()
        if role not in ROLES:
            raise refused(role, f"one of {', '.join(ROLES)}{nearest(role, ROLES)}")
        if role in found or not title.strip():
            raise refused(text, f"given one title for each key, and {role} is not")
        found[role] = title.strip()
    return found
