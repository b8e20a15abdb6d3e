"""A header that lacks columns: what is missing, and which of its titles may be meant."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbandits.comparison._reading.columns import COSTS, PLAIN, Asked, formats
from jaxbandits.comparison._reading.numbers import NEGATIVE, NUMBER, is_nothing, read_numbers
from jaxbandits.comparison._reading.usual import missing_roles, position, value_position
from jaxbandits.comparison._reading.words import ranks, title
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief

_NEAR = 0.75
_MOST_TITLES = 200  # that are compared; a file of more columns is none of arms
_LONGEST = 560  # of a message
_SAMPLE = 20
_ROLES = {  # whose words are near to a role of a kind
    "reward": ("reward", "conversions", "value"),
    "cost": ("cost", "spent"),
    "spent": ("spent", "cost"),
    "conversions": ("conversions", "value", "reward"),
}
_OF_ONE = re.compile(
    r"\b(?:per|pro|par|por|je|each|apiece|unit)\b|/|% (?:of|von|de)\b|\((?:mean|avg|average)\b", re.IGNORECASE
)  # no total, whatever it is
_NUMBER = re.compile(r"[^\w]*[A-Z]{0,3}\s*\d[\d.,'’\s]*[^\w]*[A-Z]{0,3}", re.IGNORECASE)


def no_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file in whose first rows (of each separator) no header was found."""
    rows, at = _likeliest(heads, asked)
    header = [" ".join(cell.split()) for cell in rows[at]]
    if problem := _unknown_title(header, asked):
        return problem
    kind, found, guessed = _nearest(header, rows[at + 1 :], asked)
    missing = [role for role in PLAIN[kind] if role not in found]
    said = (
        f"{source}: columns missing for the nearest format ({kind}): {', '.join(missing)}; "
        f"the header is {shown(','.join(title.lower() for title in header))}; "
        f"it must have the columns{' separated by commas' if len(header) == 1 else ''} of {formats()}"
    )
    advice = _advice(header, missing, guessed, asked) if guessed or found else ("",)
    return InputError(said + next((text for text in advice if len(said + text) <= _LONGEST), ""))


def _nearest(
    header: Sequence[str], rows: Sequence[Sequence[str]], asked: Asked
) -> tuple[str, dict[str, int], dict[str, int]]:
    """The kind that lacks least, with what its titles may mean: (kind, columns found, columns guessed)."""
    best: tuple[float, str, dict[str, int], dict[str, int]] | None = None
    numbers = len(_numeric(header, rows))
    for kind in ("means", "counts", "log"):
        missing, found = missing_roles(header, asked, kind)
        few = len(header) <= _MOST_TITLES
        titled = _guessed(header, rows, missing, found, (_by_title,)) if few else {}
        guessed = _guessed(header, rows, missing, found, (_by_title, _by_content)) if few else {}
        lacks = (len(missing) - 0.2 * len(titled)) / len(PLAIN[kind])
        silent = not set(found) - {"name"}  # then what stands below speaks
        counted = kind == "counts" and numbers > 2
        a_rate = kind == "means" and numbers == 2 and any(own.percent for own in _numeric(header, rows).values())
        speaks = 0.3 * ((counted and silent) or a_rate) + 0.01 * (
            counted or (kind == "log" and _repeat(header, rows, guessed | found))
        )
        if best is None or lacks - speaks < best[0]:
            best = lacks - speaks, kind, found, guessed
    assert best is not None
    return best[1:]


def _repeat(header: Sequence[str], rows: Sequence[Sequence[str]], at: Mapping[str, int]) -> bool:
    """Whether names stand in several rows, as in a log."""
    if "name" not in at or len(header) <= at["name"]:
        return False
    names = [row[at["name"]] for row in rows if at["name"] < len(row)]
    return len(set(names)) < len(names)


@dataclass(frozen=True)
class _Column:
    """What the first cells of a column of numbers look like."""

    percent: bool
    flags: bool
    whole: bool
    money: bool
    largest: float


