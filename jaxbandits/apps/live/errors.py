"""The exceptions of an agent, three kinds that a service handles differently."""

from __future__ import annotations

from jaxbandits.core import InputError


class Misuse(InputError):
    """An invalid call: an unknown ticket or arm, an outcome out of range, a wrong clock."""


class Settled(Misuse):
    """The ticket was settled before, or expired so long ago that it is forgotten."""


class Broken(OSError):
    """The call could not be written: disk full, file moved or locked, agent closed or in a fork.

    Calls that only read still work, and the next call tries again.
    """
