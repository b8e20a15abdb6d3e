"""report.html in a real browser: no errors, nothing clipped, tables that sort, as wide as a desk or
a phone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.apps.commands import command

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
LONG = "Spring sale — women 25 to 34; everybody who looked at shoes and left_without_buying_anything_at_all_2026"

# told to the frame around the page: what sticks out, and the first column of the first table before
# and after a click
PROBE = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth, out = [];
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > width + 0.5 || box.left < -0.5)) out.push(e.tagName + e.textContent.slice(0, 30));
    const cut = e.scrollWidth > e.clientWidth + 1;
    if (cut && getComputedStyle(e).overflowX !== "visible") out.push(e.tagName);
  }
  const first = () => [...document.querySelector("table").tBodies[0].rows].map(row => row.cells[1].dataset.value);
  const pictures = [...document.images].filter(x => !x.naturalWidth).length, before = first();
  document.querySelector("table").tHead.rows[0].cells[1].querySelector("button").click();
  parent.postMessage({width, scroll: document.documentElement.scrollWidth, out, pictures, before, after: first(),
    high: document.documentElement.scrollHeight}, "*");
})</script>"""
FRAME = """<!DOCTYPE html><body style="margin:0">
<iframe src="page.html" width="{width}" height="900"></iframe><pre></pre>
<script>addEventListener("message", e =>
  document.querySelector("pre").textContent = JSON.stringify(e.data))</script>"""


def opened(page: str, width: int, folder: Path) -> tuple[dict, str]:
    """What the page told in a frame of that width, and what the browser said."""
    (folder / "page.html").write_text(page.replace("</body>", PROBE + "</body>"))
    (folder / "frame.html").write_text(FRAME.format(width=width))
    switches = (
        "--headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --dump-dom"
    )
    window = [f"--user-data-dir={folder / 'user'}", f"--window-size={max(width, 600)},1000"]
    command = [
        str(BROWSER),
        *switches.split(),
        *window,
        "--virtual-time-budget=5000",
        f"file://{folder / 'frame.html'}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    match = re.search(r"<pre>(\{.*?\})</pre>", done.stdout, re.DOTALL)
    assert match, (done.stdout[-500:], done.stderr[-2000:])
    return json.loads(
        match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    ), done.stderr


@pytest.mark.integration
@pytest.mark.skipif(BROWSER is None, reason="no browser: apt-get install chromium")
def test_the_page_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        f"{place},{ad},{300 + 50 * n},{400 + 30 * n},{30 + 9 * n}\n"
        for place in ("north & <b>east</b>", LONG)
        for n, ad in enumerate(("a", LONG, "c"))
    )
    Path("ads.csv").write_text(f"instance,name,clicks,spent,conversions\n{rows}")
    line = "compare --arms ads.csv --budget 60 --policies omega_ucb --rho 0.25,1 --runs 20"
    assert command(f"{line} --policy omega_ucb(rho=1) --out out") == 0
    page = Path("out/report.html").read_text()
    assert "<b>east" not in page  # names are text
    for width in (1280, 390):
        probe, log = opened(page, width, tmp_path)
        assert probe["width"] == width and probe["scroll"] <= width, probe
        assert probe["out"] == [] and probe["pictures"] == 0
        assert probe["after"] == sorted(probe["before"], key=float, reverse=True)
        assert "CONSOLE" not in log  # neither errors nor warnings