def _numeric(header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[int, _Column]:
    """The columns of numbers (or of yes and no) whose titles are not known for something else."""
    known = {word for role in ("price", "per_result", "roas", "time") for rank in ranks()[role] for word in rank}
    found = {}
    for i, text in enumerate(header[:_MOST_TITLES]):
        cells = [row[i] for row in rows[:_SAMPLE] if i < len(row) and not is_nothing(row[i])]
        if not text or not cells or title(text).key in known:
            continue
        (numbers,), style, _ = read_numbers([cells], [False], ",")
        if np.isin(numbers.state, (NUMBER, NEGATIVE)).all():
            flags = set(numbers.values) <= {0.0, 1.0}
            whole = all(re.fullmatch(r"\d{1,3}([.,'’\s]?\d{3})*|\d+", cell) for cell in cells)
            money = bool(style.symbol or title(text).unit)
            found[i] = _Column(bool(numbers.percent.any()), flags, whole, money, float(numbers.values.max()))
    return found


def _likeliest(heads: Sequence[Sequence[Sequence[str]]], asked: Asked) -> tuple[Sequence[Sequence[str]], int]:
    """The rows, and which is the header: with fewest missing columns, else with most words; the first of equals."""

    def lacks(cells: Sequence[str]) -> tuple[float, int]:
        lacks = min(len(missing_roles(cells, asked, kind)[0]) / len(PLAIN[kind]) for kind in ("means", "counts", "log"))
        words = sum(not _NUMBER.fullmatch(cell) for cell in cells if cell)
        return lacks, -min(words, 3)

    found = [(lacks(cells), n, at) for n, rows in enumerate(heads) for at, cells in enumerate(rows)]
    _, n, at = min(found)
    return heads[n], at


def _unknown_title(header: Sequence[str], asked: Asked) -> InputError | None:
    """The error of a title given by the user that is not there."""
    for role, text in asked.columns.items():
        if position(text, header) is None:
            return bad("columns", f"{role}={text}", f"a title of the file: {_listed(header, text)}")
    if asked.reward is not None and value_position(asked.reward, header) is None:
        return bad("reward", asked.reward, f"a title of the file: {_listed(header, asked.reward)}")
    return None


def _listed(header: Sequence[str], text: str) -> str:
    near = difflib.get_close_matches(
        text.casefold()[:100], [x.casefold() for x in header[:_MOST_TITLES]], n=1, cutoff=0.5
    )
    meant = next((x for x in header if near and x.casefold() == near[0]), "")
    titles = brief(", ".join(filter(None, header)))
    return titles + (f"; did you mean {shown(meant)}?" if meant else "")


def _advice(header: Sequence[str], missing: Sequence[str], guessed: Mapping[str, int], asked: Asked) -> tuple[str, ...]:
    """What to say, as far as it can be guessed; the fullest text first."""
    said = {role: header[i] for role, i in guessed.items()}
    left = [role for role in missing if role not in said]
    meant = [f"{role} may be {shown(text)}" for role, text in said.items()]
    priced = [shown(text) for text in header if "spent" in left and _OF_ONE.search(text)]
    likely = "; ".join(meant + [f"if {text} is what one click costs, call it 'price per click'" for text in priced[:1]])
    told = {**asked.columns, **said, **{role: "1" if role in COSTS else "…" for role in left}}
    option = f"say --columns {shlex.quote(','.join(f'{role}={text}' for role, text in told.items()))}"
    free = "" if not set(COSTS) & set(left) else " (a number as cost: every pull costs that)"
    bare = "; say with --columns which is which"
    if not option.isprintable():
        return (bare,)
    return (f"; {likely}; {option}{free}", f"; {option}{free}", bare) if likely else (f"; {option}{free}", bare)


def _guessed(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    missing: Sequence[str],
    found: Mapping[str, int],
    looks: Sequence[Callable[[str, Sequence[str], Sequence[Sequence[str]], set[int]], int | None]],
) -> dict[str, int]:
    """For each missing role the column that is probably meant: by its title, else by what stands below it."""
    taken, guessed = set(found.values()), dict[str, int]()
    for look in looks:
        for role in sorted(missing, key=("name", "clicks", "spent", "cost", "mean_reward").__contains__, reverse=True):
            if role not in guessed:
                totals = role in ("clicks", "spent", "conversions", "cost")
                priced = {i for i, text in enumerate(header) if totals and _OF_ONE.search(text)}
                at = look(role, header, rows, taken | priced)
                if at is not None:
                    guessed[role] = at
                    taken.add(at)
    return guessed


def _by_title(role: str, header: Sequence[str], rows: Sequence[Sequence[str]], taken: set[int]) -> int | None:
    words = [word for name in _ROLES.get(role, (role,)) for rank in ranks()[name] for word in rank]
    best, which = 0.0, None
    for i, text in enumerate(header):
        own, others = title(text).key, title(text).others
        if i in taken or not own or not _elsewhere(role).isdisjoint((own, *others)):
            continue
        near = difflib.get_close_matches(own, words, n=1, cutoff=_NEAR)
        ends = any(own.endswith(word) for word in words if len(word) > 3)  # "Ads Total Clicks"
        score = difflib.SequenceMatcher(None, own, near[0]).ratio() if near else 0.76 * ends
        if score > best:
            best, which = score, i
    return which


def _elsewhere(role: str) -> set[str]:
    """Words that mean something else: a rate or a price is no total, a time is nothing of all that, revenue no cost."""
    others = ("price", "per_result", "roas", "time", "rate") if role not in ("mean_reward", "mean_cost") else ("time",)
    earned = ("value", "conversions") if role in COSTS else ()
    return {word for other in (*others, *earned) for rank in ranks()[other] for word in rank}


def _words_of(text: str) -> tuple[str, ...]:
    return title(text).key, *title(text).others


def _by_content(role: str, header: Sequence[str], rows: Sequence[Sequence[str]], taken: set[int]) -> int | None:
    """A name is text, clicks are the largest whole numbers, rates in percent; other numbers come as they stand."""
    numbers = _numeric(header, rows)
    if role == "name":
        free = [i for i, text in enumerate(header) if text and i not in taken and i not in numbers]
        return next((i for i in free if any(i < len(row) and row[i] for row in rows[:_SAMPLE])), None)
    columns = {i: own for i, own in numbers.items() if i not in taken and own.percent == (role == "mean_reward")}
    if role == "mean_reward" and not columns:
        columns = {i: own for i, own in numbers.items() if i not in taken}
    if role == "clicks":
        return max((i for i in columns if columns[i].whole), key=lambda i: columns[i].largest, default=None)
    if role in ("spent", "cost", "mean_cost"):
        amounts = {i: own for i, own in columns.items() if _elsewhere(role).isdisjoint(_words_of(header[i]))}
        columns = {i: own for i, own in amounts.items() if own.money or not own.whole}  # others count something
        order = sorted(columns, key=lambda i: (not columns[i].money, columns[i].whole, columns[i].flags))
    else:
        # no more results than pulls
        pulls = (
            [numbers[i].largest for i in taken if i in numbers and numbers[i].whole] if role == "conversions" else []
        )
        columns = {i: own for i, own in columns.items() if own.largest <= max(pulls, default=own.largest)}
        order = sorted(columns, key=lambda i: (not columns[i].flags, columns[i].money, not columns[i].whole))
    return next(iter(order), None)
