"""What pages quote of tails.csv and best.csv: tables between two marks, and sentences; ``python -m`` this writes them.

The two tables of numbers lie in ``docs/findings``: they are the one source, and a test compares the pages with them. A
table stands between ``<!-- omega_ucb_tails: NAME -->`` and ``<!-- end -->``; a sentence is listed in
``docs/findings/quotes.csv`` with its page and the row of tails.csv that its numbers are of.
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.omega_ucb_tails.play import REST

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "findings"
PAPER = 150_000.0
Line = dict[str, str]


def lines(name: str) -> list[Line]:
    """The lines of a table in docs/findings."""
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def one(setting: str, policy: str, rho: float | None = None, budget: float = PAPER) -> Line:
    """The line of tails.csv of a setting of a policy.

    Raises:
        LookupError: there is no such line, or there are several.
    """
    found = [
        line
        for line in lines("omega_ucb_tails.csv")
        if (line["setting"], line["policy"]) == (setting, policy)
        and float(line["budget"]) == budget
        and (rho is None or (line["rho"] != "" and abs(float(line["rho"]) / rho - 1) < 1e-3))
    ]
    if len(found) != 1:
        raise LookupError(f"{setting}, {policy}, ρ = {rho}, {budget:g}: {len(found)} lines")
    return found[0]


def number(text: str) -> str:
    """A regret in whole units, with commas; an interval without an end has ∞."""
    return "∞" if text == "inf" else f"{float(text):,.0f}".replace("-", "−")


def percent(text: str, digits: int = 0) -> str:
    """A share in percent."""
    return f"{100 * float(text):.{digits}f} %"


def interval(line: Line, name: str) -> str:
    """Value and 95 % interval."""
    return f"{number(line[name])} ({number(line[f'{name}_low'])} to {number(line[f'{name}_high'])})"


def by_rho(setting: str) -> Iterator[str]:
    """A line for each ρ at the paper's budget."""
    yield "| ρ | mean | median | 99 % quantile | worst 1 % carry | half of the mean lies in | lock-ins | the least in |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines("omega_ucb_tails.csv"):
        if (line["setting"], line["policy"], float(line["budget"])) == (setting, "ω-UCB", PAPER):
            cells = [interval(line, name) for name in ("mean", "median", "q99")]
            cells += [percent(line["tail_share"]), f"{line['half']} of {int(line['instances']):,} runs"]
            cells += [percent(line["lock_in"], 1), f"{line['least_in']} of {line['groups']} hundreds"]
            yield f"| {float(line['rho']):.3g} | {' | '.join(cells)} |"


def best(budget: float) -> Iterator[str]:
    """The best ρ for each criterion, and the least and largest that are not clearly worse."""
    yield "| | least mean | least median | least 99 % quantile | least worst 1 % | mean at ¼ − at ½ |"
    yield "|---|---|---|---|---|---|"
    found = [line for line in lines("omega_ucb_best.csv") if float(line["budget"]) == budget]
    for setting in dict.fromkeys(line["setting"] for line in found):
        here = [line for line in found if line["setting"] == setting]
        cells = [
            f"{float(line['best_rho']):.2g} ({float(line['from_rho']):.2g} to {float(line['to_rho']):.2g})"
            for line in here
        ]
        cells.append(interval(here[0], "quarter_minus_half"))
        yield f"| {setting} | {' | '.join(cells)} |"


ROWS: tuple[tuple[str, str, float | None], ...] = (
    ("ω-UCB, ρ = ¼", "ω-UCB", 0.25),
    ("ω-UCB, ρ = ½", "ω-UCB", 0.5),
    ("ω-UCB, ρ = 1", "ω-UCB", 1.0),
    ("ω\\*-UCB, ρ = ¼", "ω*-UCB", 0.25),
    ("ω\\*-UCB, ρ = 1", "ω*-UCB", 1.0),
    *((name, name, None) for name in ("BTS", "m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")),
)


