"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

MATH, ACCENTS = "{http://www.w3.org/1998/Math/MathML}", tuple("ˉˆ˜~^¯")
ElementTree.register_namespace("", MATH.strip("{}"))
LOG = logging.getLogger(__name__)


def mathml(node: nodes.Element, block: bool = False) -> str:
    """A formula; where docutils cannot read it, a warning and its text."""
    text = " ".join(node.astext().split()).replace(r"\dots", r"\ldots")
    text = re.sub(r"\\([bB]igg?)(?=[(\[])", r"\\\1l", text)  # docutils knows \bigl( and \bigr) only
    text = re.sub(r"\\([bB]igg?)(?=[)\]])", r"\\\1r", text)
    try:
        return mended(str(tex2mathml(text, as_block=block)))
    except MathError as problem:
        LOG.warning("%s in %s", problem, text, location=node)
        return f"<code>{nodes.unescape(text)}</code>"


def mended(text: str) -> str:
    """An index stands beside a letter with an accent, not below it; functions stand apart from what
    is before them.
    """
    tree = ElementTree.fromstring(text.replace("&ApplyFunction;", ""))
    for parent in tree.iter():
        for child in parent:
            if child.tag == f"{MATH}munderover" and child[-1].text in ACCENTS:
                base, index, accent = child
                over = ElementTree.Element(f"{MATH}mover")
                over.extend([base, accent])
                child.tag = f"{MATH}msub"
                child[:] = [over, index]
            elif child.tag == f"{MATH}mover" and child[-1].text in ACCENTS:
                # Without a font for formulas, accents are drawn into their letters
                child.attrib.pop("accent", None)
        if parent.tag in (f"{MATH}math", f"{MATH}mrow", f"{MATH}msqrt"):
            apart(parent)
    return ElementTree.tostring(tree, encoding="unicode")


def apart(row: ElementTree.Element) -> None:
    """Thin spaces around functions: 2 ln t."""
    parts: list[ElementTree.Element] = []
    for part in row:
        if part.tag == f"{MATH}mo" and not part.text:  # it stood for "apply this function"
            parts.append(space())
            continue
        if (
            parts
            and part.tag == f"{MATH}mi"
            and len(part.text or "") > 1
            and parts[-1].tag != f"{MATH}mo"
        ):
            parts.append(space())
        parts.append(part)
    row[:] = parts


def space() -> ElementTree.Element:
    return ElementTree.Element(f"{MATH}mspace", {"width": "0.17em"})


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body += [self.starttag(node, "div", CLASS="math"), mathml(node, block=True), "</div>\n"]
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
