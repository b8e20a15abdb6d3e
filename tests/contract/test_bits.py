"""The same bits whatever surrounds a lane: devices, x64, other settings, a number's form."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._numerics.normal import standard_normal
from jaxbandits.core import streams
from jaxbandits.result import pick
from jaxbandits.testing import assert_same_results, compilations

from . import ledger_hash
from .worlds import INSTANCES, KEY, world

ROOT = Path(__file__).parents[2]
BUDGET = jb.TotalBudget(30.0, last_pull="counts")


@functools.cache
def local_digest(kind: str, name: str) -> str:
    return {"simulated": ledger_hash.simulated, "live": ledger_hash.live}[kind](name)


def elsewhere(*names: str, **settings: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **settings}
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.ledger_hash", *names],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


cpu_only = pytest.mark.skipif(
    jax.default_backend() != "cpu" or len(jax.devices()) > 1,
    reason="bits are compared with one CPU device",
)


@cpu_only
@pytest.mark.integration
def test_four_devices_give_the_bits_of_one() -> None:
    names = ("omega_ucb", "bts")
    four = elsewhere(*names, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert (four["devices"], len(jax.devices())) == (4, 1)
    assert four["simulated"] == {name: local_digest("simulated", name) for name in names}


@cpu_only
@pytest.mark.integration
def test_x64_changes_no_bit() -> None:
    wide = elsewhere(JAX_ENABLE_X64="1")
    assert wide["x64"] and not jax.config.jax_enable_x64  # type: ignore[attr-defined]
    assert wide["leap"] == wide["simulated"]["omega_star_ucb"]
    for kind, names in (("simulated", tuple(ledger_hash.POLICIES)), ("live", ledger_hash.LIVE)):
        narrow = {name: local_digest(kind, name) for name in names}
        different = [name for name in narrow if narrow[name] != wide[kind][name]]
        assert not different, f"{kind}: x64 changes the bits of {different}"


def run(policy: Any, **changes: Any) -> jb.Result:
    keywords: dict[str, Any] = {
        "key": KEY,
        "replicates": 3,
        "marks": 4,
        "slots": 16,
        "chunk": 16,
        "engine": "scan",
    }
    return jb.simulate(policy, world("bernoulli"), BUDGET, **(keywords | changes))


def test_the_form_of_a_number_and_other_numbers_compile_nothing() -> None:
    base, key = run(jb.policies.OmegaUCB(rho=0.25)), jax.random.key(99)
    forms = [
        0.25,
        np.float64(0.25),
        np.float32(0.25),
        np.array(0.25),
        jnp.float32(0.25),
        [0.25],
        [[0.25] * INSTANCES],
    ]
    with compilations() as compiled:
        results = [run(jb.policies.OmegaUCB(rho=rho)) for rho in forms]
        run(jb.policies.OmegaUCB(rho=1))
        permuted = world("bernoulli").take([2, 1, 0])  # type: ignore[attr-defined]
        limit = jb.TotalBudget([5.0, 6.5, 7.0], last_pull="counts")
        keywords = {"key": key, "replicates": [5, 1], "marks": [0.3, 0.5, 0.9, 1.0], "chunk": 5}
        jb.simulate(
            jb.policies.OmegaUCB(rho=0.5), permuted, limit, slots=16, engine="scan", **keywords
        )
    assert not compiled, "other forms and other numbers of everything"
    for rho, result in zip(forms, results, strict=True):
        assert_same_results(base, result, f"rho=0.25 and rho={rho!r}")


@jb.pytree
class Scaled(jb.environments.ContextLaw):
    """A user's own: each feature times the first, which a compiler might move about."""

    shape = (2,)

    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        words = jax.vmap(lambda at: streams.words(key, round, at))(jnp.zeros(1, jnp.uint32))
        x = standard_normal(words, 3.0).reshape(2)
        return x * jnp.where(jnp.isnan(x[0]), 1, x[0])


@pytest.mark.parametrize("slots", [None, 1])
def test_a_lane_alone_has_the_bits_that_it_has_among_others(slots: int | None) -> None:
    theta = np.c_[[0.5] * 3, np.linspace(-0.3, 0.3, 6).reshape(3, 2)]
    arms = jb.environments.ContextualArms.linear(theta, theta[::-1], Scaled())
    common = {"key": jax.random.key(1), "marks": 3, "engine": "scan"}
    play = functools.partial(jb.simulate, jb.policies.UCB1(), arms, jb.Horizon(100), **common)
    alone, many = play(replicates=1, slots=slots), play(replicates=5)
    assert_same_results(alone, pick(many, replicates=[0]), "one lane and five")
