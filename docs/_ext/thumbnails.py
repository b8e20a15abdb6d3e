"""Words for pictures that are written without: the gallery's thumbnails, and what cells of a page
draw.
"""

from __future__ import annotations

import json
import re

from sphinx.application import Sphinx

THUMBNAIL = re.compile(r"(images/thumb/sphx_glr_plot_(\w+?)_thumb\.\w+\n\s+:alt:) *$", re.M)
# In the page as it is written a header of MyST would stand in a cell that readers copy; a comment
# may.
CELL = re.compile(r"^(```\{code-cell\} ipython3\n)# Picture: (.*)\n", re.M)


def words(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("auto_gallery/"):
        source[0] = THUMBNAIL.sub(
            lambda found: f"{found[1]} Picture of {found[2].replace('_', ' ')}", source[0]
        )
    source[0] = CELL.sub(
        lambda found: (
            f"{found[1]}---\nmystnb: {{image: {{alt: {json.dumps(found[2])}, width: 100%}}}}\n---\n"
        ),
        source[0],
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
