"""Arms files and output folders of every kind, given to the commands."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from benchmarks.bad_input.case import Case, command
from benchmarks.bad_input.commands_options import ARMS, put

MEANS, COUNTS, LOG = "name,mean_reward,mean_cost\n", "name,clicks,spent,conversions\n", "name,reward,cost\n"
SMALL = ("--budget", "20", "--policies", "m_ucb", "--runs", "3", "--marks", "2")

BAD_CONTENT: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "empty"),
    "blank lines": ("\n \n,,\n", "empty"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "empty"),
    "a header alone": (MEANS, "no rows"),
    "one arm": (MEANS + "a,.5,.5\n", "number of arms"),
    "no header": ("a,.5,.5\nb,.5,.5\n", "columns missing"),
    "a header twice": (MEANS + MEANS, "no row is an arm"),
    "a column missing": ("name,mean_reward\na,.5\nb,.5\n", "mean_cost"),
    "a column twice": ("name,name,mean_reward,mean_cost\na,a,.5,.5\nb,b,.5,.5\n", "all stand for name"),
    "two formats": ("name,mean_reward,mean_cost,reward,cost\na,1,1,1,1\n", "fits"),
    "colons": (MEANS.replace(",", ":") + "a:.5:.5\nb:.5:.5\n", "separated by commas"),
    "one arm between semicolons": (MEANS.replace(",", ";") + "a;,5;,5\n", "number of arms"),
    "two decimal signs": (MEANS + 'a,"0,5","0,5"\nb,.5,.5\n', "2 problems"),
    "two currencies": ("name,clicks,cost,conversions\na,9,$5,1\nb,9,€5,1\n", "one currency"),
    "three numbers cut by commas": (COUNTS + "a,1,300,2,500,12\nb,1,1,1\n", "number of cells"),
    "UTF-16 cut in a character": (ARMS.encode("utf-16")[:-1], "UTF-8"),
    "UTF-16 without a mark, cut in a character": (ARMS.encode("utf-16-le")[:-1], "null"),
    "UTF-32 cut in a character": (ARMS.encode("utf-32")[:-1], "UTF-8"),
    "a lone byte of no encoding": ((MEANS + "é,.5,.5\nb,.5,.5\n").encode("latin-1") + b"\x81", "UTF-8"),
    "random bytes": (random.Random(1).randbytes(5000), "UTF-8"),
    "null characters": (MEANS + "a\0,.5,.5\nb,.5,.5\n", "null"),
    "null characters alone": (b"\0" * 5000, "null"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "UTF-8"),
    "a gzip file": (b"\x1f\x8b\x08" + bytes(range(128, 250)), "UTF-8"),
    "JSON": ('[{"name": "a", "reward": 1}]', "CSV"),
    "HTML": ("<html>\n<body>404</body>\n</html>", "CSV"),
    "an open quote": (MEANS + '"a,.5,.5\nb,.5,.5\n', "CSV"),
    "a quote within": (MEANS + 'a"b"c"",.5,.5\n"b"x,.5,.5\n', "CSV"),
    "a cell of a megabyte": (MEANS + "a" * 1_000_000 + ",.5,.5\nb,.5,.5\n", "CSV"),
    "a number of a megabyte": (MEANS + "a," + "5" * 100_000 + ",.5\nb,.5,.5\n", "line 2"),
    "a header of 100,000 columns": (",".join(f"c{i}" for i in range(100_000)) + "\n1\n", "columns missing"),
    "a row of 100,000 cells": (MEANS + "a,.5,.5" + ",1" * 100_000 + "\nb,.5,.5\n", "number of cells"),
    "escape sequences as a header": ("\x1b[2J,x\n1,2\n", "columns missing"),
    "an escape sequence as a number": (MEANS + "a,\x1b[2J,.5\nb,.5,.5\n", "mean_reward"),
    "the same name twice": (MEANS + "a,.5,.5\na,.6,.5\n", "another name"),
    "no name": (MEANS + ",.5,.5\nb,.6,.5\n", "column name"),
    "no instance": ("instance," + MEANS + ",a,.5,.5\nx,b,.5,.5\nx,c,.5,.5\n", "column instance"),
    "an instance of one arm": ("instance," + MEANS + "x,a,.5,.5\nx,b,.5,.5\ny,c,.5,.5\n", "number of arms"),
    "clicks 0": (COUNTS + "a,0,1,0\nb,1,1,0\n", "clicks"),
    "a total alone": (COUNTS + "Total,10,5,1\n", "number of arms"),
    "words of no kind": ("Campaign,Impressions,CTR\na,5,1%\nb,5,1%\n", "columns missing"),
    "a title of 100,000 characters": ("x" * 100_000 + ",Klik,Koszt\na,5,1\n", "columns missing"),
    "titles that a shell obeys": ("$(rm x);`y`,Klik,Koszt,\x1b[2J\na,5,1.5,1\nb,6,2.5,1\n", "columns missing"),
    "spent nothing": (COUNTS + "a,1,0,0\nb,1,1,0\n", "mean cost"),
    "more conversions than clicks": (COUNTS + "a,1,1,5\nb,1,1,0\n", "above its bound"),
    "clicks beyond float64": (COUNTS + "a,1e999,1,5\nb,1,1,0\n", "clicks"),
    "a cost that becomes nothing": (MEANS + "a,.5,1e-12\nb,.5,.5\n", "mean cost"),
    "costs at both ends of float64": (MEANS + "a,.5,1e-300\nb,.5,1e300\n", ""),
    "a log whose arm is free": (LOG + "a,.5,0\nb,.5,.5\n", "mean cost"),
    "Facebook ads without a group": (
        "campaign_id,age,gender,clicks,spent,total_conversion\n1,30-34,M,5,2,1\n2,30-34,M,5,2,1\n",
        "no (campaign_id",
    ),
}
BAD_NUMBERS = (
    "",
    "x",
    "nan",
    "inf",
    "-inf",
    "-1",
    "-0.5",
    "1_0",
    "٣",
    "５",
    "0x1",
    "1e999",
    "1 0",
    "½",
    "#REF!",
    "True",
    "None",
)

EDGES = {
    "a byte order mark": b"\xef\xbb\xbf" + ARMS.encode(),
    "CR LF": ARMS.replace("\n", "\r\n").encode(),
    "CR": ARMS.replace("\n", "\r").encode(),
    "no line end at the end": ARMS.rstrip("\n").encode(),
    "blanks and blank lines": ARMS.replace(",", " , ").replace("\n", "\n\n").encode(),
    "UTF-16": ARMS.encode("utf-16"),
    "UTF-16 without a mark": ARMS.encode("utf-16-le"),
    "UTF-32": ARMS.encode("utf-32"),
    "Latin-1": (MEANS + "é,.5,.5\nb,.5,.5\n").encode("latin-1"),
    "semicolons": ARMS.replace(",", ";").replace(".", ",").encode(),
    "tabs": ARMS.replace(",", "\t").encode(),
    "a log with a reward above 1": (LOG + "a,1.5,1\nb,.5,.5\n").encode(),
    "upper case": ARMS.replace("name", "NAME").encode(),
    "quotes": ARMS.replace("a,", '"a, b",').encode(),
    "formulas and escape sequences as names": (MEANS + "=cmd()|x,.2,.5\n@SUM(A1),.5,.9\n\x1b[2Jc,.4,.25\n").encode(),
}


def cases() -> list[Case]:
    """Of compare and tune."""
    return [*_contents(), *_several(), *_places(), *_pipes()]


def compare(file: str, *more: str) -> Callable[[Path], str]:
    """The command on a file."""
    return command("compare", "--arms", file, *SMALL, *more)


def _tune(file: str) -> Callable[[Path], str]:
    return command("tune", "--policy", "omega_ucb", "--arms", file, "--budget", "20")


def write(content: str | bytes, name: str = "bad.csv") -> Callable[[Path], object]:
    """Puts a file into the folder."""
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def _contents() -> list[Case]:
    found = []
    for name, (content, says) in BAD_CONTENT.items():
        found.append(Case("command: arms files", name, compare("bad.csv"), says, before=write(content)))
        if len(content) < 200:
            found.append(Case("command: arms files", f"tune: {name}", _tune("bad.csv"), says, before=write(content)))
    for number in BAD_NUMBERS:
        for column, content in (
            ("mean_cost", f"{MEANS}a,.5,.5\nb,.5,{number}\n"),
            ("clicks", f"{COUNTS}a,5,1,1\nb,{number},1,1\n"),
            ("reward", f"{LOG}a,.5,.5\nb,{number},.5\n"),
        ):
            name = f"{column} {number!r}"
            found.append(Case("command: arms files, numbers", name, compare("bad.csv"), column, before=write(content)))
    found += [
        Case("command: arms files that work", name, compare("odd.csv"), works=True, before=write(content, "odd.csv"))
        for name, content in EDGES.items()
    ]
    return found


def _several() -> list[Case]:
    bad = {
        "two in one row": (MEANS + "a,x,y\nb,.5,.5\n", "2 problems"),
        "two rows": (MEANS + "a,x,.5\nb,.5,-1\n", "2 problems"),
        "rows and arms": (MEANS + "a,x,.5\nb,.5,.5\nb,1.5,.5\n", "3 problems"),
        "two instances of one arm": ("instance," + MEANS + "x,a,.5,.5\ny,a,.5,.5\n", "number of arms"),
        "twenty": (MEANS + "a,x,.5\n" * 20, "20 problems"),
        "thirty": (MEANS + "a,x,.5\n" * 30, "and 10 more"),
        "a hundred thousand": (MEANS + "a,x,y\n" * 100_000, "1,000 problems or more"),
        "a hundred thousand names twice": (MEANS + "a,.5,.5\n" * 100_000, "1,000 problems or more"),
    }
    return [
        Case("command: arms files, several errors", name, compare("bad.csv"), says, before=write(content))
        for name, (content, says) in bad.items()
    ]


def _sparse(folder: Path) -> None:
    with (folder / "bad.csv").open("wb") as file:
        file.truncate(2 << 30)


def _unreadable(folder: Path) -> None:
    (folder / "bad.csv").mkdir()


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("bad.csv")


def _places() -> list[Case]:
    found = []
    makes: dict[str, tuple[Callable[[Path], object], str]] = {
        "2 GiB of nothing": (_sparse, "longer than"),
        "65 MiB of lines": (lambda folder: (folder / "bad.csv").write_bytes(b"a,1,1\n" * 11_500_000), "longer than"),
        "a folder": (_unreadable, "a folder"),
        "a link to nothing": (lambda folder: os.symlink("nothing", folder / "bad.csv"), "No such file"),
        "a link to itself": (lambda folder: os.symlink("bad.csv", folder / "bad.csv"), "bad.csv"),
        "a FIFO that nobody writes to": (lambda folder: os.mkfifo(folder / "bad.csv"), "pipe"),
        "a socket": (_socket, "socket"),
        "a link to /dev/zero": (lambda folder: os.symlink("/dev/zero", folder / "bad.csv"), "device"),
    }
    for name, (make, says) in makes.items():
        for job, call in (("compare", compare("bad.csv")), ("tune", _tune("bad.csv"))):
            found.append(Case("command: places of arms files", f"{job}: {name}", call, says, before=make))
    for path in (
        "/dev/zero",
        "/dev/random",
        "/dev/urandom",
        "/dev/null",
        "/dev/full",
        "/dev/tty",
        "/",
        ".",
        "..",
        "",
        " ",
        "nofile.csv",
        "no/such/file.csv",
        "a\0b",
        "x" * 300,
        "x/" * 3000,
        "/proc/self/mem",
        "arms.csv/x",
        "\x1b[2J",
        "~/arms.csv",
        "https://example.org/arms.csv",
        "*.csv",
    ):
        found.append(Case("command: places of arms files", repr(path[:20]), compare(path), "arms", before=put))
    return found


def _through_pipe(content: bytes, path: str, *more: str) -> Callable[[Path], str]:
    """The command with the arms on its standard input, which is a pipe."""

    def call(folder: Path) -> str:
        reader, writer = os.pipe()
        kept = os.dup(0)

        def feed() -> None:
            with os.fdopen(writer, "wb") as file:
                file.write(content)

        thread = threading.Thread(target=feed, daemon=True)
        before = sys.stdin
        try:
            os.dup2(reader, 0)
            os.close(reader)
            sys.stdin = os.fdopen(0, closefd=False)
            thread.start()
            return compare(path, *more)(folder)
        finally:
            sys.stdin = before
            os.dup2(kept, 0)
            os.close(kept)

    return call


def _hash_of(path: str) -> Callable[[Path], str]:
    """Runs on a pipe, and looks for the hash of what went through it in run.json."""
    import hashlib
    import json

    def call(folder: Path) -> str:
        _through_pipe(ARMS.encode(), path, "--out", "o")(folder)
        told = json.loads((folder / "o/run.json").read_text())["arms_file"]["sha256"]
        assert told == hashlib.sha256(ARMS.encode()).hexdigest(), told
        return told

    return call


def _pipes() -> list[Case]:
    area = "command: pipes"
    found = [Case(area, f"{path} works, and has its hash", _hash_of(path), works=True) for path in ("-", "/dev/stdin")]
    for path in ("-", "/dev/stdin", "/dev/fd/0"):
        found += [
            Case(area, f"{path}: empty", _through_pipe(b"", path), "empty"),
            Case(area, f"{path}: bytes", _through_pipe(b"\xff\xfe\x00", path), "UTF-8"),
            Case(area, f"{path}: zeros", _through_pipe(bytes(1 << 20), path), "null"),
        ]
    return found
