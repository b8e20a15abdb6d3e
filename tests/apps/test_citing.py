"""`jb.cite`: every policy has its papers, and they are those of CITATION.cff."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.apps import citing
from jaxbandits.apps.comparison.plan import POLICIES
from tests.test_provenance import sample_result

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {
    name
    for name in policies.__all__
    if isinstance(x := getattr(policies, name), type) and issubclass(x, jb.Policy)
}


# Ours, or everybody's: no paper to cite.
OURS = {
    *("BestRatioOracle", "ContextualOracle", "EvenPace", "FixedSplit", "InFlight", "IndexPolicy"),
    *("KnapsackOracle", "MixturePolicy", "RandomisedPolicy", "Schedule", "SoftIndex"),
    "ZoomingPolicy",
}
ENTRIES = {key: entry for key, entry, _ in citing.papers()}


def fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w+) *= \{(.*)\},$", entry, re.MULTILINE))


def keys(citation: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", citation, re.MULTILINE)


def test_every_policy_has_an_entry_and_every_paper_a_policy() -> None:
    assert {name for _, _, names in citing.papers() for name in names} == CLASSES - OURS
    text = (ROOT / "jaxbandits/data/papers.bib").read_text(encoding="utf-8")
    assert text.count("\n@") == len(ENTRIES)  # none is lost in reading
    for key, entry in ENTRIES.items():
        assert {"author", "title", "year"} <= set(fields(entry)), key
        authors = fields(entry)["author"].split(" and ")
        assert all(re.fullmatch(r".+, .+", name) for name in authors), key
        assert entry.count("{") == entry.count("}")
        assert re.match(r"@(article|inproceedings|misc)\{", entry)


def test_an_object_its_class_and_its_names_are_one() -> None:
    assert keys(jb.cite(policies.OmegaUCB(rho=[0.25, 1.0]))) == ["jaxbandits", "heyden2024"]
    for name, kind in POLICIES.items():
        assert jb.cite(name) == jb.cite(kind) == jb.cite(kind.__name__)
        assert len(keys(jb.cite(name))) >= 2
    assert repr(jb.cite("bts")) == str(jb.cite("bts")) and jb.cite("bts").endswith("}\n")
    assert keys(jb.cite()) == ["jaxbandits"] == keys(jb.cite(policies.FixedSplit([1.0])))


def test_policies_inside_count_once() -> None:
    guarded = policies.Guarded(policies.OnePhase(c=0.5, horizon=10))
    assert keys(jb.cite(guarded)) == ["jaxbandits", "elumar2025", "li2021"]
    nested = policies.InFlight(policies.SoftIndex(policies.OmegaUCB(), temperature=0.1))
    assert keys(jb.cite(nested)) == ["jaxbandits", "heyden2024"]


def test_a_class_of_ones_own_has_its_parents() -> None:
    class Mine(policies.MUCB):
        pass

    class RCB(policies.IndexPolicy):  # a name of ours, and not ours
        pass

    assert keys(jb.cite(Mine)) == ["jaxbandits", "xia2017"]
    assert keys(jb.cite(RCB)) == ["jaxbandits"]


def test_what_is_played_is_cited() -> None:
    assert keys(jb.cite(sample_result())) == ["jaxbandits", "heyden2024", "xia2017", "xia2015a"]
    assert keys(jb.cite(sample_result().sel(policy="Halved"))) == ["jaxbandits", "xia2017"]
    cited = jb.cite(sample_result())
    assert f"version = {{{jb.__version__}}}" in cited and "date    = {" in cited
    assert f"note    = {{Version {jb.__version__}, " in cited
    assert f", source {sample_result().about.code[:16]}}}" in cited
    about = dataclasses.replace(sample_result().about, jaxbandits="1.0.9")
    old = dataclasses.replace(sample_result(), about=about)
    assert "version = {1.0.9}" in jb.cite(old) and "date" not in jb.cite(old)


@pytest.mark.parametrize("wrong", ["omega_ub", 3, jb.Horizon(3), jb.Policy.select])
def test_what_is_no_policy(wrong: object) -> None:
    with pytest.raises(jb.InputError, match=r"^policy: .* given; it must be "):
        jb.cite(wrong)


def test_the_citation_file_says_the_same() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == jb.__version__ and citation["title"] in jb.cite()
    assert f"date    = {{{citation['date-released']}}}" in jb.cite()
    references = {x["title"]: x for x in citation["references"]}
    entries = {fields(entry)["title"]: fields(entry) for entry in ENTRIES.values()}
    assert len(references) == len(citation["references"]) and references.keys() == entries.keys()
    for title, entry in entries.items():
        reference = references[title]
        authors = [f"{x['family-names']}, {x['given-names']}" for x in reference["authors"]]
        assert authors == entry["author"].split(" and "), title
        for ours in ("year", "doi", "url", "volume", "journal", "number"):
            theirs = str(reference.get(ours.replace("number", "issue"), ""))
            assert theirs == entry.get(ours, ""), (title, ours)
        assert reference.get("collection-title", "") == entry.get("booktitle", "")
        pages = f"{reference.get('start', '')}--{reference.get('end', '')}"
        assert pages == entry.get("pages", "--")
