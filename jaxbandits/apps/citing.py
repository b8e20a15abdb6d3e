"""What to cite for a policy, as BibTeX, from the papers of ``data/papers.bib``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from jaxbandits import __version__, policies
from jaxbandits._provenance import nearest_class
from jaxbandits.apps.comparison.plan import POLICIES
from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Policy
from jaxbandits.result import Result
from jaxbandits.sweeps.result import SweepResult

__all__ = ["cite"]

_RELEASED = "2026-11-22"  # the version that ``jaxbandits.__version__`` names
_TITLE = "jaxbandits: a GPU-vectorised JAX simulator for budgeted and resource-constrained bandits"


class Citation(str):
    """BibTeX that an interactive session shows ready to paste."""

    def __repr__(self) -> str:
        return str(self)


def cite(policy: Policy | type[Policy] | str | Result | SweepResult | None = None) -> Citation:
    """BibTeX of this package and of the papers of a policy, or of all policies of a result.

    Policies around other policies have the papers of both. What an entry lacks could not be read,
    and is not guessed.

    Args:
        policy: a policy, its class, or the name of either: ``"OmegaUCB"``, or as the command has it
            ``"omega_ucb"``. A :class:`~jaxbandits.Result` or what :func:`~jaxbandits.sweep` gave:
            what its settings are made of, and the version that played them. None: the package alone.

    Returns:
        The entries, as text: ``print(jb.cite(policy))``.

    Raises:
        InputError: something that is no policy and no result, or a name that none has.

    Example:
        >>> import jaxbandits as jb
        >>> print(jb.cite("bts").split("@inproceedings")[1].strip())  # doctest: +ELLIPSIS
        {xia2015b,
          author    = {Xia, Yingce and Li, Haifang and Qin, Tao and Yu, Nenghai and Liu, Tie-Yan},
          title     = {Thompson Sampling for Budgeted Multi-Armed Bandits},
        ...
        }
    """
    classes: list[str] = []
    if isinstance(policy, (Result, SweepResult)):
        played = [policy] if isinstance(policy, Result) else list(policy.results.values())
        software = _software(played[0].about.jaxbandits, played[0].about.code)
        for about in (result.about for result in played):
            # a file of an earlier version says no more than the class of each policy
            for setting in about.classes or [[row["policy"]] for row in about.parameters]:
                classes += setting
    else:
        software = _software(__version__)
        for kind in _kinds(policy) if policy is not None else ():
            # A class of the user's has the papers of its nearest parent
            classes += nearest_class(kind)
    entries = dict.fromkeys(
        entry for name in classes for _, entry, names in papers() if name in names
    )
    return Citation("\n\n".join([software, *entries]) + "\n")


def _software(version: str, code: str = "") -> str:
    """The entry of this package; with a date or an address where there is one."""
    fields = {"author": "{the jaxbandits authors}", "title": f"{{{_TITLE}}}", "version": version}
    if version == __version__:
        fields |= {"date": _RELEASED, "year": _RELEASED[:4]}
    try:
        pages = dict(x.split(", ", 1) for x in metadata("jaxbandits").get_all("Project-URL") or ())
    except PackageNotFoundError:
        pages = {}
    # Reserved: there is none yet
    if "//example." not in (address := pages.get("Homepage", "//example.")):
        fields["url"] = address
    # said once more for BibTeX, whose styles leave out version and date
    parts = [f"Version {version}", fields.get("date", ""), f"source {code[:16]}" if code else ""]
    fields["note"] = ", ".join(filter(None, parts))
    width = max(map(len, fields))
    return "\n".join(
        ["@software{jaxbandits,", *(f"  {k:{width}} = {{{x}}}," for k, x in fields.items()), "}"]
    )


@functools.cache
def papers() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The key, the entry and the classes of each paper."""
    text = (resources.files("jaxbandits") / "data" / "papers.bib").read_text(encoding="utf-8")
    blocks = re.findall(r"^% Policies: (.*)\n(@\w+\{(\w+),\n(?:  .*\n)*\})$", text, re.MULTILINE)
    return tuple((key, entry, tuple(names.split(", "))) for names, entry, key in blocks)


def _kinds(policy: Any) -> Iterator[type]:
    """The class of a policy, and those of the policies inside."""
    if isinstance(policy, str):
        policy = POLICIES.get(policy) or getattr(policies, policy, policy)
    kind = policy if isinstance(policy, type) else type(policy)
    if not issubclass(kind, Policy):
        raise bad(
            "policy",
            policy,
            "a policy, a policy's class, its name such as 'omega_ucb', or a result",
        )
    yield kind
    for inner in vars(policy).values() if kind is not policy else ():
        if isinstance(inner, Policy):
            yield from _kinds(inner)
