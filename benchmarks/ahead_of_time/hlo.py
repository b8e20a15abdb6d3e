"""An optimised HLO module: its loops, what a turn launches and moves, how scores are computed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NOTHING = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "iota", "opt-barrier"}
_NOTHING |= {"while", "conditional", "call", "after-all", "partition-id", "replica-id"}
_TOTAL = "add(P,multiply(5.96046448e-08,P))"  # an exact total as a float: one rounding, however it is contracted
_KERNEL = "__gpu$xla.gpu.triton"  # a kernel of ours, compiled with the rest
_COPIES = frozenset(("copy", "copy-start"))


@dataclass(frozen=True)
class Instruction:
    """``name = shape opcode(operands), attributes``."""

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    rest: str


@dataclass
class Loop:
    """A body of a loop, a branch, or the entry.

    Attributes:
        path: where it stands, "entry/while/branch 1".
        launches, copies: kernels of one turn, and copies that are none.
        bytes: what these read and write together.
    """

    path: str
    launches: int = 0
    copies: int = 0
    bytes: int = 0


def shape_bytes(shape: str) -> int:
    """Bytes of all arrays of a shape, also of a tuple's.

    Example:
        >>> shape_bytes("(f32[2,3]{1,0}, pred[5]{0}, s32[])")
        33
    """
    arrays = re.findall(r"\b(?:pred|[a-z]+(\d+))\w*\[([\d,]*)\]", shape)
    return sum(
        int(bits or 8) // 8 * math.prod(int(d) for d in dims.split(",") if d)
        for bits, dims in arrays
    )


def computations(text: str) -> tuple[dict[str, dict[str, Instruction]], str]:
    """All computations by name, each its instructions by name; and the entry's name."""
    bodies: dict[str, dict[str, Instruction]] = {}
    entry, inside = "", ""
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{\s*$", line):
            inside = head[2]
            bodies[inside] = {}
            entry = inside if head[1] else entry
        elif (instruction := _instruction(line)) is not None:
            bodies[inside][instruction.name] = instruction
    return bodies, entry


def _instruction(line: str) -> Instruction | None:
    match = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = (.*)$", re.sub(r"/\*.*?\*/", "", line))
    if not match:
        return None
    shape, _, call = _outside_brackets(match[2])
    opcode, _, after = call.partition("(")
    depth, end = 1, 0
    while end < len(after) and depth:
        depth += {"(": 1, ")": -1}.get(after[end], 0)
        end += 1
    operands = tuple(re.findall(r"%([\w.\-]+)", after[: end - 1])) or tuple(
        x.strip()
        for x in after[: end - 1].split(",")
        if re.fullmatch(r"\s*[a-zA-Z_][\w.\-]*\s*", x)
    )
    return Instruction(match[1], shape, opcode, operands, after)


def _outside_brackets(words: str) -> tuple[str, str, str]:
    """The text before and after the first blank that no bracket encloses."""
    depth = 0
    for at, letter in enumerate(words):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == " " and depth == 0:
            return words[:at], " ", words[at + 1 :]
    return words, "", ""


def loops(text: str) -> list[Loop]:
    """The entry, then every loop and branch, each after the computation that contains it."""
    bodies, entry = computations(text)
    sequence: list[Loop] = []

    def read(name: str, path: str) -> None:
        loop, inner = Loop(path), 0
        sequence.append(loop)
        for instruction in bodies[name].values():
            if instruction.opcode == "while":
                body = re.search(r"body=%?([\w.\-]+)", instruction.rest)
                assert body is not None
                read(body[1], f"{path}/while {inner}")
                inner += 1
            elif instruction.opcode == "conditional":
                for number, branch in enumerate(_branches(instruction.rest)):
                    read(branch, f"{path}/branch {number}")
                    inner += 1
            elif instruction.opcode in _COPIES:
                loop.copies += 1
                loop.bytes += 2 * shape_bytes(instruction.shape)
            elif instruction.opcode not in _NOTHING and not instruction.opcode.endswith("-done"):
                loop.launches += 1
                inputs = (
                    bodies[name][x].shape
                    for x in dict.fromkeys(instruction.operands)
                    if x in bodies[name]
                )
                loop.bytes += shape_bytes(instruction.shape) + sum(map(shape_bytes, inputs))

    read(entry, "entry")
    return sequence


def _branches(rest: str) -> list[str]:
    listed = re.search(r"branch_computations=\{(.*?)\}", rest)
    names = (
        listed[1].split(",")
        if listed
        else re.findall(r"(?:true|false)_computation=(%?[\w.\-]+)", rest)
    )
    return [name.strip().lstrip("%") for name in names]


def score_formulas(text: str) -> set[str]:
    """Each formula with a logarithm that ends in a division, inputs as P: one, if all agree."""
    formulas = set()
    for instructions in computations(text)[0].values():
        codes = {x.opcode for x in instructions.values()}
        if not {"log", "divide"} <= codes:
            continue
        ends = (
            x for x in instructions.values() if x.opcode == "divide" and x.shape.startswith("f32")
        )
        candidates = [
            formula for x in ends if "log(" in (formula := _formula(x.name, instructions, {}))
        ]
        if candidates:
            formulas.add(max(candidates, key=len))
    return formulas


def _formula(name: str, instructions: dict[str, Instruction], formulas: dict[str, str]) -> str:
    if name not in formulas:
        instruction = instructions[name]
        inside = [x for x in instruction.operands if x in instructions]
        # Whole numbers are exact everywhere
        if instruction.opcode in ("parameter", "get-tuple-element", "convert"):
            formulas[name] = "P"
        elif instruction.opcode == "constant":
            formulas[name] = instruction.rest.partition(")")[0]
        elif instruction.opcode in ("broadcast", "bitcast", "reshape", "copy"):
            formulas[name] = _formula(inside[0], instructions, formulas)
        else:
            arguments = [_formula(x, instructions, formulas) for x in inside]
            arguments = (
                sorted(arguments) if instruction.opcode in ("multiply", "add") else arguments
            )
            formula = f"{instruction.opcode}({','.join(arguments)})"
            formulas[name] = "P" if formula == _TOTAL else formula
    return formulas[name]


def faults(text: str, platform: str) -> list[str]:
    """What a program of ours must not have."""
    wrong = []
    calls = set(re.findall(r'custom_call_target="?([^",]*)', text)) - {_KERNEL}
    if platform == "cuda" and calls:
        wrong.append(f"calls {', '.join(sorted(calls))}")
    if "f64[" in text:
        wrong.append("computes in float64")
    return wrong
