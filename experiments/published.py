"""Tables and sentences of pages from the runs that they show; ``python -m experiments.published``
writes the tables.

The numbers are CSV files of ``docs``: rows of the ``summary.csv`` of a run, as its command wrote
them, the ``sensitivity.csv`` of a sweep, and the tails.csv and best.csv of ``omega_ucb_tails``. A
table of a page says above itself where its cells come from::

    <!-- numbers of suak
    Fig. 1.* => figure1: regret of {0} at T
    Fig. 2.* => figure2: regret of {0} at T => {measured:.0f}
    -->

A line is ``WHERE => ITEM => CELL``, and the first whose ``WHERE`` fits makes a cell; where none does
it is empty. ``WHERE`` is a regular expression of a column's head, or two, ``LABEL @ HEAD``. ``ITEM``
names the row: ``{0}`` is the first label of the line, ``{head}`` the column's; with a format it is
the number in it, ``{0÷2:.3g}`` half of that. A row that may be missing ends in ``?``. ``CELL`` is
made of the row's columns: ``{measured:,.0f}`` has each number in a format, ``{note/REGEX/}`` is a
part, and what stands in ⟨⟩ is left out where something in it is missing. ``A := B`` writes A on the
page for B of the items, ``labels 2`` says that two columns are labels, and ``every REGEX`` that no
such item is left out.

A sentence is listed in a ``quotes.csv`` with the row that its numbers are of. A test compares all
with the rows.
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"<!-- numbers of (\S+)\n(.*?)\n-->\n(.*?)(?=<!-- end -->)", re.DOTALL)
USUAL = "{measured:,.0f} ± {standard_error:,.0f}"

Line = dict[str, str]


# --- rows of runs


@functools.cache
def lines(name: str) -> list[Line]:
    """The lines of a CSV file, ``../findings/knapsacks`` for one not in docs/reproductions."""
    with (DOCS / "reproductions" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def items(name: str) -> dict[str, Line]:
    """The lines of a file by item, or by what tells them apart."""
    if "indistinguishable" in lines(name)[0]:
        return dict(_best_values(lines(name)))
    return {_item(line): line for line in lines(name)}


def _item(line: Line) -> str:
    if "item" in line:
        return line["item"]
    policy = f"best by {line['criterion']}" if "criterion" in line else line["policy"]
    rho = f", ρ = {float(line['rho']):.3g}" if line.get("rho") else ""
    return f"{line['setting']}: {policy}{rho}, B = {float(line['budget']):.0f}"


def _best_values(points: list[Line]) -> Iterator[tuple[str, Line]]:
    """The best value of a parameter in each place of a sweep, and those not told apart from it."""
    places: dict[str, list[Line]] = {}
    for point in points:
        at, policy, budget = point["environment"], point["policy"], float(point["budget"])
        places.setdefault(f"{at}: {policy}", []).append(point)
        places.setdefault(f"{at}, {budget:,.0f}: {policy}", []).append(point)
    (parameter,) = {"rho", "alpha"} & points[0].keys()
    for item, of in places.items():
        values = [float(point[parameter]) for point in of]
        like = [i for i, point in enumerate(of) if "yes" in (point["best"], point["indistinguishable"])]  # fmt: skip
        best = next(i for i, point in enumerate(of) if point["best"] == "yes")
        is_edge, has_gaps = best in (0, len(of) - 1), len(like) <= like[-1] - like[0]
        reach = f"{values[like[0]]:.2g} to {values[like[-1]]:.2g}" + ", with gaps" * has_gaps
        text = f"{values[best]:.3g}" + ", edge of the grid" * is_edge
        yield item, {"value": text, "reach": "no other" if like[0] == like[-1] else reach}


def lookup(name: str, item: str) -> Line:
    """A row that must be there (else a LookupError)."""
    if item not in items(name):
        raise LookupError(f"{name}.csv has no row {item!r}")
    return items(name)[item]


# --- a cell, a sentence

_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?|-?inf")
_FIELD = re.compile(r"\{(\w+)(?:/([^/]*)/)?(?::([^{}]*))?\}")


def _part(text: str, regex: str | None) -> str:
    if regex is None:
        return text
    found = re.search(regex, text)
    if not found:
        raise LookupError(f"no {regex!r} in {text!r}")
    return found[1]


def written(text: str, form: str) -> str:
    """Every number of a text in a format, with a minus sign.

    Beside Python's: ``.1%`` and ``.1p`` (without its sign) are percent, ``.3s`` so many digits but
    no exponent, ``t`` as it stands, ``list`` with commas between.
    """

    def number(match: re.Match[str]) -> str:
        x, digits = float(match[0].replace(",", "")), form[:-1]
        if form[-1] in "%p":
            return f"{100 * x:{digits}f}" + " %" * (form[-1] == "%")
        if form[-1] == "s":
            return f"{x:{digits}g}" if x < 1000 else f"{x:.0f}"
        return re.sub("^-", "−", "∞" if x == float("inf") else f"{x:{form}}")

    if form in ("t", "list"):
        return text.replace("-", "−") if form == "t" else text.replace(" ", ", ")
    return _NUMBER.sub(number, text.removeprefix("difference "))


def filled(template: str, row: Line) -> str:
    """A cell or a sentence with the numbers of its row; ``{bold}`` marks a verdict that is no."""

    def field(match: re.Match[str]) -> str:
        name, part, form = match.groups()
        if name == "bold":
            return "**" if row["verdict"] == "no" else ""
        text = _part(row[name], part)
        return written(text, form) if form else text

    def optional(match: re.Match[str]) -> str:
        is_known = all(row[x[1]] for x in _FIELD.finditer(match[1]))
        try:
            return _FIELD.sub(field, match[1]) if is_known else ""
        except LookupError:
            return ""

    return _FIELD.sub(field, re.sub("⟨(.*?)⟩", optional, template))


# --- a table


class Rule(NamedTuple):
    """A line above a table."""

    label: str
    head: str
    item: str
    cell: str

    @classmethod
    def of(cls, line: str) -> Rule:
        """``WHERE => ITEM => CELL``, or without the last."""
        where, item, *cell = line.split(" => ")
        label, _, head = where.rpartition(" @ ")
        return cls(label or ".*", head, item, cell[0] if cell else USUAL)

    def fits(self, labels: list[str], head: str) -> bool:
        """Whether it makes the cell there."""
        of_line = any(re.fullmatch(self.label, label) for label in labels)
        return of_line and re.fullmatch(self.head, head) is not None

    def item_at(self, places: Line) -> str:
        """The item that it names, for the labels of a place."""

        def text(match: re.Match[str]) -> str:
            name, divisor, form = match.groups()
            if not form:
                return places[name]
            number = float(_part(places[name], r"(\d[\d,.]*)").replace(",", ""))
            return f"{number / float(divisor or 1):{form}}"

        whole = re.sub(r"\{(\w+)(?:÷([\d.]+))?(?::([^{}]+))?\}", text, self.item)
        return whole.removesuffix("?")


def cells(line: str) -> list[str]:
    """Those of a line of a table, with the spaces around them."""
    return re.split(r"(?<!\\)\|", line)[1:-1]


def made_anew(source: str, spec: str, table: str) -> str:
    """A table with its cells made from the rows."""
    rules = [Rule.of(line) for line in spec.splitlines() if " => " in line]
    names = [line.split(" :=") for line in spec.splitlines() if " :=" in line]
    count = int(_part(spec + "\nlabels 1", r"(?m)^labels (\d)$"))

    def key(text: str) -> str:
        for on_page, in_items in names:
            text = text.replace(on_page, in_items.strip())
        return text.strip()

    top, dashes, *body = table.splitlines()
    head, above = [cell.strip() for cell in cells(top)], [""] * count
    used, made = set(), []
    for line in body:
        old = cells(line)
        labels = [x.strip() or y for x, y in zip(old, above[:count], strict=False)]
        above, new = labels, old[:count]
        for name, cell in zip(head[count:], old[count:], strict=True):
            text = ""
            if rule := next((rule for rule in rules if rule.fits(labels, name)), None):
                places = {"head": key(name)} | {str(i): key(x) for i, x in enumerate(labels)}
                wanted = rule.item_at(places)
                used.add(wanted)
                if not rule.item.endswith("?") or wanted in items(source):
                    text = filled(rule.cell, lookup(source, wanted))
            new.append(cell if text == cell.strip() else f" {text} ")
        made.append(f"|{'|'.join(new)}|")
    for every in re.findall(r"(?m)^every (.+)$", spec):
        if left := [
            item for item in items(source) if re.fullmatch(every, item) and item not in used
        ]:
            raise LookupError(f"left out of a table of {source}: {left}")
    return "\n".join([top, dashes, *made, ""])


def pages() -> dict[str, str]:
    """All pages that have such a table."""
    paths = sorted(DOCS.rglob("*.md"))
    texts = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in paths}
    return {name: text for name, text in texts.items() if BLOCK.search(text)}


def rendered(page: str) -> str:
    """A page with its tables made anew from the rows."""
    return BLOCK.sub(lambda m: m[0].removesuffix(m[3]) + made_anew(*m.groups()), page)


def quote(entry: Line) -> str:
    """The sentence that a page must have, with the numbers of its row.

    ``{measured}`` and ``{error}`` are in whole units, or as the row has them below 10.
    """
    row, text = lookup(entry["summary"], entry["item"]), entry["text"]
    if "measured" in row:
        form = "t" if abs(float(row["measured"])) < 10 else ",.0f"
        text = text.replace("{measured}", f"{{measured:{form}}}")
        text = text.replace("{error}", f"{{standard_error:{form}}}")
    return filled(text, row)


def main() -> int:
    """Write the tables into the pages."""
    for name, before in pages().items():
        if (after := rendered(before)) != before:
            (DOCS / name).write_text(after, encoding="utf-8")
            print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
