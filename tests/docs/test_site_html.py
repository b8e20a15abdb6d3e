"""The built site: nothing is fetched from elsewhere, and what a copy button takes can be run.

Links and words of pictures are those of the sources (test_site.py); Sphinx warns of its own.
"""

from __future__ import annotations

import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
SITE = HERE / "docs" / "_build" / "html"
FETCHED = re.compile(r"<(?:script|img|link)\b[^>]*?(?:src|href)=\"((?:https?:)?//[^\"]+)\"[^>]*>")
NOT_COPIED = re.compile(r'<span class="(?:gp|go)">.*?</span>', re.DOTALL)  # as in docs/conf.py


def fetched(page: str) -> list[str]:
    """What a page loads from elsewhere; other links in its head are named, not loaded."""
    loads = re.compile(r'<(script|img)|rel="(stylesheet|icon|preload)"')
    return [tag[1] for tag in FETCHED.finditer(page) if loads.search(tag[0])]


def copied(page: str) -> str:
    """The first block of code without prompts and output."""
    block = re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert block, "no code"
    return html.unescape(re.sub(r"<[^>]+>", "", NOT_COPIED.sub("", block[1])))


@pytest.mark.integration
@pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="no tools of the site: [docs]")
def test_the_built_site() -> None:
    if not (SITE / "index.html").exists():
        # The gallery's scripts are played by `make docs` and `make test-long`
        command = [sys.executable, "-m", "sphinx", "-W", "-q", "-D", "plot_gallery=0"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        folders = ["-d", str(SITE.parent / "doctrees"), str(HERE / "docs"), str(SITE)]
        subprocess.run([*command, *folders], check=True, cwd=HERE, env=os.environ | {"PATH": path})
    pages = {path.name: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    assert (
        len(pages) > 50 and {name: x for name, page in pages.items() if (x := fetched(page))} == {}
    )
    first = copied(pages["live.html"])
    assert first.startswith("import os, random, tempfile\nimport jax\n") and ">>>" not in first
    compile(first, "copied", "exec")
