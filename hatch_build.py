"""The README as a package index shows it: a relative link would lead nowhere there, and no picture
would load.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """What hatchling asks for the fields that pyproject.toml calls dynamic."""

    def update(self, metadata: dict) -> None:
        """The repository's address before every relative link; pyproject.toml says it, once."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = LINK.sub(lambda found: f"]({metadata['urls']['Repository']}/{found[1]})", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
