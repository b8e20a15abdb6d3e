"""What to cite for a policy, as BibTeX."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from jaxbandits.comparison.named_policies import AVERAGE_COST_POLICIES, POLICIES
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Policy

__all__ = ["cite"]

PAPERS: Mapping[str, tuple[str, ...]] = {
    "OmegaUCB": ("heyden2024",),
    "OmegaStarUCB": ("heyden2024",),
    "MUCB": ("xia2017",),
    "CUCB": ("xia2017",),
    "IUCB": ("xia2017",),
    "BGreedy": ("xia2017",),
    "BudgetedThompson": ("xia2015b",),
    "BudgetUCB": ("xia2015a",),
    "EstimatedBudgetUCB": ("xia2015a",),
    "UCBSC": ("watanabe2018",),
    "UCBSCPlus": ("watanabe2018",),
    "KLUCBSC": ("watanabe2017",),
    "KLUCBSCPlus": ("watanabe2017",),
    "EpsilonFirst": ("tranthanh2010",),
    "KUBE": ("tranthanh2012",),
    "FractionalKUBE": ("tranthanh2012",),
    "UCBBV1": ("ding2013",),
    "UCBBV2": ("ding2013",),
    "PDBwK": ("badanidiyuru2018",),
    "PDBwKWithTime": ("badanidiyuru2018",),
    "MRCB": ("xia2016",),
    "UCBB2": ("cayci2020",),
    "UCB1": ("auer2002",),
    "UCBVReward": ("wang2008",),
    "UCBVRatio": ("wang2008",),
    "RCB": ("li2017",),
    "SampledArms": ("li2017",),
    "ArmIncreasing": ("li2017",),
    "SoftElim": ("boutilier2020",),
    "SUAK": ("elumar2025",),
    "Guarded": ("elumar2025",),
    "OnePhase": ("li2021", "elumar2025"),
    "PrimalDualTwoPhase": ("li2021", "kumar2022"),
    "UCBSimplex": ("flajolet2015", "elumar2025"),
    "FluidOracle": ("elumar2025",),
    "Pacer": ("balseiro2023",),
    "PricePacer": ("balseiro2023", "heyden2024"),
    "RCUCB": ("bengs2023",),
    "ZRCUCB": ("bengs2023",),
    "UCBReduction": ("bengs2023",),
    "ThompsonReduction": ("bengs2023", "agrawal2012"),
    "BZoom": ("trovo2016",),
    "SinglePhaseBZoom": ("trovo2016",),
    "Zooming": ("kleinberg2008",),
    "SinglePhaseZooming": ("trovo2016", "kleinberg2008"),
    "OnPoints": ("trovo2016",),
    "HOO": ("bubeck2011",),
    "StoOO": ("munos2014",),
    # Ours, or everybody's: no paper to cite.
    "BestRatioOracle": (),
    "EvenPace": (),
    "FixedSplit": (),
    "InFlight": (),
    "IndexPolicy": (),
    "MixturePolicy": (),
    "RandomisedPolicy": (),
    "SoftIndex": (),
    "ZoomingPolicy": (),
}
"""The papers of each policy's class, by their keys in ``data/papers.bib``; a class of one's own has its parents'."""


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
        >>> [line for line in jb.cite(jb.policies.rcb_air(beta=1.0)).splitlines() if line.startswith("@")]
        ['@software{jaxbandits,', '@inproceedings{li2017,']
    """
    keys = dict.fromkeys(key for kind in _kinds(policy) for key in _papers(kind))
    return Citation("\n\n".join([_package(), *(entries()[key] for key in keys)]) + "\n")


def _papers(kind: type) -> tuple[str, ...]:
    """Of a class: its own, or its nearest parent's that has any entry."""
    ours = (parent.__name__ for parent in kind.__mro__ if parent.__module__.startswith("jaxbandits.policies."))
    return next((PAPERS[name] for name in ours if name in PAPERS), ())


def _kinds(policy: Any) -> Iterator[type]:
    """The class of a policy, and those of the policies inside."""
    if policy is None:
        return
    if isinstance(policy, str):
        policy = _named(policy)
    if isinstance(policy, type) and issubclass(policy, Policy):
        yield policy
    elif isinstance(policy, Policy):
        yield type(policy)
        for inner in vars(policy).values():
            if isinstance(inner, Policy):
                yield from _kinds(inner)
    else:
        raise bad("policy", policy, "a policy, a policy's class, or its name such as 'omega_ucb'")


def _named(name: str) -> type[Policy]:
    from jaxbandits import policies

    known = {**POLICIES, **AVERAGE_COST_POLICIES, **{kind: getattr(policies, kind) for kind in PAPERS}}
    if name not in known:
        raise bad("policy", name, f"one of {', '.join(known)}")
    return known[name]


@functools.cache
def entries() -> dict[str, str]:
    """The entries of ``data/papers.bib`` by their keys."""
    text = (resources.files("jaxbandits") / "data" / "papers.bib").read_text(encoding="utf-8")
    found = re.findall(r"^(@\w+\{(\w+),\n(?:  .*\n)*\})$", text, re.MULTILINE)
    return {key: entry for entry, key in found}


def _package() -> str:
    from jaxbandits import __version__

    return f"""@software{{jaxbandits,
  author  = {{{{the jaxbandits authors}}}},
  title   = {{jaxbandits: a GPU-vectorised JAX simulator for budgeted and resource-constrained bandits}},
  version = {{{__version__}}},
  year    = {{2026}},
}}"""
