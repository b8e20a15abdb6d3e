"""Files that stand where a result or a state should be: broken, hostile, or of somebody else."""

# mypy: disable-error-code="func-returns-value, misc, arg-type, var-annotated, assignment"

from __future__ import annotations

import functools
import io
import json
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case

S, I, R, M = 2, 2, 3, 2  # noqa: E741 - the axes of a result
Arrays = dict[str, np.ndarray]


@functools.cache
def result() -> jb.Result:
    """A small one, as a simulation gives it."""
    lanes, at = (S, I, R), (S, I, R, M)
    ledger = {name: np.ones(at, np.int64) * 5 for name in ("rounds", "reward", "spent", "expected_reward")}
    ledger |= {name: np.ones(at, np.int64) for name in ("expected_spent", "clock", "expected_clock", "event:skipped")}
    return jb.Result(
        ledger=ledger,
        ended=np.ones(lanes, np.int32),
        final={"pulls": np.ones((*lanes, 2), np.int32)},
        best_rate=np.ones(I),
        settings=("a", "b"),
        instances=("0", "1"),
        replicates=(0, 1, 2),
        marks=(0.5, 1.0),
        about={"policies": ["a", "b"]},
    )


@functools.cache
def saved() -> bytes:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"bad-input-{os.getpid()}.npz"
    result().save(path)
    content = path.read_bytes()
    path.unlink()
    return content


def _parts() -> tuple[dict[str, Any], Arrays]:
    """The manifest, and the arrays."""
    with np.load(io.BytesIO(saved())) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return json.loads(str(arrays.pop("manifest"))), arrays


