"""The tables of docs/accelerators.md from ``tables``: python -m benchmarks.ahead_of_time.page."""

from __future__ import annotations

import csv
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
_TURN = "entry/while 0"
_ROUND = f"{_TURN}/while 0/while 0"
CUDA = {
    ("scan-omega-10", _ROUND): "scan, ω-UCB, K = 10: a round",
    ("scan-omega-100", _ROUND): "scan, ω-UCB, K = 100: a round",
    ("scan-bts-10", _ROUND): "scan, BTS, K = 10: a round",
    ("scan-bts-100", _ROUND): "scan, BTS, K = 100: a round",
    ("scan-klucbsc-10", _ROUND): "scan, KL-UCB-SC+, K = 10: a round",
    ("scan-suak-10", _ROUND): "scan, SUAK, K = 10: a round",
    ("leap-omega-100", _ROUND): "leap, ω-UCB, K = 100: aim and land",
    ("leap-omega-100", f"{_ROUND}/branch 1/branch 1"): "leap, ω-UCB, K = 100: a block of 16",
    (
        "leap-omega-100",
        f"{_ROUND}/branch 1/branch 2/while 0",
    ): "leap, ω-UCB, K = 100: a block of 64",
    ("merge-bzoom", _ROUND): "merge, B-Zoom: a step",
    ("merge-bzoom", f"{_ROUND}/while 0"): "merge, B-Zoom: an ordinary round",
    ("merge-bzoom", f"{_ROUND}/while 3"): "merge, B-Zoom: a block",
    ("scan-omega-100", _TURN): "a turn (new lanes to slots, outcomes kept)",
}
# A TPU's compiler nests loops and branches in another way.
TPU = {
    **{key: words for key, words in CUDA.items() if key[0].startswith("scan")},
    ("leap-omega-100", f"{_ROUND}/branch 0"): "leap, ω-UCB, K = 100: aim and land",
    ("leap-omega-100", f"{_ROUND}/branch 0/branch 1"): "leap, ω-UCB, K = 100: a block of 16",
    (
        "leap-omega-100",
        f"{_ROUND}/branch 0/branch 2/while 0",
    ): "leap, ω-UCB, K = 100: a block of 64",
    ("merge-bzoom", _ROUND): "merge, B-Zoom: a step",
}


def rows(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """A table of the command, by case and loop."""
    with open(TABLES / name, newline="") as file:
        return {(row["case"], row["loop"]): row for row in csv.DictReader(file)}


def lines(target: str = "cuda") -> list[str]:
    """A target's table."""
    before, now = rows(f"{target}_before.csv"), rows(f"{target}.csv")

    def cells(row: dict[str, str]) -> tuple[str, str]:
        copies = f" + {row['copies']}" if int(row["copies"]) else ""
        return f"{row['launches']}{copies}", f"{int(row['bytes_per_slot']):,}"

    table = [
        "| loop | launches before | now | bytes a slot before | now |",
        "|---|---|---|---|---|",
    ]
    for place, words in {"cuda": CUDA, "tpu": TPU}[target].items():
        old, new = cells(before[place]), cells(now[place])
        table.append(f"| {words} | {old[0]} | {new[0]} | {old[1]} | {new[1]} |")
    return table


KERNELS = {
    "kernel-omega-10": "ω-UCB, K = 10: two lanes in a warp",
    "kernel-bts-10": "BTS, K = 10: two lanes in a warp",
    "kernel-omega-100": "ω-UCB, K = 100: a lane in a warp",
}


def kernel_lines() -> list[str]:
    """The table of the kernel engine."""
    with open(TABLES / "kernels.csv", newline="") as file:
        facts = {row["case"]: row for row in csv.DictReader(file)}
    columns = "registers", "spilled", "instructions", "fused", "loose", "compile_s"
    table = [
        "| kernel | registers | bytes spilled | instructions a round | fused | may be fused | s to compile |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, words in KERNELS.items():
        numbers = " | ".join(f"{float(facts[case][x]):,g}" for x in columns)
        table.append(f"| {words} | {numbers} |")
    return table


if __name__ == "__main__":
    print("\n".join([*lines("cuda"), "", *kernel_lines(), "", *lines("tpu")]))
