"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def mathml(node: nodes.Element, block: bool = False) -> str:
    """A formula; where docutils cannot read it, a warning and its text."""
    text = " ".join(node.astext().split()).replace(r"\dots", r"\ldots")
    text = re.sub(r"\\([bB]igg?)(?=[(\[])", r"\\\1l", text)  # docutils knows \bigl( and \bigr) only
    text = re.sub(r"\\([bB]igg?)(?=[)\]])", r"\\\1r", text)
    try:
        return str(tex2mathml(text, as_block=block))
    except MathError as problem:
        LOG.warning("%s in %s", problem, text, location=node)
        return f"<code>{nodes.unescape(text)}</code>"


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body += [self.starttag(node, "div", CLASS="math"), mathml(node, block=True), "</div>\n"]
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
