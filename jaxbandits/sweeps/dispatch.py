"""Hand blocks out to whoever plays them, check what comes back, and keep it.

The same for the threads of this process (:class:`~jaxbandits.sweeps.here.Here`) and for the workers of an executor
(:class:`~jaxbandits.sweeps.elsewhere.Elsewhere`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from jaxbandits._files.npz import NotArrays
from jaxbandits._reports.progress import Bar
from jaxbandits.core.printable import brief, said
from jaxbandits.sweeps.blocks import Content, block_name, decode
from jaxbandits.sweeps.here import Answer
from jaxbandits.sweeps.log import Note
from jaxbandits.sweeps.plan import Block, SweepPlan

_TRIES = 3
_AHEAD, _AT_FIRST = 2, 16  # calls under way: for each worker that has answered, and besides
_FEW = 4  # workers, as long as fewer have answered
_REFUSALS, _REST = 100, 0.2  # so many in a row, with so many seconds between them, are too many
_PAUSE, _REST_PER_LOOK = 0.01, 20  # between two looks: seconds at least, and times a look
_CANCELLED = (concurrent.futures.CancelledError, asyncio.CancelledError)


class UnfinishedError(RuntimeError):
    """Some blocks could not be played; those that could are kept."""


class Player(Protocol):
    """Who plays blocks: :class:`~jaxbandits.sweeps.here.Here` or :class:`~jaxbandits.sweeps.elsewhere.Elsewhere`."""

    takes_all: bool  # whether all calls may be handed out at once

    def seconds_per_call(self, fair: float) -> float:
        """Expected work of one core in a call, at most (but one block); ``fair``: a worker's fair part of the rest."""

    def submit(self, calls: Sequence[Sequence[int]]) -> Sequence[Any]:
        """A future of an :data:`~jaxbandits.sweeps.here.Answer` for each call, a call being numbers of blocks."""

    def rounds(self) -> float:
        """Rounds played so far, as far as it is known before blocks are finished."""

    def about(self) -> dict[str, Any]:
        """For the log."""

    def close(self) -> None:
        """Stop."""


