"""What an agent raises: four kinds of trouble that a service answers differently."""

from __future__ import annotations

from jaxbandits.core import InputError


class Misuse(InputError):
    """A call that cannot be meant: no such ticket or arm, an outcome out of range, a wrong clock."""


class Settled(Misuse):
    """The ticket was settled before, or given up so long ago that it is forgotten."""


class Unpayable(Exception):
    """``choose(must=True)`` has no arm: none can be paid, or the policy keeps the money for later
    requests.

    Attributes:
        renews_at: when an arm can be tried again, in seconds of the clock; None if one can now and
            the policy rests.
    """

    def __init__(self, message: str, renews_at: float | None = None):
        super().__init__(message)
        self.renews_at = renews_at


class Broken(OSError):
    """The call could not be written: the disk is full, the file was moved or is locked, or this is
    a fork.

    Calls that only read still answer, and the next call tries again.
    """
