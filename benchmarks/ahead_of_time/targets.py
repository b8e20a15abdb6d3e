"""Devices to compile for. This process itself computes on CPU."""

from __future__ import annotations

import os
from pathlib import Path

NEEDS = {
    "cuda": "the wheels jax-cuda13-plugin and jax-cuda13-pjrt of jax's own version, and ptxas (or nvidia-cuda-nvcc)",
    "tpu": "the wheel libtpu, as pip install 'jax[tpu]' brings it",
    "cpu": "nothing",
}
_TPU = {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-4"}


def settle():
    """What must be said before jax starts."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    for name, value in {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", **_TPU}.items():
        os.environ.setdefault(name, value)


def target(platform, topology):
    """The device; or SystemExit with a line that says what is missing."""
    import jax
    from jax.experimental import topologies

    try:
        if platform == "cuda":
            facts = (Path(__file__).parent / "h100.txtpb").read_text()
            made = topologies.get_topology_desc(platform="cuda", target_config=facts, topology="1x1x1")
        elif platform == "tpu":
            made = topologies.get_topology_desc(platform="tpu", topology_name=topology)
        else:
            return jax.devices("cpu")[0]
    except Exception as problem:
        first = str(problem).splitlines()[0]
        needs = f"it needs {NEEDS[platform]}"
        raise SystemExit(f"benchmarks.ahead_of_time: no compiler for {platform} ({first}); {needs}") from None
    return made.devices[0]
