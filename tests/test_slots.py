"""How many lanes a worker holds: no more than fit into memory, and no result depends on it."""

import threading

import chex
import jax
import pytest

import jaxbandits as jb
from jaxbandits import simulation
from jaxbandits._engine import blanks, pool, resources
from jaxbandits._engine.layout import lay_out

ARMS = jb.environments.random_bernoulli(jax.random.key(0), instances=40, arms=3)
LIMIT = jb.TotalBudget(5.0, last_pull="counts")


def the_task():
    (task,) = lay_out(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1)).tasks
    return task


def test_as_many_as_fit(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    assert resources.usual_slots(task, 1, places) == 64
    lane = blanks.state_bytes(task, 64) / 64
    for fit in (1, 4, 11, 32):
        monkeypatch.setattr(
            resources, "memory_left", lambda device, fit=fit: 2 * resources.STATES["cpu"] * lane * (fit + 0.5)
        )
        assert resources.usual_slots(task, 1, places) == 1 << (fit.bit_length() - 1)
    monkeypatch.setattr(resources, "memory_left", lambda device: 0)
    assert resources.usual_slots(task, 1, places) == 1


def test_two_workers_share_a_memory(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    lane = blanks.state_bytes(task, 32) / 32
    monkeypatch.setattr(resources, "memory_left", lambda device: 2 * resources.STATES["cpu"] * lane * 16.5)
    assert resources.usual_slots(task, 2, places) == 8


def test_little_memory_changes_no_bit(monkeypatch):
    usual = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan")
    monkeypatch.setattr(resources, "memory_left", lambda device: 0)
    tight = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan")
    chex.assert_trees_all_equal(dict(usual.ledger), dict(tight.ledger))


def test_the_machine_tells_its_memory():
    assert 1 << 24 < resources.memory_left(jax.local_devices()[0]) < 1 << 50


def count_calls(monkeypatch):
    calls = []
    real = pool.drive.compiled

    class Counted:
        def __init__(self, platform):
            self.lower = real(platform).lower
            self.play = real(platform)

        def __call__(self, *given):
            calls.append(given)
            return self.play(*given)

    monkeypatch.setattr(pool.drive, "compiled", Counted)
    monkeypatch.setattr(simulation, "usual_workers", lambda places: 1)
    return calls


def test_slots_take_waiting_lanes_without_the_host(monkeypatch):
    calls = count_calls(monkeypatch)
    # A long chunk, so that a call is not over before its lanes are.
    usual = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", chunk=64)
    alone = len(calls)
    few = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", chunk=64, slots=2)
    chex.assert_trees_all_equal(*((dict(x.ledger), dict(x.final)) for x in (usual, few)))
    assert len(calls) - alone < 17, len(calls) - alone  # with a call for every pair of lanes it would be 20 at least


def test_lanes_that_have_ended_are_handed_over_though_the_worker_is_stopped(monkeypatch):
    task, stop, kept = the_task(), threading.Event(), []
    real = pool.drive.compiled

    class Stopping:
        def __init__(self, platform):
            self.lower, self.play = real(platform).lower, real(platform)

        def __call__(self, *given):
            played, report = self.play(*given)
            if (played.seat < 0).any():
                stop.set()
            return played, report

    monkeypatch.setattr(pool.drive, "compiled", Stopping)
    queue = pool.Queue(task, 32, lambda numbers, *_: kept.extend(numbers))
    queue.serve(0, jax.local_devices()[0], stop)
    assert stop.is_set() and 0 < len(kept) == queue.done


def test_work_that_is_done_is_counted_once():
    task, seen = the_task(), []
    queue = pool.Queue(task, 8, lambda *_: None)
    pool.Run([queue], lambda work, done: seen.append((work, done))).finish(jax.local_devices()[:1], 1)
    assert queue.work == pytest.approx(task.order.size) == queue.done
    assert max(work for work, _ in seen) <= task.order.size + 1e-3


def test_no_worker_hoards():
    queue = pool.Queue(the_task(), 4, lambda *_: None)
    queue.workers = 2
    assert queue._take(idle=4, waits=0, free=16).size == 10  # a quarter of 40: two workers, twice each
    assert queue._take(idle=0, waits=6, free=16).size == 1  # with what it has in line, a quarter of 30
    assert queue._take(idle=0, waits=7, free=16).size == 0  # nothing has ended since: no more
    assert queue._take(idle=4, waits=0, free=5).size == 5  # no more than there is room for
    assert queue._take(idle=20, waits=0, free=20).size == 20  # slots that idle come first
    assert queue._take(idle=-3, waits=7, free=16).size == 0
    assert queue.waiting
    assert queue._take(idle=4, waits=0, free=16).size == 4
    assert not queue.waiting