def replayed(law: str) -> Iterator[str]:
    """Mean regret of the paper's policies on more instances, with the number of instances."""
    yield f"| | {law}-10 | {law}-50 | {law}-100 |"
    yield "|---|---|---|---|"
    for label, policy, rho in ROWS:
        if policy == "ω*-UCB" if law == "S-Br" else policy in REST:
            continue  # the first is ω-UCB there, the others were played on Bernoulli arms only
        found = [one(f"{law}-{arms}", policy, rho) for arms in (10, 50, 100)]
        cells = [f"{interval(line, 'mean')}, {int(line['instances']):,}" for line in found]
        yield f"| {label} | {' | '.join(cells)} |"


def distributions(policies: tuple[str, ...]) -> Iterator[str]:
    """The law of the regret of policies without ρ, in every setting at the paper's budget."""
    yield "| | | mean | median | 99 % quantile | worst 1 % carry | lock-ins |"
    yield "|---|---|---|---|---|---|---|"
    for policy in policies:
        for law in ("S-Br", "S-GBr", "S-Bt"):
            for arms in (10, 50, 100):
                line = one(f"{law}-{arms}", policy)
                yield (
                    f"| {policy} | {line['setting']} | {interval(line, 'mean')} | {interval(line, 'median')} "
                    f"| {interval(line, 'q99')} | {percent(line['tail_share'])} | {percent(line['lock_in'], 1)} |"
                )


def seldom() -> Iterator[str]:
    """Policies that the paper does not play, beside some that it does: S-Br-10, a tenth of the paper's budget."""
    yield "| | instances | mean | median | lock-ins |"
    yield "|---|---|---|---|---|"
    found = [x for x in lines("omega_ucb_tails.csv") if x["setting"] == "S-Br-10" and float(x["budget"]) == PAPER / 10]
    kept = [x for x in found if x["policy"] != "ω-UCB" or float(x["rho"]) in (0.25, 1.0)]
    for line in sorted(kept, key=lambda x: float(x["mean"])):
        name = line["policy"] + (f", ρ = {float(line['rho']):g}" if line["rho"] else "")
        cells = f"{int(line['instances']):,} | {interval(line, 'mean')} | {interval(line, 'median')}"
        yield f"| {name} | {cells} | {percent(line['lock_in'], 1)} |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    **{f"by ρ, {setting}": functools.partial(by_rho, setting) for setting in ("S-Br-10", "S-Br-50", "S-Bt-10")},
    "best": functools.partial(best, PAPER),
    "best, a tenth": functools.partial(best, PAPER / 10),
    "best, ten times": functools.partial(best, 10 * PAPER),
    **{f"replayed, {law}": functools.partial(replayed, law) for law in ("S-Br", "S-GBr", "S-Bt")},
    "BTS and m-UCB": functools.partial(distributions, ("BTS", "m-UCB")),
    "seldom": seldom,
}
BLOCK = re.compile(r"(<!-- omega_ucb_tails: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def rendered(page: str) -> str:
    """A page with its tables as the numbers say."""
    return BLOCK.sub(lambda m: m[1] + "\n".join(TABLES[m[2]]()) + "\n" + m[4], page)


def quote(entry: Line) -> str:
    """The sentence that a page must have: ``text`` with numbers of a line of tails.csv, or of best.csv (by criterion).

    ``{mean}`` is a regret in whole units, ``{lock_in%}`` a percentage, ``{half#}`` stands as it is.
    """
    if entry["criterion"]:
        wanted = (entry["setting"], entry["criterion"], float(entry["budget"]))
        keys = [(x["setting"], x["criterion"], float(x["budget"])) for x in lines("omega_ucb_best.csv")]
        line = lines("omega_ucb_best.csv")[keys.index(wanted)]
    else:
        rho = float(entry["rho"]) if entry["rho"] else None
        line = one(entry["setting"], entry["policy"], rho, float(entry["budget"]))

    def shown(found: re.Match[str]) -> str:
        name, kind = found[1], found[2]
        return percent(line[name]) if kind == "%" else line[name] if kind == "#" else number(line[name])

    return re.sub(r"\{(\w+)([%#]?)\}", shown, entry["text"])


def main() -> int:
    """Write the tables into the pages."""
    for path in sorted(DOCS.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        if (after := rendered(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(DOCS)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
