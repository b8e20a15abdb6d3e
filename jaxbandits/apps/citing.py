"""What to cite for a policy, as BibTeX: ``data/papers.bib`` has the papers, and which policies come from each."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

from jaxbandits import policies
from jaxbandits.apps.comparison.plan import AVERAGE_COST_POLICIES, POLICIES
from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Policy

__all__ = ["cite"]

_PACKAGE = """@software{{jaxbandits,
  author  = {{{{the jaxbandits authors}}}},
  title   = {{jaxbandits: a GPU-vectorised JAX simulator for budgeted and resource-constrained bandits}},
  version = {{{version}}},
  year    = {{2026}},
}}"""


class Citation(str):
    """BibTeX that an interactive session shows as it is to be pasted."""

    def __repr__(self) -> str:
        return str(self)


def cite(policy: Policy | type[Policy] | str | None = None) -> Citation:
    """BibTeX of this package, and of the papers behind a policy.

    Policies around other policies have the papers of both. What an entry lacks could not be read, and is not guessed.

    Args:
        policy: a policy, its class, or the name of either: ``"OmegaUCB"``, or as the command has it ``"omega_ucb"``.
            None: the package alone.

    Returns:
        The entries, as text: ``print(jb.cite(policy))``.

    Raises:
        InputError: something that is no policy, or a name that none has.

    Example:
        >>> import jaxbandits as jb
        >>> print(jb.cite("bts").split("@inproceedings")[1].strip())  # doctest: +ELLIPSIS
        {xia2015b,
          author    = {Xia, Yingce and Li, Haifang and Qin, Tao and Yu, Nenghai and Liu, Tie-Yan},
          title     = {Thompson Sampling for Budgeted Multi-Armed Bandits},
        ...
        }
    """
    from jaxbandits import __version__

    found: dict[str, None] = {}
    for kind in _kinds(policy) if policy is not None else ():
        # a class of the user's has the papers of its nearest parent in this package
        ours = [x.__name__ for x in kind.__mro__ if x.__module__.startswith("jaxbandits.policies.")][:1]
        found |= dict.fromkeys(entry for _, entry, names in papers() if {*ours} & {*names})
    return Citation("\n\n".join([_PACKAGE.format(version=__version__), *found]) + "\n")


@functools.cache
def papers() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Of each paper its key, its entry, and the classes that come from it."""
    text = (resources.files("jaxbandits") / "data" / "papers.bib").read_text(encoding="utf-8")
    found = re.findall(r"^% Policies: (.*)\n(@\w+\{(\w+),\n(?:  .*\n)*\})$", text, re.MULTILINE)
    return tuple((key, entry, tuple(names.split(", "))) for names, entry, key in found)


def _kinds(policy: Any) -> Iterator[type]:
    """The class of a policy, and those of the policies inside."""
    if isinstance(policy, str):
        policy = {**POLICIES, **AVERAGE_COST_POLICIES}.get(policy) or getattr(policies, policy, policy)
    kind = policy if isinstance(policy, type) else type(policy)
    if not issubclass(kind, Policy):
        raise bad("policy", policy, "a policy, a policy's class, or its name such as 'omega_ucb'")
    yield kind
    for inner in vars(policy).values() if kind is not policy else ():
        if isinstance(inner, Policy):
            yield from _kinds(inner)
