"""Python in a process of its own, which finds this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def python(
    code: str, *words: str, check: bool = True, environ: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """What came of ``code``, whose arguments are ``words``; ``environ`` are further variables."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | (environ or {}), check=False, **more,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done
