"""The pool: lanes that fit into memory, that wait, end and travel; no result depends on any of it."""

import operator
import os
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

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


def play(**keywords):
    return jb.simulate(
        jb.policies.OmegaUCB(), ARMS, LIMIT, key=jax.random.key(1), engine="scan", **keywords
    )


def same(*results):
    chex.assert_trees_all_equal(*((dict(x.ledger), dict(x.final), x.ended) for x in results))


def test_as_many_as_fit(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    assert pool.usual_slots(task, 1, places) == 64
    lane = task.shapes.bytes(64) / 64
    for fit in (1, 4, 11, 32):
        monkeypatch.setattr(
            pool, "memory_left", lambda device, fit=fit: 2 * pool.STATES["cpu"] * lane * (fit + 0.5)
        )
        assert pool.usual_slots(task, 1, places) == 1 << (fit.bit_length() - 1)
    lane = task.shapes.bytes(32) / 32
    monkeypatch.setattr(pool, "memory_left", lambda device: 2 * pool.STATES["cpu"] * lane * 16.5)
    assert pool.usual_slots(task, 2, places) == 8, "two workers share a memory"
    usual = play()
    monkeypatch.setattr(pool, "memory_left", lambda device: 0)
    assert pool.usual_slots(task, 1, places) == 1
    same(usual, play())


def test_the_machine_tells_its_memory():
    assert 1 << 24 < pool.memory_left(jax.local_devices()[0]) < 1 << 50


def watched(monkeypatch, see):
    """Every call of the compiled program is shown to ``see`` when it has ended."""
    real = pool.driver.compiled

    class Watched:
        def __init__(self, *arguments):
            self.lower, self.play = real(*arguments).lower, real(*arguments)

        def __call__(self, *inputs):
            outputs = self.play(*inputs)
            see(*outputs)
            return outputs

    monkeypatch.setattr(pool.driver, "compiled", Watched)


def test_slots_take_waiting_lanes_without_the_host(monkeypatch):
    calls = []
    watched(monkeypatch, lambda *outputs: calls.append(0))
    monkeypatch.setattr(pool, "usual_workers", lambda *_: 1)
    usual = play(chunk=64)  # a long chunk, so that a call is not over before its lanes are
    alone = len(calls)
    same(usual, play(chunk=64, slots=2))
    # With a call for every pair of lanes it would be 20 at least
    assert len(calls) - alone < 17, len(calls) - alone


def test_lanes_that_have_ended_are_handed_over_though_the_worker_is_stopped(monkeypatch):
    queue = pool.Queue(the_task(), lambda native: 32)
    monkeypatch.setattr(pool.CallLength, "learn", lambda *_: None)  # so each call plays one round
    watched(monkeypatch, lambda slots, report: queue.stop.set() if (slots.seat < 0).any() else None)
    future = queue.add(pool.Job(queue.task, queue.task.order))
    queue.serve(0, jax.local_devices()[0])
    assert queue.stop.is_set() and 0 < queue.done < queue.total and not future.done()


def test_jobs_of_one_task_are_answered_one_by_one_and_their_work_is_counted_once():
    task, reports = the_task(), []
    with pool.Workers(jax.local_devices()[:1], 2, slots=8) as workers:
        halves = [pool.Job(task, task.order[part::2], work=10.0) for part in (0, 1)]
        stored = pool.Job(task, task.order[:3], store=lambda accounts: accounts.status.size)
        first = workers.wait(
            workers.submit(halves), lambda work, done: reports.append((work, done))
        )
        assert workers.work == pytest.approx(20.0)
        assert reports[-1] == (pytest.approx(20.0), task.order.size)
        assert max(work for work, _ in reports) <= 20.0 + 1e-3
        # Lanes that are played again
        assert workers.wait(workers.submit([stored]), lambda *_: None) == [3]
        (whole,) = workers.wait(workers.submit([pool.Job(task, task.order)]), lambda *_: None)
    for half, part in zip(first, halves, strict=True):
        chex.assert_trees_all_equal(
            half, jax.tree.map(operator.itemgetter(np.sort(part.lanes)), whole)
        )


def test_what_fails_in_a_worker_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(pool.Queue, "serve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        play()


def test_a_late_failure_leaves_the_next_try_alone(monkeypatch):
    """Two workers fail one after the other; in between, the task is given to a new queue."""
    real, again, served, lock = pool.Queue.serve, threading.Event(), [], threading.Lock()

    def serve(queue, number, device):
        with lock:
            served.append(queue)
            late = served.count(served[0]) == 2
        if queue is not served[0]:
            return real(queue, number, device)
        if late:
            assert again.wait(60)
        raise ZeroDivisionError

    monkeypatch.setattr(pool.Queue, "serve", serve)
    task = the_task()
    with pool.Workers(jax.local_devices()[:1], 2, slots=8) as workers:
        with pytest.raises(ZeroDivisionError):
            workers.wait(workers.submit([pool.Job(task, task.order)]), lambda *_: None)
        while len(served) < 2:
            time.sleep(0.01)
        futures = workers.submit([pool.Job(task, task.order)])
        (second,) = workers._queues.values()
        again.set()
        workers.wait(futures, lambda *_: None)
        while len(workers._idle) < 2:
            time.sleep(0.01)
        # With its program, for jobs that come later
        assert list(workers._queues.values()) == [second]


def test_ctrl_c_is_answered_soon_whatever_a_chunk_is():
    """A billion rounds, in chunks of a million: the interrupt comes while they are played."""
    arms = jb.environments.FiniteArms.bernoulli(np.full((1, 500), 0.5), np.full((1, 500), 0.5))
    interrupted = []

    class Impatient(Progress):
        def start(self, names, runs):
            def report(work, finished):
                now = time.perf_counter()
                # once more where it is lost: jax has a callback of the garbage collector, and there
                # it is dropped
                if work > 0 and (not interrupted or now > interrupted[-1] + 5):
                    interrupted.append(now)
                    threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

            return report

    keywords = {
        "key": jax.random.key(0),
        "replicates": 8,
        "marks": 1,
        "engine": "scan",
        "chunk": 1 << 20,
    }
    # What runs in the background ignores it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Impatient(style=False, tasks=1, runs=8) as progress:
            jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(2**29), progress=progress, **keywords)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - interrupted[-1] < 2


def test_no_worker_hoards(monkeypatch):
    queue = pool.Queue(the_task(), lambda native: 4)
    queue.add(pool.Job(queue.task, queue.task.order))
    queue.workers = 2
    # Half of 40 with few rounds: visits are dearer
    assert pool.is_short(queue.task) and queue.take(idle=0, waits=19, free=40).size == 1
    queue.add(pool.Job(queue.task, queue.task.order[:1]))
    monkeypatch.setattr(pool, "_SHORT", 0)
    # A quarter of 40: two workers, twice each
    assert queue.take(idle=4, waits=0, free=16).size == 10
    # With what it has in line, a quarter of 30
    assert queue.take(idle=0, waits=6, free=16).size == 1
    assert queue.take(idle=0, waits=7, free=16).size == 0  # nothing has ended since: no more
    assert queue.take(idle=4, waits=0, free=5).size == 5  # no more than there is room for
    assert queue.take(idle=20, waits=0, free=20).size == 20  # slots that idle come first
    assert queue.take(idle=-3, waits=7, free=16).size == 0
    assert queue.waiting
    assert queue.take(idle=4, waits=0, free=16).size == 4
    assert not queue.waiting


# --- lanes that travel to a device and back in pieces ---------------------------------------------------------------


@pytest.mark.parametrize("slots", [4, None])
@pytest.mark.quick_rows("None")
def test_lanes_that_travel_change_no_bit(monkeypatch, slots):
    near = play(slots=slots, replicates=5)
    monkeypatch.setattr(driver, "_LEAST", 2)
    monkeypatch.setattr(pool, "RunBuffer", partial(driver.RunBuffer, near=False))
    far = play(slots=slots, replicates=5)
    same(near, far)


def test_only_what_is_new_travels(monkeypatch):
    task = the_task()
    monkeypatch.setattr(driver, "_LEAST", 2)
    buffer = driver.RunBuffer(task, 16, jax.local_devices()[0], near=False)
    buffer.take(np.arange(16), np.arange(16))
    outcome = task.shapes.outcome(buffer.lanes.row.shape[0])
    outcome = jax.tree.map(
        lambda x: np.arange(np.prod(x.shape), dtype=x.dtype).reshape(x.shape), outcome
    )
    ended = np.isin(np.arange(16), (3, 7, 11))
    numbers, handed = buffer.leave(outcome, ended)
    assert numbers.tolist() == [3, 7, 11] and buffer.free.tolist() == [3, 7, 11]
    chex.assert_trees_all_equal(
        jax.tree.map(lambda x: np.asarray(x)[:3], handed), jax.tree.map(lambda x: x[ended], outcome)
    )
    # The next power of two, not all sixteen
    assert {x.shape[0] for x in jax.tree.leaves(handed)} == {4}
    buffer.take(np.array([3, 11]), np.array([38, 20]))
    assert buffer.lane_of[[3, 7, 11]].tolist() == [38, -1, 20]
    sits = buffer.lane_of >= 0
    expected = jax.tree.map(
        lambda x: np.asarray(x)[sits], task.lanes(np.maximum(buffer.lane_of, 0))
    )
    chex.assert_trees_all_equal(jax.tree.map(lambda x: np.asarray(x)[sits], buffer.lanes), expected)


def test_a_device_with_few_lanes_has_one_worker():
    gpus = [SimpleNamespace(platform="gpu")] * 2
    lanes = 1, 2, 1 << 14, (1 << 15) - 1, 1 << 15
    assert [pool.usual_workers(gpus, n) for n in lanes] == [1, 2, 2, 2, 4]
    assert pool.usual_workers(gpus) == 4 and pool.usual_workers(jax.local_devices(), 1) == 1


def test_cuda_graphs_can_be_turned_off(monkeypatch):
    monkeypatch.delenv("JAXBANDITS_CUDA_GRAPHS", raising=False)
    assert "WHILE" in driver.options("gpu")["xla_gpu_enable_command_buffer"]
    monkeypatch.setenv("JAXBANDITS_CUDA_GRAPHS", "0")
    assert "xla_gpu_enable_command_buffer" not in driver.options("gpu")
    assert "WHILE" in driver.options("gpu", captured=True)["xla_gpu_enable_command_buffer"]
    assert driver.options("cpu", captured=True) == driver.options("cpu", captured=False) != {}


def test_a_state_that_is_kept_plays_as_a_new_one(monkeypatch):
    """Whoever played with it before: here other instances and a longer budget, to other marks."""
    monkeypatch.setattr(pool, "_SPARES", {})
    other = jb.environments.random_bernoulli(jax.random.key(5), instances=40, arms=3)
    longer = jb.TotalBudget(9.0, last_pull="counts")
    new = play()
    jb.simulate(jb.policies.OmegaUCB(), other, longer, key=jax.random.key(2), engine="scan")
    kept = {key: id(state) for key, state in pool._SPARES.items()}
    same(new, play())
    assert kept and {key: id(pool._SPARES[key]) for key in kept} != kept, "it was taken"
    monkeypatch.setattr(pool, "_SPARES_KEPT", 1)
    same(new, play(chunk=3), play(slots=2), play(slots=4))
    assert len(pool._SPARES) == 1, "the oldest goes"
    monkeypatch.setattr(pool, "_SPARE_BYTES", 0)
    pool._SPARES.clear()
    same(new, play())
    assert not pool._SPARES, "none that takes much memory"


def test_large_states_are_few(monkeypatch):
    task, places = the_task(), jax.local_devices()[:1]
    monkeypatch.setattr(pool, "is_short", lambda task: False)
    for fit, slots, plain in ((100, 32, 64), (31, 16, 64), (9, 8, 32), (1, 8, 8)):
        size = fit * task.shapes.state_bytes
        monkeypatch.setattr(pool, "_STATE_BYTES", (size, 4 * size))
        assert [pool.usual_slots(task, 1, places, native=x) for x in (1, 0)] == [slots, plain]
