"""What the titles of an arms file's columns say, and a guess which column is what."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence

from jaxbandits.apps.comparison import numerals
from jaxbandits.tools import brief, quoted

# What a column may be, and the titles that say so by themselves, which are keys of --columns, too
PLAIN = {
    "name": "name arm",
    "pulls": "pulls clicks",
    "reward": "reward conversions conversion",
    "cost": "cost spent spend",
    "mean_reward": "mean_reward reward_mean",
    "mean_cost": "mean_cost cost_mean",
    "instance": "instance",
    "time": "time timestamp date day week month",
    "over": "over",
}
ROLES = {title: role for role, titles in PLAIN.items() for title in titles.split()}
AMOUNTS = ["pulls", "reward", "cost"]
# What a file of each kind must tell of names
KINDS = {"counts": AMOUNTS, "means": ["mean_reward", "mean_cost"], "log": ["reward", "cost"]}
_GUESSES = {  # parts of titles, the likeliest first
    "pulls": "click klick klik clic pull visit sess request impr",
    "reward": "conv konv konw order purch käuf achat sale lead result sign reward score correct accept clicked",
    "cost": "spen cost coût kost kosz amount usd eur",
}
# Of a mean, rate or price, which is no total; of ids. An underscore ends a word
OF_ONE = re.compile(
    r"(?i)(?<![^\W_])(?:per|pro|par|por|avg|average|durchschn|mean|e?cp[a-z]|ctr|rpm|epc|roas|roi|acos|ø)(?![^\W_])"
    r"|rate(?![^\W_])|%|(?:cost|kosten|co[uû]t|custo|spend|value|wert)[^/]*"
    r"/ ?(?:con|cost|kost|cli|kli|res|lead|sale|order|purch|acq|impr|day|tag)"
)
IDS = re.compile(r"(?i)(?<![^\W_])(id|nr|no)(?![^\W_])")


def folded(text: str) -> str:
    """Without what the eye does not tell apart: case, blanks, forms of accents, zero width."""
    unseen = dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))
    return " ".join(unicodedata.normalize("NFKC", text).translate(unseen).casefold().split())


def role_of(title: str) -> str:
    """The role that a title says by itself; '' for none."""
    return ROLES.get(folded(title).replace(" ", "_"), "")


def option(name: str, text: str) -> str:
    """What to write in a command."""
    return f"--{name}{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"


def guesses(
    samples: Mapping[str, Sequence[str]], rows: int, given: Mapping[str, str]
) -> dict[str, str]:
    """A title for each role, by the different cells of so many rows; "…" where none is plausible."""
    empty = {*numerals.NOTHING, *numerals.YES}
    cells = {x: [y for y in texts if y.casefold() not in empty] for x, texts in samples.items()}
    numbers = [x for x in cells if samples[x] and all(map(numerals.is_number, cells[x]))]
    totals = [x for x in numbers if not OF_ONE.search(x) and "%" not in "".join(samples[x])]
    words = [x for x in samples if x not in numbers and not "".join(samples[x])[:1].isdigit()]
    codes = [x for x, texts in cells.items() if len(texts) > 1]
    codes = [x for x in codes if all(re.fullmatch(numerals.SIGN, y) for y in cells[x])]
    words = [x for x in words if role_of(x) in ("", "name") and x not in codes]
    words = [x for x in words if not IDS.search(x)]

    def best(role: str, titles: Sequence[str]) -> str:
        parts = _GUESSES[role].split()
        return next((x for part in parts for x in titles if part in folded(x)), "…")

    pulls = best("pulls", [x for x in totals if {*cells[x]} - {"0", "1"}])
    again = [x for x in words if 2 * len(samples[x]) <= rows]
    is_log = bool(again) and pulls == given.get("pulls", "…") == "…"
    kind = "means" if given.keys() & {*KINDS["means"]} else "log" if is_log else "counts"
    titles = again if is_log else words
    name = max(titles, key=lambda x: (role_of(x) == "name", len(samples[x])), default="…")
    cost = best("cost", numbers if is_log else totals)
    reward = best("reward", [x for x in totals if x not in (pulls, cost)])
    found = {"name": name, "pulls": pulls, "reward": reward, "cost": cost}
    apart = {"instance": codes[0]} if codes else {}
    return {role: found.get(role, "…") for role in ("name", *KINDS[kind])} | apart | {**given}


def question(cells: Mapping[str, Sequence[str]], guess: Mapping[str, str], command: str) -> str:
    """What the columns are, with three samples each, and the command with a guess in each place."""
    seen = [f"{quoted(brief(x, 60))} ({brief(', '.join(y[:3]), 60)})" for x, y in cells.items()]
    said = shlex.quote(",".join(f"{role}={title}" for role, title in guess.items()))
    return (
        f"The columns are {brief('; '.join(seen), 4000)}. Name them; this is a guess: {command} --columns {said} "
        "(without pulls a row is a pull; means are mean_reward and mean_cost; a number as cost is what every pull "
        "costs; with a column for each arm: --wide)"
    )
