"""The built site as a person meets it: in a browser, at four widths, light and dark; searched,
copied from, linked.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.browser import links
from tests.docs.browser.chromium import Browser, browser_path

HERE = Path(__file__).resolve().parents[2]
SITE = HERE / "docs" / "_build" / "html"
PAGES = [
    "index.html",
    "doors/new-policy.html",
    "sweeps.html",
    "glossary.html",
    "api/jaxbandits.policies.budget.html",
]
WIDTHS = (400, 800, 1100, 1280)
SCHEMES = ("light", "dark")
PICTURES = os.environ.get("SITE_PICTURES")  # a folder for screenshots

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(browser_path() is None, reason="no chromium"),
    pytest.mark.skipif(
        importlib.util.find_spec("furo") is None,
        reason="the site's tools are not installed: [docs]",
    ),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Path:
    """Built, if it is not."""
    if not (SITE / "index.html").exists():
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            [*command, "-d", SITE.parent / "doctrees", HERE / "docs", SITE],
            check=True,
            cwd=HERE,
            env=os.environ | {"PATH": path},
        )
    return SITE


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    tab = Browser(tmp_path_factory.mktemp("chromium"))
    yield tab
    tab.close()


def screenshot(browser: Browser, name: str) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(PICTURES) / f"{name}.png")


def all_pages(site: Path) -> list[str]:
    """Those above, and the gallery with its first example where there is one."""
    gallery = site / "auto_gallery"
    first = sorted(gallery.glob("plot_*.html"))[:1]
    return PAGES + [
        str(path.relative_to(site)) for path in [gallery / "index.html", *first] if path.exists()
    ]


BROKEN_PICTURES = """
[...document.images].filter(x => x.offsetParent !== null && !(x.complete && x.naturalWidth > 0) || !x.alt.trim())
    .map(x => x.src)
"""
WITHOUT_BUTTON = """
[...document.querySelectorAll('article div.highlight > pre')]
    .filter(x => !x.parentElement.querySelector('button.copybtn'))
    .map(x => x.textContent.slice(0, 40))
"""
BRIGHTNESS = """
getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3
"""


def test_pages_at_four_widths_light_and_dark(browser: Browser, address: str, site: Path) -> None:
    wrong = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            browser.look(width, scheme)
            for page in all_pages(site):
                browser.open(f"{address}/{page}")
                browser.until(
                    "document.querySelectorAll('button.copybtn').length || !document.querySelector('pre')"
                )
                label = f"{page}, {width}, {scheme}: "
                wrong += [label + line for line in browser.complaints()]
                wrong += [f"{label}picture {x}" for x in browser.evaluate(BROKEN_PICTURES)]
                wrong += [f"{label}no copy button: {x}" for x in browser.evaluate(WITHOUT_BUTTON)]
                beyond = browser.evaluate(
                    "document.documentElement.scrollWidth - window.innerWidth"
                )
                wrong += [f"{label}{beyond} pixels beyond the window"] if beyond > 0 else []
                wrong += (
                    [f"{label}not {scheme}"]
                    if (browser.evaluate(BRIGHTNESS) > 128) != (scheme == "light")
                    else []
                )
                screenshot(browser, f"{page.replace('/', '-')}-{width}-{scheme}")
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("ω-UCB", "findings/omega_ucb_tails"),
        ("OmegaUCB", "api/jaxbandits.policies.budget"),
        ("kill -9", "sweeps"),
    ],
)
def test_search_finds(browser: Browser, address: str, words: str, page: str) -> None:
    browser.look(1280, "light")
    browser.open(f"{address}/index.html")
    browser.evaluate(f"document.querySelector('input[name=q]').value = {words!r}; 0")
    browser.evaluate("document.querySelector('form.sidebar-search-container').submit(); 0")
    browser.until(
        "location.pathname.endsWith('search.html') && document.querySelector('#search-results li')"
    )
    condition = (
        f"[...document.querySelectorAll('#search-results a')].some(x => x.href.includes({page!r}))"
    )
    browser.until(condition)
    assert browser.complaints() == []
    screenshot(browser, f"search-{re.sub(r'[^a-z]', '', words.lower())}")


def test_a_copy_button_copies_what_can_be_run(browser: Browser, address: str) -> None:
    """Neither prompts nor output."""
    browser.look(1280, "light")
    browser.open(f"{address}/live.html")
    browser.until("document.querySelector('button.copybtn')")
    script = "document.addEventListener('copy', () => { window.copied = document.activeElement.value }, true); 0"
    browser.evaluate(script)
    browser.evaluate("document.querySelector('button.copybtn').click(); 0")
    copied = browser.until("window.copied")
    assert copied.startswith("import jax\n") and ">>>" not in copied and "\n0.18" not in copied
    compile(copied, "copied", "exec")


def test_every_link_leads_somewhere_and_every_picture_has_words(site: Path) -> None:
    read = links.pages(site)
    assert len(read) > 50
    assert links.broken(site, read) == []
    assert [f"{path.name}: {src}" for path, page in read.items() for src in page.silent] == []
