"""Pages quote docs/findings/*.csv: tables and sentences say what the numbers say."""

from __future__ import annotations

import re

import pytest

from benchmarks import policies_page
from experiments import published
from experiments.common.pages import cell, found
from experiments.omega_ucb_tails.pages import BLOCK, DOCS, PAPER, TABLES, lines, one, quote, rendered
from jaxbandits.comparison.named_policies import POLICIES

PAGES = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
PAGES["../README.md"] = (DOCS.parent / "README.md").read_text(encoding="utf-8")
QUOTING = [name for name, text in PAGES.items() if BLOCK.search(text)]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("page", QUOTING)
def test_tables_are_those_of_the_numbers(page: str) -> None:
    assert rendered(PAGES[page]) == PAGES[page], "run python -m experiments.omega_ucb_tails.pages"


def test_every_table_is_on_a_page() -> None:
    shown = {found[2] for text in PAGES.values() for found in BLOCK.finditer(text)}
    assert shown == set(TABLES) and len(QUOTING) >= 2


@pytest.mark.parametrize("entry", lines("quotes.csv"), ids=lambda x: f"{x['page']}: {x['text'][:30]}")
def test_sentences_quote_the_numbers(entry: dict[str, str]) -> None:
    assert words(quote(entry)) in words(PAGES[entry["page"]])


def test_a_changed_number_is_seen() -> None:
    page = PAGES["findings/omega_ucb_tails.md"]
    line = one("S-Br-10", "ω-UCB", 0.25)
    wrong = page.replace(f"{float(line['mean']):,.0f} (", "402 (", 1)
    assert wrong != page and rendered(wrong) == rendered(page) != wrong
    with pytest.raises(LookupError):
        one("S-Br-10", "no such policy")


RUNS = published.pages()


@pytest.mark.parametrize("page", RUNS)
def test_tables_of_runs_are_those_of_their_summaries(page: str) -> None:
    assert published.rendered(RUNS[page]) == RUNS[page], "run python -m experiments.published"


@pytest.mark.parametrize("entry", published.quotes(), ids=lambda x: x["item"])
def test_pages_quote_the_rows_of_runs(entry: dict[str, str]) -> None:
    assert published.quoted(entry) in PAGES[entry["page"]]


def test_every_table_of_a_run_is_on_a_page_and_a_changed_number_is_seen() -> None:
    shown = [found[2] for text in RUNS.values() for found in published.BLOCK.finditer(text)]
    assert sorted(shown) == sorted(published.TABLES)
    page = RUNS["reproductions/rcb.md"]
    number = cell(found("rcb", "far: regret: RCB-I, β = 1, B = 316000"))
    wrong = page.replace(number, "1 ± 1", 1)
    assert wrong != page and published.rendered(wrong) == page
    with pytest.raises(LookupError, match=r"rcb\.csv has no row"):
        found("rcb", "no such row")


def test_the_numbers_have_the_sizes_that_the_pages_state() -> None:
    for line in lines("omega_ucb_tails.csv"):
        if line["policy"] == "ω-UCB" and float(line["budget"]) <= PAPER:
            assert int(line["instances"]) >= 1600
        assert float(line["mean_low"]) <= float(line["mean"]) <= float(line["mean_high"])
        assert float(line["median_low"]) <= float(line["median"]) <= float(line["median_high"])
        assert 0 <= float(line["costly_lock_in"]) <= float(line["lock_in"]) <= 1


def test_the_table_of_native_loops_is_that_of_its_file() -> None:
    page = PAGES["benchmarks.md"]
    assert policies_page.rendered(page) == page, "run python -m benchmarks.policies_page"
    ours = {name for name, *_ in policies_page.kept()}
    assert set(POLICIES) <= ours and "`omega_ucb` | 2 |" in page
    assert policies_page.rendered(page.replace("`omega_ucb` | 2 |", "`omega_ucb` | 3 |")) == page