def _packed(manifest: Any, arrays: Arrays, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, x in ({"manifest": np.array(text)} | arrays).items():
            with packed.open(f"{name}.npy", "w", force_zip64=True) as into:
                np.lib.format.write_array(into, np.asanyarray(x), allow_pickle=pickled)
    return file.getvalue()


def _load(content: bytes | Callable[[], bytes]) -> tuple[Callable[[Path], object], Callable[[Path], object]]:
    """(what lays the file down, what loads it)"""
    made = content if callable(content) else lambda: content
    return lambda folder: (folder / "r.npz").write_bytes(made()), lambda folder: jb.Result.load(folder / "r.npz")


def _case(name: str, content: bytes | Callable[[], bytes], says: str = "path:", works: bool = False) -> Case:
    before, call = _load(content)
    return Case("files: results", name, call, says=says, before=before, works=works)


# ---- the zip


def _raw_member(name: str, content: bytes, **changes: Any) -> bytes:
    """A zip file of one member, with fields of its directory changed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    data = bytearray(file.getvalue())
    entry = data.rindex(b"PK\x01\x02")
    for where, value in changes.items():
        offset, form = {"size": (24, "<I"), "compressed": (20, "<I"), "flags": (8, "<H"), "method": (10, "<H")}[where]
        struct.pack_into(form, data, entry + offset, value)
    return bytes(data)


def _header(shape: str, kind: str = "<i8", data: bytes = b"", fortran: str = "False") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def _with(name: str, content: bytes, twice: bool = False) -> bytes:
    """The saved result with one raw member more, or in place of its own."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved())) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            if member != name or twice:
                new.writestr(member, old.read(member))
        with warnings.catch_warnings(action="ignore"):  # of a name given twice
            new.writestr(name, content)
    return file.getvalue()


def _zips() -> list[Case]:
    whole = saved()
    raw: dict[str, bytes] = {
        "empty": b"",
        "one byte": b"P",
        "text": b"no result\n",
        "zeros": bytes(1000),
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "a bare .npy file": _header("(3,)", data=bytes(24)),
        "a pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.",
        "an empty zip": b"PK\x05\x06" + bytes(18),
        "gzip": b"\x1f\x8b\x08\x00" + bytes(20),
        "a zip in a zip": _raw_member("r.npz", whole),
        "text after a header of zip": b"PK\x03\x04" + b"x" * 200,
        **{f"cut off after {share:.0%}": whole[: int(share * len(whole))] for share in (0.1, 0.5, 0.9, 0.99, 0.999)},
        "without its first half": whole[len(whole) // 2 :],
        "a flipped byte in the middle": whole[:700] + bytes([whole[700] ^ 255]) + whole[701:],
        "encrypted": _raw_member("manifest.npy", b"x", flags=1),
        "compressed by lzma": _raw_member("manifest.npy", b"x", method=14),
        "compressed by an unknown method": _raw_member("manifest.npy", b"x", method=99),
        "a size of 4 GB declared": _raw_member("manifest.npy", bytes(1000), size=2**32 - 2),
        "a size below the real one": _raw_member("manifest.npy", bytes(1000), size=10),
        "a header of 2**60 numbers": _with("ledger/reward.npy", _header(f"({2**60},)")),
        "a header of 2**40 lanes": _with("ledger/reward.npy", _header(f"({2**40}, 2, 3, 2)")),
        "a header beyond every integer": _with("ledger/reward.npy", _header(f"({10**30}, 2, 3, 2)")),
        "a negative length": _with("ledger/reward.npy", _header("(-2, -2, 3, 2)", data=bytes(96))),
        "a header that calls": _with("ledger/reward.npy", _header("__import__('os').abort()")),
        "a header of nested brackets": _with("ledger/reward.npy", _header("(" * 3000 + ")" * 3000)),
        "a header that is not closed": _with("ledger/reward.npy", _header("((2,")),
        "a version of the future": _with("ledger/reward.npy", b"\x93NUMPY\x09\x00" + bytes(100)),
        "an unknown type": _with("ledger/reward.npy", _header("(2,)", "<q99")),
        "a structured type": _with("ledger/reward.npy", _header("(2,)', 'x': '")),
        "a member twice": _with("ledger/reward.npy", _header("(2,)", data=bytes(16)), twice=True),
        "an absolute name": _with("/etc/passwd.npy", _header("(2,)", data=bytes(16))),
        "a name with ..": _with("ledger/../../x.npy", _header("(2,)", data=bytes(16))),
        "a name with a backslash": _with("ledger\\..\\x.npy", _header("(2,)", data=bytes(16))),
        "a name with an escape sequence": _with("ledger/\x1b[2J.npy", _header("(2,)", data=bytes(16))),
        "a name of 60,000 characters": _with("ledger/" + "x" * 60_000 + ".npy", _header("(2,)", data=bytes(16))),
        "a name that is no array's": _with("readme.txt", b"hello"),
        "an array that is no part of it": _with("other.npy", _header("(2,)", data=bytes(16))),
        "fewer bytes than the shape": _with("ledger/reward.npy", _header("(2, 2, 3, 2)", data=bytes(100))),
        "more bytes than the shape": _with("ledger/reward.npy", _header("(2, 2, 3, 2)", data=bytes(1000))),
    }
    made: dict[str, Callable[[], bytes]] = {
        "a bomb: 100 MB of zeros where 192 bytes are due": lambda: _with("ledger/reward.npy", bytes(100 << 20)),
        "a bomb with the right header and more": lambda: _with(
            "ledger/reward.npy", _header("(2, 2, 3, 2)", data=bytes(100 << 20))
        ),
        "a bomb whose header fits": lambda: _with(
            "ledger/reward.npy", _header("(2, 2, 3, 1000000)", data=bytes(96_000_000))
        ),
        "a bomb as manifest": lambda: _with("manifest.npy", _header("()", f"<U{25 << 20}", bytes(100 << 20))),
        "5,000 members": _many,
    }
    cases = [_case(name, content) for name, content in raw.items()]
    return cases + [_case(name, content) for name, content in made.items()]


def _many() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for number in range(5000):
            packed.writestr(f"ledger/{number}.npy", b"")
    return file.getvalue()


# ---- what it holds


def _changed(name: str, x: Any, pickled: bool = False) -> bytes:
    manifest, arrays = _parts()
    return _packed(manifest, arrays | {name: x}, pickled)


def _contents() -> list[Case]:
    at, lanes = (S, I, R, M), (S, I, R)
    ones = np.ones(at, np.int64)
    rounds_that_fall = ones * [3, 2]
    arrays: dict[str, tuple[str, Any]] = {
        "NaN in a ledger": ("ledger/reward", np.full(at, np.nan)),
        "infinity in a ledger": ("ledger/spent", np.full(at, np.inf)),
        "floats in a ledger": ("ledger/reward", np.ones(at)),
        "int32 in a ledger": ("ledger/reward", np.ones(at, np.int32)),
        "uint64 in a ledger": ("ledger/reward", np.ones(at, np.uint64)),
        "complex numbers in a ledger": ("ledger/reward", np.ones(at, complex)),
        "dates in a ledger": ("ledger/reward", np.ones(at, "M8[s]")),
        "times in a ledger": ("ledger/reward", np.ones(at, "m8[s]")),
        "truth values in a ledger": ("ledger/reward", np.ones(at, bool)),
        "text in a ledger": ("ledger/reward", np.full(at, "1")),
        "bytes in a ledger": ("ledger/reward", np.full(at, b"1")),
        "raw bytes in a ledger": ("ledger/reward", np.zeros(at, "V8")),
        "records in a ledger": ("ledger/reward", np.zeros(at, [("x", "i8")])),
        "negative rounds": ("ledger/rounds", -ones),
        "rounds that fall": ("ledger/rounds", rounds_that_fall),
        "2**31 rounds": ("ledger/rounds", ones * 2**31),
        "a count that falls": ("ledger/event:skipped", rounds_that_fall),
        "a negative count": ("ledger/event:skipped", -ones),
        "one lane for all": ("ledger/reward", ones[:1, :1, :1]),
        "one setting for all": ("ledger/reward", ones[:1]),
        "one replicate for all": ("ledger/rounds", ones[:, :, :1]),
        "one mark for all": ("ledger/reward", ones[..., :1]),
        "too many lanes": ("ledger/reward", np.ones((S, I, R + 1, M), np.int64)),
        "axes in another order": ("ledger/reward", np.ones((M, R, I, S), np.int64)),
        "no axes": ("ledger/reward", np.int64(3)),
        "a fifth axis": ("ledger/reward", ones[..., None]),
        "no lanes": ("ledger/reward", ones[:0]),
        "an unknown status": ("ended", np.full(lanes, 6, np.int32)),
        "a negative status": ("ended", np.full(lanes, -1, np.int32)),
        "a lane that still runs": ("ended", np.zeros(lanes, np.int32)),
        "a status as a float": ("ended", np.ones(lanes)),
        "a status as NaN": ("ended", np.full(lanes, np.nan)),
        "a status as text": ("ended", np.full(lanes, "exhausted")),
        "one status for all": ("ended", np.ones((1, 1, 1), np.int32)),
        "a best rate of NaN": ("best_rate", np.full(I, np.nan)),
        "a best rate of infinity": ("best_rate", np.full(I, np.inf)),
        "a complex best rate": ("best_rate", np.ones(I, complex)),
        "one best rate for all": ("best_rate", np.ones(1)),
        "a best rate without axes": ("best_rate", np.float64(1)),
        "whole best rates": ("best_rate", np.ones(I, np.int64)),
        "negative pulls": ("final/pulls", np.full((*lanes, 2), -1, np.int32)),
        "pulls as floats": ("final/pulls", np.ones((*lanes, 2))),
        "pulls without arms": ("final/pulls", np.ones(lanes, np.int32)),
        "pulls of one lane": ("final/pulls", np.ones((1, 1, 1, 2), np.int32)),
        "a final value as text": ("final/other", np.full(lanes, "x")),
        "a final value as a date": ("final/other", np.ones(lanes, "M8[s]")),
    }
    cases = [_case(name, functools.partial(_changed, *change)) for name, change in arrays.items()]
    objects = np.full(at, None)
    objects[0, 0, 0, 0] = Bomb()
    cases.append(_case("objects, pickled", functools.partial(_changed, "ledger/reward", objects, True)))
    for name in ("ledger/rounds", "ledger/reward", "ledger/expected_clock", "ended", "best_rate"):
        cases.append(_case(f"no {name}", functools.partial(_without, name)))
    return cases


class Bomb:
    """Unpickling it would end the process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (66,)


def _without(name: str) -> bytes:
    manifest, arrays = _parts()
    del arrays[name]
    return _packed(manifest, arrays)


def _manifests() -> list[Case]:
    changes: dict[str, tuple[str, Any]] = {
        **{f"format {x!r}": ("format", x) for x in (0, 2, -1, "1", 1.0, True, None, [1], 10**30)},
        **{f"{name} {x!r}": (name, x) for name in ("settings", "instances") for x in (None, "ab", [], [1, 2], {})},
        "a setting too many": ("settings", ["a", "b", "c"]),
        "an instance too few": ("instances", ["0"]),
        **{f"replicates {x}": ("replicates", x) for x in ([0, 1, 1], [0, 1, -1], [0, 1, 2**32], [0, 1, 2.5], 3)},
        "replicates true": ("replicates", [True, 1, 2]),
        **{f"marks {x}": ("marks", x) for x in ([1.0, 0.5], [0.5, 0.5], [0.5, 2], [0, 1], ["a", 1], None)},
        "a mark of NaN": ("marks", [float("nan"), 1.0]),
        "a mark of 10**400": ("marks", [0.5, 10**400]),
        **{f"about {x!r}": ("about", x) for x in (None, [], "x")},
    }
    cases = [_case(name, functools.partial(_manifest, *change)) for name, change in changes.items()]
    texts = ["", "{", "[]", "3", "null", '"x"', "[" * 100_000, "\ud800", '{"format": 1}', '{"format": NaN}', "{}"]
    texts += [f'{{"format": {"9" * 10_000}}}']
    cases += [_case(f"manifest {x[:20]!r}", functools.partial(lambda x: _packed(x, _parts()[1]), x)) for x in texts]
    for name, x in {"a number": np.float64(1), "an axis": np.array(["{}"]), "bytes": np.bytes_(b"{}")}.items():
        cases.append(_case(f"manifest is {name}", functools.partial(_changed_manifest, x)))
    cases.append(_case("manifest of no characters", lambda: _with("manifest.npy", _header("()", "<U2", b"\xff" * 8))))
    return cases


def _manifest(key: str, value: Any) -> bytes:
    manifest, arrays = _parts()
    return _packed(manifest | {key: value}, arrays)


def _changed_manifest(x: Any) -> bytes:
    return _packed("", _parts()[1] | {"manifest": x})


def cases() -> list[Case]:
    """All of them."""
    return [*_zips(), *_contents(), *_manifests()]
