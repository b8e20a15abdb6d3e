"""How many lanes a worker holds: no more than fit into memory, and no result depends on it."""

import operator
import os
import signal
import threading
import time

import chex
import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import driver, pool
from jaxbandits._engine.setup import lay_out
from jaxbandits._progress import Progress

ARMS = jb.environments.random_bernoulli(jax.random.key(0), instances=40, arms=3)
LIMIT = jb.TotalBudget(5.0, last_pull="counts")


def the_task():
    (task,) = lay_out(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1)).tasks
    return task


def test_as_many_as_fit(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    assert pool.usual_slots(task, 1, places) == 64
    lane = driver.state_bytes(task, 64) / 64
    for fit in (1, 4, 11, 32):
        monkeypatch.setattr(pool, "memory_left", lambda device, fit=fit: 2 * pool.STATES["cpu"] * lane * (fit + 0.5))
        assert pool.usual_slots(task, 1, places) == 1 << (fit.bit_length() - 1)
    monkeypatch.setattr(pool, "memory_left", lambda device: 0)
    assert pool.usual_slots(task, 1, places) == 1


def test_two_workers_share_a_memory(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    lane = driver.state_bytes(task, 32) / 32
    monkeypatch.setattr(pool, "memory_left", lambda device: 2 * pool.STATES["cpu"] * lane * 16.5)
    assert pool.usual_slots(task, 2, places) == 8


def test_little_memory_changes_no_bit(monkeypatch):
    usual = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan")
    monkeypatch.setattr(pool, "memory_left", lambda device: 0)
    tight = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan")
    chex.assert_trees_all_equal(dict(usual.ledger), dict(tight.ledger))


def test_the_machine_tells_its_memory():
    assert 1 << 24 < pool.memory_left(jax.local_devices()[0]) < 1 << 50


def count_calls(monkeypatch):
    calls = []
    real = pool.driver.compiled

    class Counted:
        def __init__(self, *which):
            self.lower = real(*which).lower
            self.play = real(*which)

        def __call__(self, *given):
            calls.append(given)
            return self.play(*given)

    monkeypatch.setattr(pool.driver, "compiled", Counted)
    monkeypatch.setattr(pool, "usual_workers", lambda places: 1)
    return calls


def test_slots_take_waiting_lanes_without_the_host(monkeypatch):
    calls = count_calls(monkeypatch)
    monkeypatch.setattr(driver, "_SHORT", 0)
    # A long chunk, so that a call is not over before its lanes are.
    usual = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", chunk=64)
    alone = len(calls)
    few = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", chunk=64, slots=2)
    chex.assert_trees_all_equal(*((dict(x.ledger), dict(x.final)) for x in (usual, few)))
    assert len(calls) - alone < 17, len(calls) - alone  # with a call for every pair of lanes it would be 20 at least


def test_batches_give_the_bits_of_slots_that_are_handed_on(monkeypatch):
    calls = count_calls(monkeypatch)
    given = {"key": jax.random.key(1), "engine": "scan", "replicates": 3, "slots": 16}
    batches = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, **given)
    assert {len(call) for call in calls} == {7} and len(calls) >= 8  # 120 lanes, 16 at a time
    monkeypatch.setattr(driver, "_SHORT", 0)
    handed_on = jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, **given)
    chex.assert_trees_all_equal(*((dict(x.ledger), dict(x.final), x.ended) for x in (batches, handed_on)))


def test_lanes_that_have_ended_are_handed_over_though_the_worker_is_stopped(monkeypatch):
    queue = pool.Queue(the_task(), 32)
    real = pool.driver.compiled

    class Stopping:
        def __init__(self, *which):
            self.lower, self.play = real(*which).lower, real(*which)

        def __call__(self, *given):
            played, report = self.play(*given)
            if (played.seat < 0).any():
                queue.stop.set()
            return played, report

    monkeypatch.setattr(pool.driver, "compiled", Stopping)
    future = queue.add(pool.Job(queue.task, queue.task.order))
    queue.serve(0, jax.local_devices()[0])
    assert queue.stop.is_set() and 0 < queue.done < queue.total and not future.done()


def test_jobs_of_one_task_are_answered_one_by_one_and_their_work_is_counted_once():
    task, seen = the_task(), []
    with pool.Workers(jax.local_devices()[:1], 2, slots=8) as workers:
        halves = [pool.Job(task, task.order[part::2], work=10.0) for part in (0, 1)]
        stored = pool.Job(task, task.order[:3], store=lambda accounts: accounts.status.size)
        first = workers.wait(workers.submit(halves), lambda work, done: seen.append((work, done)))
        assert workers.work == pytest.approx(20.0) and seen[-1] == (pytest.approx(20.0), task.order.size)
        assert max(work for work, _ in seen) <= 20.0 + 1e-3
        assert workers.wait(workers.submit([stored]), lambda *_: None) == [3]  # lanes that are played again
        (whole,) = workers.wait(workers.submit([pool.Job(task, task.order)]), lambda *_: None)
    for half, part in zip(first, halves, strict=True):
        chex.assert_trees_all_equal(half, jax.tree.map(operator.itemgetter(np.sort(part.lanes)), whole))


def test_what_fails_in_a_worker_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(pool.Queue, "serve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jb.simulate(jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan")


def test_ctrl_c_is_answered_soon_whatever_a_chunk_is():
    """A billion rounds, in chunks of a million: the interrupt comes while they are played."""
    arms = jb.environments.FiniteArms.bernoulli(np.full((1, 500), 0.5), np.full((1, 500), 0.5))
    interrupted = []

    class Impatient(Progress):
        def start(self, names, runs):
            def report(work, finished):
                if work > 0 and not interrupted:
                    interrupted.append(time.perf_counter())
                    threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

            return report

    given = {"key": jax.random.key(0), "replicates": 8, "marks": 1, "engine": "scan", "chunk": 1 << 20}
    with pytest.raises(KeyboardInterrupt), Impatient(shown=False, tasks=1, runs=8) as progress:
        jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(2**29), progress=progress, **given)
    assert time.perf_counter() - interrupted[0] < 2


def test_no_worker_hoards():
    queue = pool.Queue(the_task(), 4)
    queue.add(pool.Job(queue.task, queue.task.order))
    queue.workers = 2
    assert queue.take(idle=4, waits=0, free=16).size == 10  # a quarter of 40: two workers, twice each
    assert queue.take(idle=0, waits=6, free=16).size == 1  # with what it has in line, a quarter of 30
    assert queue.take(idle=0, waits=7, free=16).size == 0  # nothing has ended since: no more
    assert queue.take(idle=4, waits=0, free=5).size == 5  # no more than there is room for
    assert queue.take(idle=20, waits=0, free=20).size == 20  # slots that idle come first
    assert queue.take(idle=-3, waits=7, free=16).size == 0
    assert queue.waiting
    assert queue.take(idle=4, waits=0, free=16).size == 4
    assert not queue.waiting
