"""What an agent raises: three kinds of trouble that a service answers differently."""

from __future__ import annotations

from jaxbandits.core import InputError


class Misuse(InputError):
    """A call that cannot be meant: no such ticket or arm, an outcome out of range, a wrong clock."""


class Settled(Misuse):
    """The ticket was settled before, or given up so long ago that it is forgotten."""


class Broken(OSError):
    """The call could not be written: the disk is full, the file was moved or is locked, or this is
    a fork. Calls that only read still answer, and the next call tries again.
    """