class Dispatch:
    """One go at the blocks that are missing.

    Args:
        plan: the sweep.
        player: who plays.
        put: keeps a finished block, ``put(number, content)``.
        note: writes to the log.
        progress: whether to show a bar on stderr.
        notice: is told what goes wrong and is mended.
    """

    def __init__(
        self,
        plan: SweepPlan,
        player: Player,
        put: Callable[[int, bytes], None],
        note: Note,
        progress: bool | str,
        notice: Callable[[str], None],
    ):
        self._plan, self._player, self._put, self._note, self._notice = plan, player, put, note, notice
        self._progress = progress
        self._misfit = Content(plan).misfit
        self._waiting: deque[Block] = deque()
        self._again: deque[Block] = deque()  # failed, and to be played alone
        self._refused: list[Block] = []  # wait until somebody else has played a block
        self._under_way: dict[Any, list[Block]] = {}
        self._failures: dict[int, int] = {}
        self._given_up: dict[int, str] = {}
        self._refusals: dict[str, str] = {}  # by worker
        self._in_a_row = 0
        self._workers: dict[str, tuple[int, float]] = {}  # blocks, rounds
        self._finished = self._lanes = 0
        self._left = self._rounds = 0.0  # expected work, rounds played
        self._began = time.perf_counter()

    def run(self, blocks: Sequence[Block]) -> None:
        """Play these blocks.

        Raises:
            UnfinishedError: some could not be played; the others were.
        """
        self._waiting.extend(_in_order(blocks))
        self._finished = len(self._plan.blocks) - len(blocks)
        self._left = sum(block.seconds for block in blocks)
        with Bar(self._progress, sum(block.rounds for block in blocks)) as bar:
            try:
                while self._hand_out():
                    looked = time.perf_counter()
                    bar.show(self._title(), max(self._rounds, self._player.rounds()))
                    if not self._collect():  # where very much is under way, a look takes long
                        time.sleep(max(_PAUSE, _REST_PER_LOOK * (time.perf_counter() - looked)))
            finally:
                self._cancel()
        if self._given_up:
            first = min(self._given_up)
            count = f"{len(self._given_up)} blocks" if len(self._given_up) > 1 else "one block"
            raise self._unfinished(f"{count} failed {_TRIES} times: {self._name(first)}: {self._given_up[first]}")

    # --- out ---------------------------------------------------------------------------------------------------

    def _hand_out(self) -> bool:
        """Keep the workers busy; whether anything is under way."""
        most = _AT_FIRST + _AHEAD * len(self._workers)
        calls: list[list[Block]] = []
        while (self._waiting or self._again) and (
            self._player.takes_all or len(calls) + len(self._under_way) + len(self._refused) < most
        ):
            calls.append([self._again.popleft()] if self._again else self._next_call())
        if calls:
            try:
                futures = self._player.submit([[block.number for block in call] for call in calls])
            except Exception as problem:
                raise self._unfinished(f"the executor takes no work ({_told(problem)})") from problem
            self._under_way.update(zip(futures, calls, strict=True))
        if self._refused and not self._under_way:
            self._nobody_left()
        return bool(self._under_way or self._waiting)

    def _nobody_left(self) -> None:
        """All that was handed out came back refused; by chance, if there is somebody who has played before."""
        if not self._workers or self._in_a_row >= _REFUSALS:
            raise self._unfinished("no worker may play: " + "; ".join(self._refusals.values()))
        time.sleep(_REST)
        self._waiting.extendleft(self._refused)
        self._refused = []

    def _next_call(self) -> list[Block]:
        """Some blocks: few, when little is left."""
        most = self._player.seconds_per_call(self._left / max(len(self._workers), _FEW))
        call = [self._waiting.popleft()]
        while self._waiting and sum(block.seconds for block in call) + self._waiting[0].seconds <= most:
            call.append(self._waiting.popleft())
        return call

    def _cancel(self) -> None:
        for future in self._under_way:
            with contextlib.suppress(Exception):  # the engine may be gone
                future.cancel()
        self._player.close()

    # --- back --------------------------------------------------------------------------------------------------

    def _collect(self) -> bool:
        """Take in what is done; whether anything was."""
        done = [future for future in self._under_way if future.done()]
        for future in done:
            blocks = self._under_way.pop(future)
            try:
                answer = future.result()
            except _CANCELLED as problem:  # not by us
                raise self._unfinished(f"the executor has lost its work ({_told(problem)})") from problem
            except Exception as problem:
                answer = {"worker": "", "failed": _told(problem)}
            self._take(blocks, answer)
        return bool(done)

    def _take(self, blocks: list[Block], answer: Answer) -> None:
        worker = str(answer.get("worker", ""))
        if "refused" in answer:
            self._refused += blocks
            self._in_a_row += 1
            if worker not in self._refusals:
                self._refusals[worker] = f"worker {worker} is refused: {answer['refused']}"
                self._notice(self._refusals[worker])
            return
        for block in blocks:
            name, content = answer.get("blocks", {}).get(block.number, ("", b""))
            failed = answer.get("failed") or self._odd(block, name, content)
            if failed:
                self._fail(block, f"{failed}{f' (worker {worker})' if worker else ''}")
                continue
            self._put(block.number, content)
            self._count(block, worker)
            self._waiting.extendleft(self._refused)  # somebody may play
            self._refused, self._in_a_row = [], 0

    def _odd(self, block: Block, name: str, content: bytes) -> str:
        """What is wrong with a block that came; empty if nothing is."""
        if name != block_name(block.number, content):
            return "came with bytes whose checksum is not that in its name"
        try:
            return self._misfit(block.number, decode(content))
        except NotArrays as problem:
            return f"came, but {problem}"

    def _fail(self, block: Block, why: str) -> None:
        tries = self._failures[block.number] = self._failures.get(block.number, 0) + 1
        if tries < _TRIES:
            self._again.append(block)
        else:
            self._given_up[block.number] = why
            self._notice(f"{self._name(block.number)} failed {_TRIES} times and is left out: {why}")
        self._note("failed", number=block.number, tries=tries, why=why)

    def _count(self, block: Block, worker: str) -> None:
        self._finished += 1
        self._lanes += block.lanes.size
        self._left -= block.seconds
        self._rounds += block.rounds
        count, rounds = self._workers.get(worker, (0, 0.0))
        self._workers[worker] = count + 1, rounds + block.rounds
        work = {"lanes": int(block.lanes.size), "rounds": block.rounds, "seconds": block.seconds}
        self._note("block", number=block.number, worker=worker, **work)

    # --- words -------------------------------------------------------------------------------------------------

    def _title(self) -> str:
        rounds = max(self._rounds, self._player.rounds())
        seconds = max(time.perf_counter() - self._began, 1e-9)
        parts = [f"{self._finished}/{len(self._plan.blocks)} blocks, {self._lanes:,} lanes"]
        parts.append(f"{rounds / seconds:.2g} rounds/s" if rounds else "compiling")
        if len(self._workers) > 1:
            pace = [rounds / seconds for _, rounds in self._workers.values()]
            parts.append(f"{len(pace)} workers with {min(pace):.2g} to {max(pace):.2g}")
        return ", ".join(parts)

    def _name(self, number: int) -> str:
        return f"block {number} ({brief(self._plan.blocks[number].unit.name)})"

    def _unfinished(self, text: str) -> UnfinishedError:
        return UnfinishedError(f"{text}; {self._finished} of {len(self._plan.blocks)} blocks are finished")


def _in_order(blocks: Sequence[Block]) -> list[Block]:
    """Units with long blocks first, so that the workers end together.

    One block of each unit comes before all others: so different workers compile different programs. Then the blocks of
    one unit in turn: so the lanes of the next fill the slots that the last leaves.
    """
    units: dict[int, list[Block]] = {}
    for block in blocks:
        units.setdefault(block.unit.first, []).append(block)
    ordered = sorted(units.values(), key=lambda unit: -max(block.seconds for block in unit))
    return [unit[0] for unit in ordered] + [block for unit in ordered for block in unit[1:]]


def _told(problem: BaseException) -> str:
    """An exception in one line."""
    text = said(problem, 300)
    return f"{type(problem).__name__}{': ' if text else ''}{text}"
