"""A header that lacks columns: what is missing, and which of its titles may be meant."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence

from jaxbandits.comparison._reading.columns import PLAIN, Asked, formats, missing_roles, position, value_position
from jaxbandits.comparison._reading.words import key, ranks, title
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief

_NEAR = 0.75
_MOST_TITLES = 200  # that are compared; a file of more columns is none of arms
_LONGEST_OPTION = 200
_SAMPLE = 20
_ROLES = {  # whose words are near to a role of a kind
    "reward": ("reward", "conversions", "value"),
    "cost": ("cost", "spent"),
    "spent": ("spent", "cost"),
    "conversions": ("conversions", "value", "reward"),
}
_NUMBER = re.compile(r"[^\w]*[A-Z]{0,3}\s*\d[\d.,'’\s]*[^\w%]*[A-Z]{0,3}", re.IGNORECASE)


def no_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file in whose first rows (of each separator) no header was found."""
    rows, at = _likeliest(heads, asked)
    header = [" ".join(cell.split()) for cell in rows[at]]
    if problem := _unknown_title(header, asked):
        return problem
    kind, missing, found = _nearest(header, rows[at + 1 :], asked)
    guessed = _guessed(header, rows[at + 1 :], missing, found) if len(header) <= _MOST_TITLES else {}
    return InputError(
        f"{source}: columns missing for the nearest format ({kind}): {', '.join(missing)}; "
        f"the header is {shown(','.join(title.lower() for title in header))}; "
        f"it must have the columns{' separated by commas' if len(header) == 1 else ''} of {formats()}"
        + _advice(header, missing, found, guessed, asked)
    )


def _nearest(
    header: Sequence[str], rows: Sequence[Sequence[str]], asked: Asked
) -> tuple[str, list[str], dict[str, int]]:
    """The kind with fewest missing columns; where no title speaks and three columns are numbers, counts."""
    kind, missing, found = missing_roles(header, asked)
    if not set(found) - {"name"} and sum(bool(cells) for cells in _numeric(header, rows).values()) > 2:
        return "counts", [role for role in PLAIN["counts"] if role not in found], found
    return kind, missing, found


def _numeric(header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """Of each column the first cells, if they are numbers and its title is not known for something else."""
    known = {
        word for role in ("rate", "price", "per_result", "roas", "time") for rank in ranks()[role] for word in rank
    }
    found = {}
    for i, text in enumerate(header[:_MOST_TITLES]):
        cells = [row[i] for row in rows[:_SAMPLE] if i < len(row) and row[i]]
        if cells and title(text).key not in known and all(_NUMBER.fullmatch(cell) for cell in cells):
            found[i] = cells
    return found


def _likeliest(heads: Sequence[Sequence[Sequence[str]]], asked: Asked) -> tuple[Sequence[Sequence[str]], int]:
    """The rows, and which is the header: with fewest missing columns, else with most words; the first of equals."""

    def lacks(cells: Sequence[str]) -> tuple[float, int]:
        kind, missing, _ = missing_roles(cells, asked)
        words = sum(not _NUMBER.fullmatch(cell) for cell in cells if cell)
        return len(missing) / len(PLAIN[kind]), -min(words, 3)

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


def _advice(
    header: Sequence[str], missing: Sequence[str], found: Mapping[str, int], guessed: Mapping[str, int], asked: Asked
) -> str:
    """The option that would do, as far as it can be guessed."""
    if not guessed and not found:
        return ""
    said = {role: header[i] for role, i in guessed.items()}
    likely = "; ".join(f"{role} may be {shown(text)}" for role, text in said.items())
    told = {**asked.columns, **said}
    left = [role for role in missing if role not in said]
    if left:
        told |= {role: "1" if role in ("spent", "cost") else "…" for role in left}
    option = f"--columns {shlex.quote(','.join(f'{role}={text}' for role, text in told.items()))}"
    if len(option) > _LONGEST_OPTION or not option.isprintable():
        option = "--columns"
    free = "" if not {"spent", "cost"} & set(left) else " (a number as cost: every pull costs that)"
    return f"; {likely + '; ' if likely else ''}say {option}{free}"


def _guessed(
    header: Sequence[str], rows: Sequence[Sequence[str]], missing: Sequence[str], found: Mapping[str, int]
) -> dict[str, int]:
    """For each missing role the column that is probably meant: by its title, else by what stands below it."""
    taken, guessed = set(found.values()), dict[str, int]()
    for look in (_by_title, _by_content):
        for role in missing:
            if role not in guessed:
                at = look(role, header, rows, taken)
                if at is not None:
                    guessed[role] = at
                    taken.add(at)
    return guessed


def _by_title(role: str, header: Sequence[str], rows: Sequence[Sequence[str]], taken: set[int]) -> int | None:
    words = [word for name in _ROLES.get(role, (role,)) for rank in ranks()[name] for word in rank]
    best, which = 0.0, None
    for i, text in enumerate(header):
        own = title(text).key
        if i in taken or not own:
            continue
        parts = {key(part) for part in re.split(r"\W+|_", text)}
        near = difflib.get_close_matches(own, words, n=1, cutoff=_NEAR)
        score = difflib.SequenceMatcher(None, own, near[0]).ratio() if near else 0.8 * bool(parts & set(words))
        if score > best:
            best, which = score, i
    return which


def _by_content(role: str, header: Sequence[str], rows: Sequence[Sequence[str]], taken: set[int]) -> int | None:
    """A name is text, clicks are the largest whole numbers, other numbers come as they stand."""
    cells = {i: own for i, own in _numeric(header, rows).items() if i not in taken}
    numeric = list(cells)
    if role == "name":
        free = [i for i, text in enumerate(header) if text and i not in taken and i not in cells]
        return next((i for i in free if any(i < len(row) and row[i] for row in rows[:_SAMPLE])), None)
    if role == "clicks":
        whole = [i for i in numeric if all(re.fullmatch(r"\d{1,3}([.,'’\s]?\d{3})*|\d+", c) for c in cells[i])]
        return max(whole, key=lambda i: max(float(re.sub(r"\D", "", c)) for c in cells[i]), default=None)
    if role in ("spent", "cost"):
        return next((i for i in numeric if any(re.search(r"[.,]\d{1,2}\b|[^\d\s.,'’]", c) for c in cells[i])), None)
    return next(iter(numeric), None)
