"""Lanes that travel to a device and back in pieces: the same results as where host and device share their memory."""

from functools import partial

import chex
import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import driver, pool
from jaxbandits._engine.setup import lay_out

ARMS = jb.environments.random_bernoulli(jax.random.key(0), instances=40, arms=3)
LIMIT = jb.TotalBudget(5.0, last_pull="counts")


def play(**given):
    return jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", replicates=5, **given)


@pytest.mark.parametrize("slots", [4, None])
def test_lanes_that_travel_change_no_bit(monkeypatch, slots):
    monkeypatch.setattr(driver, "_SHORT", 0)  # a batch has no seats
    near = play(slots=slots)
    monkeypatch.setattr(driver, "_LEAST", 2)
    monkeypatch.setattr(pool, "RunBuffer", partial(driver.RunBuffer, near=False))
    far = play(slots=slots)
    chex.assert_trees_all_equal(*((dict(x.ledger), dict(x.final), x.ended) for x in (near, far)))


def test_only_what_is_new_travels(monkeypatch):
    (task,) = lay_out(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1)).tasks
    monkeypatch.setattr(driver, "_LEAST", 2)
    here = driver.RunBuffer(task, 16, jax.local_devices()[0], near=False)
    here.take(np.arange(16), np.arange(16))
    outcome = driver.blank_shapes(4, task.environment, here.lanes)[1]
    outcome = jax.tree.map(lambda x: np.arange(np.prod(x.shape), dtype=x.dtype).reshape(x.shape), outcome)
    ended = np.isin(np.arange(16), (3, 7, 11))
    numbers, left = here.leave(outcome, ended)
    assert numbers.tolist() == [3, 7, 11] and here.free.tolist() == [3, 7, 11]
    chex.assert_trees_all_equal(
        jax.tree.map(lambda x: np.asarray(x)[:3], left), jax.tree.map(lambda x: x[ended], outcome)
    )
    assert {x.shape[0] for x in jax.tree.leaves(left)} == {4}  # the next power of two, not all sixteen
    here.take(np.array([3, 11]), np.array([38, 20]))
    assert here.lane_of[[3, 7, 11]].tolist() == [38, -1, 20]
    sits = here.lane_of >= 0
    wanted = jax.tree.map(lambda x: np.asarray(x)[sits], task.lanes(np.maximum(here.lane_of, 0)))
    chex.assert_trees_all_equal(jax.tree.map(lambda x: np.asarray(x)[sits], here.lanes), wanted)


def test_cuda_graphs_are_an_option(monkeypatch):
    assert "xla_gpu_enable_command_buffer" not in driver.options("gpu")
    monkeypatch.setenv("JAXBANDITS_CUDA_GRAPHS", "1")
    assert "WHILE" in driver.options("gpu")["xla_gpu_enable_command_buffer"]
    assert "xla_gpu_enable_command_buffer" not in driver.options("gpu", captured=False)
    assert driver.options("cpu", captured=True) == driver.options("cpu", captured=False) != {}
