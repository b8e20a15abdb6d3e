"""Links of built pages: which of them lead nowhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page can be linked to, where it links, and pictures without words."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.silent: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.anchors.update(value for name in ("id", "name") if (value := values.get(name)))
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        if tag == "img" and not (values.get("alt") or "").strip():
            self.silent.append(values.get("src") or "?")


def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def broken(site: Path, read: dict[Path, Page]) -> list[str]:
    """Links to files that are not there, and to anchors that the page there does not have."""
    dead = []
    for path, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#top"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                dead.append(f"{path.relative_to(site)}: {link}")
            elif (
                parts.fragment
                and target in read
                and unquote(parts.fragment) not in read[target].anchors
            ):
                dead.append(f"{path.relative_to(site)}: {link} (no such place)")
    return dead
