"""The built site, read as HTML: links lead somewhere, pictures have words, nothing is fetched from
elsewhere, and what a copy button takes can be run.

How pages look is not tested: no runner of ours has a browser.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

HERE = Path(__file__).resolve().parents[2]
SITE = HERE / "docs" / "_build" / "html"
NOT_COPIED = {"gp", "go", "linenos"}  # prompts and output: `copybutton_exclude` in docs/conf.py


class Page(HTMLParser):
    """Where a page can be linked to, where it links, what it fetches, and what it shows."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.silent: list[str] = []  # pictures without words
        self.copied: list[str] = []  # of each block of code
        self._open: list[tuple[str, set[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if tag in ("script", "img") or values.get("rel") in ("stylesheet", "icon", "preload"):
            self.fetched += [values[x] for x in ("href", "src") if "//" in values.get(x, "")]
        if tag == "img" and not values.get("alt", "").strip():
            self.silent.append(values.get("src", "?"))
        if tag == "pre":
            self.copied.append("")
        if tag in ("pre", "span"):
            self._open.append((tag, set(values.get("class", "").split())))

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag == self._open[-1][0]:
            self._open.pop()

    def handle_data(self, text: str) -> None:
        if any(tag == "pre" for tag, _ in self._open):
            is_copied = not any(classes & NOT_COPIED for _, classes in self._open)
            self.copied[-1] += text * is_copied


def broken(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Links to files that are not there, and to anchors that the page there does not have."""
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#top"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else None
            if not target.exists() or (parts.fragment and anchors is not None
                                       and unquote(parts.fragment) not in anchors):  # fmt: skip
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead


def read(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_what_is_wrong_with_a_page_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="b.html#gone">x</a><a href="c.html">x</a><img src="p.png">'
        '<script src="https://elsewhere/x.js"></script><pre><span class="gp">&gt;&gt;&gt; </span>'
        '<span class="n">x</span> = 1\n<span class="go">1</span></pre>'
    )
    (tmp_path / "b.html").write_text('<p id="here">')
    (tmp_path / "p.png").write_text("")
    pages = read(tmp_path)
    page = pages[tmp_path / "a.html"]
    assert broken(tmp_path, pages) == ["a.html: b.html#gone", "a.html: c.html"]
    assert page.silent == ["p.png"] and page.fetched == ["https://elsewhere/x.js"]
    assert page.copied == ["x = 1\n"]


@pytest.mark.integration
@pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="no tools of the site: [docs]")
def test_the_built_site() -> None:
    if not (SITE / "index.html").exists():
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        folders = ["-d", str(SITE.parent / "doctrees"), str(HERE / "docs"), str(SITE)]
        subprocess.run([*command, *folders], check=True, cwd=HERE, env=os.environ | {"PATH": path})
    pages = read(SITE)
    assert len(pages) > 50
    assert broken(SITE, pages) == []
    assert {path.name: page.silent for path, page in pages.items() if page.silent} == {}
    assert {path.name: page.fetched for path, page in pages.items() if page.fetched} == {}
    first = pages[SITE / "live.html"].copied[0]
    assert first.startswith("import os, random, tempfile\nimport jax\n") and ">>>" not in first
    assert (
        "(3.98, " in (HERE / "docs" / "live.md").read_text() and "(3.98, " not in first
    )  # its output
    compile(first, "copied", "exec")
