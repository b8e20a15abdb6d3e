"""What this machine has: cores, memory, the most memory that was used. Each in the same unit on every system."""

from __future__ import annotations

import hashlib
import os
import platform
import sys

_NOT_TOLD = 4 << 30


def cores() -> int:
    """How many cores this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def part_of_cores(number: int, count: int) -> list[int]:
    """The cores of one of ``count`` processes that share those of this one; empty where the system does not tell.

    Example:
        >>> sorted(part_of_cores(0, 1)) == part_of_cores(0, 1), len(part_of_cores(1, 2)) <= cores()
        (True, True)
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    mine = sorted(os.sched_getaffinity(0))
    return mine[number::count] or [mine[number % len(mine)]]


def processor() -> str:
    """A name of the kind of processor: where it is another one, compiled code of this machine may not run."""
    told = [platform.machine(), platform.processor()]
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            told.append(next((line for line in lines if line.startswith(("flags", "Features"))), ""))
    except OSError:
        pass
    return hashlib.sha256("".join(told).encode()).hexdigest()[:12]


def available_memory() -> int | None:
    """Bytes that this machine can still give, caches that it would drop included; None where it does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            told = dict(line.split(":") for line in lines)
        return int(told["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return None


def free_memory() -> int:
    """Memory in bytes that nothing uses, not even a cache; 4 GiB where the system does not tell."""
    return _pages("SC_AVPHYS_PAGES")


def memory() -> int:
    """All memory of the machine, free or not, in bytes; 4 GiB where the system does not tell."""
    return _pages("SC_PHYS_PAGES")


def _pages(name: str) -> int:
    if name in getattr(os, "sysconf_names", {}):
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    return _NOT_TOLD


def peak_memory() -> int | None:
    """The largest resident memory of this process so far, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return _peak_on_windows()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # bytes there, KiB on other systems


def _peak_on_windows() -> int | None:
    import ctypes

    libraries = getattr(ctypes, "windll", None)
    if libraries is None:
        return None

    class Counters(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_uint32),
            ("faults", ctypes.c_uint32),
            *((name, ctypes.c_size_t) for name in ("peak", "now", *"abcdef")),
        )

    counters = Counters(size=ctypes.sizeof(Counters))
    ask = libraries.psapi.GetProcessMemoryInfo
    ask.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    process = ctypes.c_void_p(-1)  # this one
    return int(counters.peak) if ask(process, ctypes.byref(counters), counters.size) else None
