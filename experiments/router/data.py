"""1,824 and 1,785 prompts, answers and costs of three models, from the wheel ``paretobandit``."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxbandits.core.checks import InputError

MODELS = {
    "Llama-3.1-8B": "meta-llama/llama-3.1-8b-instruct",
    "Mistral-Large": "mistralai/mistral-large-2512",
    "Gemini-2.5-Pro": "google/gemini-2.5-pro",
}
FILES = {  # of paretobandit 0.1.1, and their sha256
    "train": ("val.jsonl", "9590556ee832bb8e27b0e838eb4fd6b656e69e39c99ef067fc6379abc7f168ef"),
    "test": (
        "test_holdout.jsonl",
        "b2f7e0e034902d254b3620770d98824cb932ad9cbecd38b9ce00345620a70665",
    ),
}


class Split(NamedTuple):
    """Requests, and the quality and cost of every model's answer."""

    prompts: list[str]
    quality: np.ndarray  # [N, K]: as the data's judge says, in [0, 1]
    dollars: np.ndarray  # [N, K]

    @property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean quality and mean dollars of every model."""
        return self.quality.mean(axis=0), self.dollars.mean(axis=0)


def load() -> tuple[Split, Split]:
    """(train, test), the wheel's own split."""
    spec = importlib.util.find_spec("pareto_bandit")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "paretobandit: not installed; python -m pip install paretobandit==0.1.1 brings the prompts"
        )
    folder = Path(spec.submodule_search_locations[0]) / "data" / "examples"
    train, test = (_read(folder / name, digest) for name, digest in FILES.values())
    return train, test


def _read(path: Path, digest: str) -> Split:
    raw = path.read_bytes() if path.is_file() else b""
    if (actual := hashlib.sha256(raw).hexdigest()) != digest:
        raise InputError(f"{path}: sha256 {actual}; it must be {digest}, as in paretobandit 0.1.1")
    lines = [json.loads(line) for line in raw.splitlines()]
    cells = np.array(
        [
            [[x["arms"][m][quantity] for m in MODELS.values()] for quantity in ("reward", "cost")]
            for x in lines
        ]
    )
    return Split([x["prompt"] for x in lines], cells[:, 0], cells[:, 1])
