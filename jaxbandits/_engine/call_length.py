"""How far one call of a worker runs: far enough to be fast, short enough for progress and Ctrl-C."""

from __future__ import annotations

_SECONDS_PER_CALL = 0.3  # how often the host looks: progress, lanes, Ctrl-C


class CallLength:
    """Chunks of a call, and how many rounds each has; no result depends on either.

    A round may take long, and nobody knows before one was played: so the first call plays one, the next ones more.

    Args:
        most: the full length of a chunk.

    Attributes:
        chunk, chunks: length and number for the next call.
    """

    def __init__(self, most: int):
        self._most, self._first = most, True
        self.chunk, self.chunks = 1, 1

    def learn(self, took: float, played: int) -> None:
        """A call took so many seconds for so many chunks."""
        first, self._first = self._first, False
        if first:  # it was compiled, too
            return
        if took > 2 * _SECONDS_PER_CALL:
            if self.chunks > 1:
                self.chunks //= 2
            else:
                self.chunk = max(self.chunk // 2, 1)
        elif took < _SECONDS_PER_CALL and played >= self.chunks:
            if self.chunk == self._most:
                self.chunks = min(2 * self.chunks, 1 << 20)
            else:
                self.chunk = min(4 * self.chunk, self._most)
