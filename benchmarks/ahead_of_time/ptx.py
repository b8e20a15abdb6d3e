"""Reading the one kernel of ``engine="kernel"`` as the compiler wrote it: registers, spills, what
one round executes, and whether a product and a sum may become one operation.
"""

from __future__ import annotations

import glob
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Kernel(NamedTuple):
    """Facts of a compiled kernel.

    Attributes:
        registers: of a thread.
        spilled: bytes that did not fit into them.
        instructions: of the loop over rounds, one warp's; 0 without nvdisasm.
        fused: products and sums that are one operation: those of a logarithm's series, as in scan.
        loose: products and sums that ptxas may still join, which scan's bits would not survive.
    """

    registers: int
    spilled: int
    instructions: int
    fused: int
    loose: int


def tool(name: str) -> str | None:
    """A program of the CUDA toolkit: on PATH or from its wheel."""
    wheels = glob.glob(f"{sys.prefix}/lib/python3*/site-packages/nvidia/*/bin/{name}")
    return shutil.which(name) or next(iter(wheels), None)


def kernel_in(folder: Path) -> Kernel | None:
    """The kernel that XLA has dumped there as PTX; None if it has not (since jax 0.12)."""
    for file in folder.glob("*.ptx"):
        text = file.read_text()
        if ".entry rounds" in text:
            return _read(file, text)
    return None


def _read(file: Path, text: str) -> Kernel:
    binary, assembler = file.with_suffix(".cubin"), tool("ptxas")
    assert assembler is not None  # XLA itself needs it
    target = re.search(r"\.target (\w+)", text)
    command = [
        assembler,
        f"-arch={target[1] if target else 'sm_90a'}",
        "-v",
        str(file),
        "-o",
        str(binary),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, spills = re.search(r"Used (\d+)", said), re.findall(r"(\d+) bytes spill", said)
    fused, loose = (
        len(re.findall(code, text)) for code in (r"fma\.rn\.f32", r"(?:mul|add|sub)\.f32")
    )
    count = int(registers[1]) if registers else 0
    return Kernel(count, sum(map(int, spills)), _longest_loop(binary), fused, loose)


def _longest_loop(binary: Path) -> int:
    """Instructions from the first to the last one of the longest loop."""
    if (reader := tool("nvdisasm")) is None:
        return 0
    code = subprocess.run([reader, "-c", binary], capture_output=True, text=True, check=True).stdout
    labels: dict[str, int] = {}
    at = longest = 0
    for line in code.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = at
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            at += 1
            to = re.search(r"BRA.*`\((\.L_x_\d+)\)", instruction[1])
            if to and to[1] in labels:
                longest = max(longest, at - labels[to[1]])
    return longest
