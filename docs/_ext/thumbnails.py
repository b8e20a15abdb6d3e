"""Words for the thumbnails of the gallery, which are written without."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

THUMBNAIL = re.compile(r"(images/thumb/sphx_glr_plot_(\w+?)_thumb\.\w+\n\s+:alt:) *$", re.M)


def words(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("auto_gallery/"):
        source[0] = THUMBNAIL.sub(lambda found: f"{found[1]} Picture of {found[2].replace('_', ' ')}", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
