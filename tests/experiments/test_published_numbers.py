"""Pages quote docs/findings/*.csv: tables and sentences say what the numbers say."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import policies_page
from experiments import published
from experiments.published import DOCS, lines, lookup, pages, quote, rendered, written
from jaxbandits.apps.comparison.plan import POLICIES

PAGES = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
PAGES["../README.md"] = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("page", pages())
def test_tables_are_those_of_the_numbers(page: str) -> None:
    assert rendered(PAGES[page]) == PAGES[page], "run python -m experiments.published"


def test_every_table_of_numbers_says_where_its_cells_come_from() -> None:
    texts = [text for text in pages().values()]
    begun, ended = (sum(text.count(x) for text in texts) for x in ("<!-- numbers of", "<!-- end"))
    found = sum(len(published.BLOCK.findall(text)) for text in texts)
    assert begun == ended == found == 50 and len(texts) == 9


@pytest.mark.parametrize("entry", lines("quotes"), ids=lambda x: x["item"])
def test_sentences_quote_the_numbers(entry: dict[str, str]) -> None:
    assert words(quote(entry)) in words(PAGES[entry["page"]])


def claims() -> list[tuple[str, str, str, str]]:
    """(paper, claim, verdict, by) of every line of the tables of claims."""
    table, paper = [], ""
    for line in PAGES["reproductions/claims.md"].splitlines():
        if link := re.match(r"\[Page\]\((\w+)\.md\)", line):
            paper = link[1]
        elif paper and line.startswith("| ") and not line.startswith("| where"):
            _, claim, verdict, by = (
                cell.strip() for cell in re.split(r"(?<!\\) \| ", line.strip("| "))
            )
            table.append((paper, claim, verdict, by))
    return table


def test_verdicts_of_claims_are_those_of_the_rows() -> None:
    judged = 0
    for paper, claim, verdict, by in claims():
        rows = {entry["item"]: entry["verdict"] for entry in lines(paper)}
        named = re.findall(r"`([^`]+)`", by) if verdict in ("yes", "no", "unclear") else []
        assert bool(named) == (verdict != "not tested"), claim
        assert by and "could be" not in by, f"{claim}: neither judged nor listed with a reason"
        assert {name: rows.get(name) for name in named} == dict.fromkeys(named, verdict), claim
        judged += bool(named)
    assert judged >= 100


def test_claims_are_counted_by_paper_and_verdict() -> None:
    found = Counter((name, verdict) for paper, _, verdict, _ in claims() for name in (paper, "all"))
    page = PAGES["reproductions/claims.md"]
    rows = dict(re.findall(r"(?m)^\| .*?(\w+)(?:\.md\))? \|((?: \d+ \|){5})$", page))
    assert {paper for paper, _ in found} == rows.keys() and len(rows) == 6
    for paper, numbers in rows.items():
        counts = [found[paper, verdict] for verdict in ("yes", "no", "unclear", "not tested")]
        assert [int(x) for x in re.findall(r"\d+", numbers)] == [sum(counts), *counts], paper


def test_a_changed_number_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mean = lookup("../findings/omega_ucb_tails", "S-Br-10: ω-UCB, ρ = 0.25, B = 150000")["mean"]
    far = lookup("rcb", "far: regret: RCB-I, β = 1, B = 316000")["measured"]
    changed = {
        "findings/omega_ucb_tails.md": f"{float(mean):,.0f} (",
        "reproductions/rcb.md": f"| {float(far):,.0f} ± ",
    }
    for page, number in changed.items():
        wrong = PAGES[page].replace(number, number.replace(",", "").replace("7", "8"), 1)
        assert wrong != PAGES[page] and rendered(wrong) == PAGES[page]
    (tmp_path / "page.md").write_text(wrong, encoding="utf-8")  # the command mends a page
    monkeypatch.setattr(published, "DOCS", tmp_path)
    published.main()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == PAGES[page]


def test_numbers_are_written_as_pages_have_them() -> None:
    forms = {",.0f": "-1234.5 to inf", ".1%": "0.0625", ".1p": "0.0625", ".3s": "1994.4", "t": "-1"}
    made = [written(text, form) for form, text in forms.items()]
    assert made == ["−1,234 to ∞", "6.2 %", "6.2", "1994", "−1"]
    assert written("difference -57.4", "+,.0f") == "−57" and written("1.5e-06", ".1g") == "2e-06"


def test_the_table_of_native_loops_is_that_of_its_file() -> None:
    page = PAGES["benchmarks.md"]
    assert policies_page.rendered(page) == page, "run python -m benchmarks.policies_page"
    ours = {row["policy"] for row in policies_page.native_rows()}
    assert set(POLICIES) <= ours
    changed = re.sub(r"(\| `omega_ucb` \|) [\d.]+", r"\1 99", page)
    assert changed != page and policies_page.rendered(changed) == page


def test_the_speed_of_the_leap_is_told_with_its_policy_as_it_was_measured() -> None:
    def table(page: str, head: str) -> tuple[str, list[list[str]]]:
        above, below = PAGES[page].split(head)
        rows = below.split("\n\n")[0].splitlines()[2:]
        return above.split("\n\n")[-2], [
            [cell.strip() for cell in row.strip("| ").split("|")] for row in rows
        ]

    caption, readme_rows = table("../README.md", "| arms | `leap` engine |")
    page_caption, measured = table("benchmarks.md", "| K | leap | scan | textbook |")
    assert "ω-UCB with ρ = ¼" in caption and "ω-UCB, ρ = ¼" in page_caption
    for (arms, leap, scan, textbook, native, numpy, ratio), page_row in zip(
        readme_rows, measured, strict=True
    ):
        assert [arms, leap, scan, textbook, numpy, native] == page_row[:6]
        assert ratio == f"{float(leap) / float(scan):.2g}"
