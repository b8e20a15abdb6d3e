"""Several errors of one file, told together."""

from __future__ import annotations

from jaxbandits.core.errors import InputError

_MOST_TOLD, _MOST_COUNTED = 20, 1000


class Problems:
    """Collects the errors of a file, so that they are mended in one go.

    Args:
        source: the file, as its messages name it.

    Example:
        >>> problems = Problems("ads.csv")
        >>> for line in (2, 5):
        ...     problems.note(InputError(f"ads.csv, line {line}: no name"))
        >>> problems.tell()
        Traceback (most recent call last):
        jaxbandits.core.errors.InputError: ads.csv: 2 problems
          line 2: no name
          line 5: no name
    """

    def __init__(self, source: str):
        self._source, self._told, self.count = source, list[str](), 0

    def note(self, problem: InputError) -> None:
        """Keep it for :meth:`tell`; the thousandth is not waited for, and all are told."""
        self.count += 1
        if self.count <= _MOST_TOLD:
            self._told.append(str(problem))
        if self.count >= _MOST_COUNTED:
            self.tell()

    def tell(self) -> None:
        """Raise InputError if there was one: a single one as it was, several with their number in the first line."""
        if self.count > 1:
            lines = [text.removeprefix(f"{self._source}, ").removeprefix(f"{self._source}: ") for text in self._told]
            more = self.count - len(lines)
            lines += [f"… and {more:,} more"] if more else []
            so_far = " or more" if self.count == _MOST_COUNTED else ""
            raise InputError("\n  ".join([f"{self._source}: {self.count:,} problems{so_far}", *lines]))
        if self.count:
            raise InputError(self._told[0])
