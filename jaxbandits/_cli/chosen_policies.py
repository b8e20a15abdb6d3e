"""The option ``--policies``: names, ``all``, or a class of the user's own file; and their parameters as options."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxbandits._cli.command_line import nearest, option, refused
from jaxbandits.comparison.named_policies import AVERAGE_COST_POLICIES, POLICIES
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import check_range, leaf_fields
from jaxbandits.core.settings import grid

_EVERY: Mapping[str, type[Policy]] = {**POLICIES, **AVERAGE_COST_POLICIES}
MEANINGS: Mapping[str, str] = {
    "rho": "how wide the confidence interval is: the larger, the more is tried out",
    "alpha": "how wide the confidence bounds are: the larger, the more is tried out",
    "a": "how much is tried out at random in the beginning",
    "min_cost": "a lower bound of the arms' mean costs, as a share of the cost of one pull at most",
    "factor": "how wide the confidence bounds are: the larger, the more is tried out",
    "epsilon": "the share of the budget that is spent on trying out, before the best arm gets the rest",
    "c_rad": "how wide the confidence bounds are: the larger, the more is tried out",
}
_OF_THE_CONSTRAINT = ("c", "horizon")


def policy_names(text: str) -> list[str]:
    """A converter that takes names of policies, ``all``, or ``mine.py:MyPolicy``, separated by commas, each once."""
    found = [part.strip(" ") for part in text.split(",")]
    for name in found:
        if name != "all" and name not in _EVERY and ".py:" not in name:
            known = ", ".join([*_EVERY, "all", "mine.py:MyPolicy"])
            raise refused(name, f"one of {known}{nearest(name, _EVERY)}")
        if found.count(name) > 1:
            raise refused(name, "given once")
    return found


def parameters() -> dict[str, tuple[str, list[str]]]:
    """For each parameter of the named policies: its default(s), and the policies that have it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for name, kind in _EVERY.items():
        for field in leaf_fields(kind):
            if name in AVERAGE_COST_POLICIES and field.name in _OF_THE_CONSTRAINT:
                continue
            defaults, users = found.setdefault(field.name, ([], []))
            default = "none, it must be given" if field.default is dataclasses.MISSING else f"{field.default:g}"
            defaults += [default] if default not in defaults else []
            users.append(name)
    return {field: (", ".join(defaults), users) for field, (defaults, users) in found.items()}


def chosen_policies(arguments: argparse.Namespace, average_cost: bool = False) -> list[Policy]:
    """The policies with their settings.

    Args:
        arguments: of the command.
        average_cost: for an average-cost constraint, which has policies of its own.

    Raises:
        InputError: a parameter that no chosen policy has, that is out of its range, or that is needed and missing; a
            policy for another constraint; a file or class that cannot be used.
    """
    kinds = _kinds(arguments, average_cost)
    for parameter, (_, users) in parameters().items():
        values = getattr(arguments, parameter)
        had = any(field.name == parameter for kind in kinds.values() for field in leaf_fields(kind))
        if values is not None and not had:
            raise bad(option(parameter), values, f"left out: no chosen policy has it, only {', '.join(users)}")
    return [_settings(name, kind, arguments, average_cost) for name, kind in kinds.items()]


def _kinds(arguments: argparse.Namespace, average_cost: bool) -> dict[str, type[Policy]]:
    """The classes by the names that were given; ``all`` stands for those that need no parameter that is missing."""
    fitting = AVERAGE_COST_POLICIES if average_cost else POLICIES
    kinds: dict[str, type[Policy]] = {}
    for name in arguments.policies:
        if name == "all":
            kinds |= {each: kind for each, kind in fitting.items() if not _missing(kind, arguments)}
        elif name in fitting:
            kinds[name] = fitting[name]
        elif name in _EVERY:
            other = "--constraint budget" if average_cost else "--constraint average-cost:C"
            raise bad("--policies", name, f"one of {', '.join(fitting)}: it is for {other}")
        else:
            kinds[name] = loaded(name)
    return kinds


def left_out(arguments: argparse.Namespace) -> list[str]:
    """What ``all`` does not stand for, in words."""
    if "all" not in arguments.policies:
        return []
    fitting = POLICIES if arguments.constraint is None else AVERAGE_COST_POLICIES
    needs = {name: _missing(kind, arguments) for name, kind in fitting.items() if name not in arguments.policies}
    needing = [f"{name} ({option(missing[0])})" for name, missing in needs.items() if missing]
    return [f"--policies all is without those that need a parameter: {', '.join(needing)}"] if needing else []


def _missing(kind: type[Policy], arguments: argparse.Namespace) -> list[str]:
    """Parameters without default that were not given."""
    return [
        field.name
        for field in leaf_fields(kind)
        if field.default is dataclasses.MISSING
        and field.name not in _OF_THE_CONSTRAINT
        and getattr(arguments, field.name, None) is None
    ]


def _settings(name: str, kind: type[Policy], arguments: argparse.Namespace, average_cost: bool) -> Policy:
    if missing := _missing(kind, arguments):
        known = missing[0] in vars(arguments)
        what = f"{option(missing[0])}: not given" if known else f"--policies: {name} given"
        raise InputError(f"{what}; {name} has no default for {'it' if known else missing[0]}")
    values: dict[str, Any] = {}
    for field in leaf_fields(kind):
        if (value := getattr(arguments, field.name, None)) is not None and isinstance(value, list):
            check_range(option(field.name), value, field.metadata)
            if len(set(value)) < len(value):
                raise bad(option(field.name), value, "different values")
            values[field.name] = value
        elif average_cost and field.name in _OF_THE_CONSTRAINT and field.default is dataclasses.MISSING:
            values[field.name] = 1  # until the file's bound of the costs is known
    return grid(kind, **values) if values else kind()


def loaded(name: str) -> type[Policy]:
    """The class of ``mine.py:MyPolicy``; the file is run.

    Raises:
        InputError: it cannot be read or run, has no such class, or the class is no policy.
    """
    file, _, wanted = name.rpartition(":")
    path = Path(file)

    def fails(why: str) -> InputError:
        return bad("--policies", name, f"a file and a policy in it, as mine.py:MyPolicy ({why})")

    if not path.is_file():
        raise fails("there is no such file")
    module_name = f"_jaxbandits_policies_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise fails("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # whatever a stranger's file raises
        raise fails(f"running it: {type(problem).__name__}: {problem}") from None
    kind = getattr(module, wanted, None)
    if kind is None:
        there = [x for x, value in vars(module).items() if isinstance(value, type) and issubclass(value, Policy)]
        raise fails(f"it has no {wanted}{nearest(wanted, there)}")
    if not (isinstance(kind, type) and issubclass(kind, Policy) and dataclasses.is_dataclass(kind)):
        raise fails(f"{wanted} is no policy: a class with @jaxbandits.pytree that derives from a Policy")
    return kind
