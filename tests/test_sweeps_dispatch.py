"""Blocks handed out and taken in, with executors of this process: the same bytes, and what goes wrong is named."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pickle
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import pytest

import jaxbandits as jb
from jaxbandits._cli.sweep import status_lines
from jaxbandits.core import machine
from jaxbandits.sweeps import Processes, Sweep, UnfinishedError, elsewhere, finish, make_plan, open_engine, play_shard
from jaxbandits.sweeps.compiled import for_this_processor, shared_programs
from jaxbandits.sweeps.dispatch import Dispatch
from jaxbandits.sweeps.elsewhere import play, request_of
from jaxbandits.sweeps.here import Here
from jaxbandits.sweeps.log import no_note, read_logs
from jaxbandits.sweeps.processes import WorkerDied
from jaxbandits.sweeps.spec_file import load_spec
from jaxbandits.sweeps.store import Folder

TEXT = """
import jax, jaxbandits as jb

sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]),
    environments=jb.environments.random_bernoulli(jax.random.key(1), instances=3, arms=3),
    budgets=[4.0, 16.0], constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"),
    replicates=2, engine="scan", block_seconds=2e-5)
"""


def spec(**changes):
    usual = {
        "policies": jb.policies.OmegaUCB(rho=[0.25, 1.0]),
        "environments": jb.environments.random_bernoulli(jax.random.key(1), instances=3, arms=3),
        "constraint": lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"),
        "budgets": [4.0, 16.0],
        "replicates": 2,
        "engine": "scan",
        "block_seconds": 2e-5,
    }
    return Sweep(**(usual | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes that this process makes."""
    folder = tmp_path_factory.mktemp("whole")
    jb.sweep(spec(), folder)
    return contents(folder)


class Inline:
    """An executor that plays at once, and does ``odd`` to what comes out: it may change it, raise, or give a future."""

    def __init__(self, odd=lambda answer, numbers, call: answer, seconds_per_call=0.0):
        self.odd, self.seconds_per_call, self.calls = odd, seconds_per_call, []

    def submit(self, function, request, numbers, call):
        self.calls.append(list(numbers))
        future = Future()
        try:
            answer = self.odd(pickle.loads(pickle.dumps(function(request, numbers, call))), numbers, call)
            if isinstance(answer, Future):
                return answer
            future.set_result(answer)
        except RuntimeError as problem:
            future.set_exception(problem)
        return future


def contents(folder):
    """Every file outside the log, by name."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def blocks_of(found):
    return sorted(name for name in found if name.startswith("blocks/"))


# ---- the same bytes


def test_any_executor_makes_the_same_bytes(whole, tmp_path):
    assert len(blocks_of(whole)) >= 6
    with ThreadPoolExecutor(2) as threads:
        jb.sweep(spec(), tmp_path / "threads", executor=threads)
    bundles = Inline(seconds_per_call=5e-5)
    jb.sweep(spec(), tmp_path / "bundles", executor=bundles)
    assert contents(tmp_path / "threads") == contents(tmp_path / "bundles") == whole
    assert max(map(len, bundles.calls)) > 1 and sorted(number for call in bundles.calls for number in call) == list(
        range(len(blocks_of(whole)))
    )
    found = jb.sweep(spec(), executor=Inline())
    assert found.data.identical(jb.sweep(spec()).data)


def test_worker_processes_play_and_are_replaced(whole, tmp_path):
    with Processes(1) as processes:
        with pytest.raises(WorkerDied, match=r"worker process \d+ ended \(3\)"):
            processes.submit(os._exit, 3).result(60)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            processes.submit(divmod, 1, 0).result(60)
        jb.sweep(spec(), tmp_path / "out", executor=processes)
        (worker,) = {note["worker"] for note in read_logs(tmp_path / "out")[0] if note["event"] == "block"}
        assert int(worker.rpartition(":")[2]) != os.getpid()
        waiting = [processes.submit(sum, [n]) for n in range(3)]
    assert not concurrent.futures.wait(waiting, 60).not_done and contents(tmp_path / "out") == whole
    with pytest.raises(RuntimeError, match="were ended"):
        processes.submit(sum, [])


def test_two_shards_and_finish(whole, tmp_path):
    for number in (0, 1):
        play_shard(spec(), tmp_path / f"part-{number}", (number, 2))
    parts = [tmp_path / "part-0", tmp_path / "part-1"]
    count = len(blocks_of(whole))
    assert [len(Folder(part).listed()) for part in parts] == [count - count // 2, count // 2]
    with pytest.raises(jb.InputError, match=rf"parts: {count // 2} of {count} blocks are in none of the folders"):
        finish(spec(), tmp_path / "half", parts[:1])
    harmed = tmp_path / "part-1" / blocks_of(contents(parts[1]))[0]
    content = harmed.read_bytes()
    harmed.write_bytes(content[:-1] + b"?")
    told = []
    with pytest.raises(jb.InputError, match=rf"parts: 1 of {count} blocks"):
        finish(spec(), tmp_path / "all", parts, notice=told.append)
    assert "checksum" in told[0] and "is not taken" in told[0]
    harmed.write_bytes(content)
    finish(spec(), tmp_path / "all", parts)
    assert contents(tmp_path / "all") == whole
    with pytest.raises(jb.InputError, match="seed: 1 given"):
        finish(spec(seed=1), tmp_path / "other", parts)
    with pytest.raises(jb.InputError, match="shard: number"):
        play_shard(spec(), tmp_path / "out", (2, 2))


def test_a_spec_travels_as_its_text(whole, tmp_path):
    path = tmp_path / "spec.py"
    path.write_text(TEXT)
    plan = make_plan(load_spec(str(path)))
    request = request_of(plan)
    path.unlink()  # a worker elsewhere has no such file
    assert request["how"] == "source" and request["spec"] == (str(path), TEXT.encode())
    answer = play(request, [0, 2])
    assert sorted(answer["blocks"]) == [0, 2]
    ours = [name.removeprefix("blocks/") for name in blocks_of(whole)]
    assert [answer["blocks"][number][0] for number in (0, 2)] == [ours[0], ours[2]]
    request["spec"] = (str(path), TEXT.replace("0.25", "0.5").encode())
    assert "policies.OmegaUCB.rho.values" in play(request, [0])["refused"]


# ---- what goes wrong


def test_a_block_that_fails_three_times_is_named_and_the_rest_goes_on(whole, tmp_path):
    def without_3(answer, numbers, call):
        return {"worker": "a:1", "failed": "MemoryError: none left"} if 3 in numbers else answer

    told, count = [], len(blocks_of(whole))
    executor = Inline(without_3, seconds_per_call=1.0)
    with pytest.raises(UnfinishedError) as caught:
        jb.sweep(spec(), tmp_path / "out", executor=executor, notice=told.append)
    text = (
        "one block failed 3 times: block 3 (OmegaUCB on FiniteArms, budget 16): MemoryError: none left (worker a:1); "
    )
    text += f"{count - 1} of {count} blocks are finished"
    assert str(caught.value) == text and "is left out" in told[-1]
    assert [3] in executor.calls and len(Folder(tmp_path / "out").listed()) == count - 1
    jb.sweep(spec(), tmp_path / "out")
    assert contents(tmp_path / "out") == whole


def test_dead_workers_and_harmed_bytes_cost_a_block(whole, tmp_path):
    def odd(answer, numbers, call):
        if call in (1, 4):
            raise WorkerDied("worker process 7 was killed (signal 9)")
        if call == 2:
            (number,) = numbers
            name, content = answer["blocks"][number]
            answer["blocks"][number] = name, content[:-1] + b"?"
        return answer

    jb.sweep(spec(), tmp_path / "out", executor=Inline(odd))
    assert contents(tmp_path / "out") == whole
    why = [note["why"] for note in read_logs(tmp_path / "out")[0] if note["event"] == "failed"]
    assert len(why) == 3 and "was killed (signal 9)" in why[0] and any("checksum" in text for text in why)


def test_who_may_not_play_is_named_and_others_do_the_work(whole, tmp_path):
    def odd(answer, numbers, call):
        return {"worker": "old:1", "refused": "it has jax '0.1'"} if call % 2 else answer

    told = []
    jb.sweep(spec(), tmp_path / "out", executor=Inline(odd), notice=told.append)
    assert told == ["worker old:1 is refused: it has jax '0.1'"] and contents(tmp_path / "out") == whole
    everybody = Inline(lambda answer, numbers, call: {"worker": f"old:{call % 2}", "refused": "it has jax '0.1'"})
    with pytest.raises(
        UnfinishedError, match=r"no worker may play: worker old:1 is refused: it has jax '0.1'; worker old"
    ):
        jb.sweep(spec(), executor=everybody, notice=told.append)
    assert len(everybody.calls) <= len(blocks_of(whole))


def test_workers_that_could_make_other_bits_refuse(monkeypatch):
    request = request_of(make_plan(spec()))
    assert "blocks" in play(request, [0])
    for field, says in (
        ("jax", "it has jax "),
        ("code", "other source files of jaxbandits"),
        ("platform", "the kind of"),
    ):
        identity = json.loads(request["identity"])
        identity["versions"][field] = "0.0.1"
        refused = play({**request, "identity": json.dumps(identity)}, [0])["refused"]
        assert says in refused and "it must be '0.0.1'" in refused
    assert "it has python" in play({**request, "spec": ("2.7", b"never read")}, [0])["refused"]
    assert "cannot be read here" in play({**request, "spec": (request["spec"][0], b"nothing")}, [0])["refused"]
    monkeypatch.setattr(elsewhere, "make_plan", lambda *_: 1 / 0)
    elsewhere._resident.cache_clear()
    assert play(request, [0])["failed"] == "ZeroDivisionError: division by zero"


def test_an_executor_that_ends_is_told_of_in_one_line(tmp_path):
    class Broken(Inline):
        def submit(self, *args):
            raise concurrent.futures.BrokenExecutor("a process was terminated")

    def cancelled(answer, numbers, call):
        future = Future()
        future.cancel()
        return future if call == 2 else answer

    with pytest.raises(UnfinishedError, match=r"takes no work \(BrokenExecutor: a process was terminated\); 0 of"):
        jb.sweep(spec(), executor=Broken())
    with pytest.raises(UnfinishedError, match=r"has lost its work \(CancelledError\); 1 of \d+ blocks are finished"):
        jb.sweep(spec(), tmp_path / "out", executor=Inline(cancelled))
    assert len(Folder(tmp_path / "out").listed()) == 1


def test_ctrl_c_cancels_what_waits():
    waiting = []

    class Interrupted(Future):
        def done(self):
            if len(waiting) > 3:
                raise KeyboardInterrupt
            return False

    def never(answer, numbers, call):
        waiting.append(Interrupted())
        return waiting[-1]

    with pytest.raises(KeyboardInterrupt):
        jb.sweep(spec(), executor=Inline(never))
    assert len(waiting) > 3 and all(future.cancelled() for future in waiting)


def test_a_failure_in_this_process_is_told_too(monkeypatch):
    class Bad(Here):
        def _line(self, unit):
            line = super()._line(unit)
            line.queue.serve = lambda *_: 1 / 0
            return line

    plan = make_plan(spec())
    work = Dispatch(plan, Bad(plan, jax.local_devices(), 2), lambda *_: None, no_note, False, lambda text: None)
    with pytest.raises(
        UnfinishedError, match=r"blocks failed 3 times: block 0 .* ZeroDivisionError: division by zero; 0"
    ):
        work.run(plan.blocks)


# ---- at the door


def test_what_is_no_executor_and_what_cannot_be_sent():
    with pytest.raises(jb.InputError, match=r"executor: 3 given; it must be an object with submit"):
        jb.sweep(spec(), executor=3)
    with pytest.raises(jb.InputError, match="workers: 2 given; it must be left out: the executor has"):
        jb.sweep(spec(), executor=Inline(), workers=2)
    lock = __import__("threading").Lock()
    odd = spec(constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts") if lock else None)
    with pytest.raises(jb.InputError, match="spec: cannot be sent to another process"):
        jb.sweep(odd, executor=Inline())


@pytest.mark.parametrize(
    "name", ["", "processes", "processes:0", "processes:x", "dask:4", "dask:local:0", "dask:host", "slurm:x", "ray:4"]
)
def test_unknown_engines(name):
    with pytest.raises(jb.InputError, match=r"executor: .* given; it must be processes:N, dask:tcp"), open_engine(name):
        raise AssertionError


@pytest.mark.parametrize("name, package", [("dask:local:1", "distributed"), ("slurm", "submitit")])
def test_engines_without_their_package(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    extra = name.partition(":")[0]
    with pytest.raises(jb.InputError, match=rf"pip install 'jaxbandits\[{extra}\]'"), open_engine(name):
        raise AssertionError


def test_engines_that_do_not_answer(monkeypatch, tmp_path):
    monkeypatch.setattr("jaxbandits.sweeps.engines._PATIENCE", "0.2s")
    with (
        pytest.raises(jb.InputError, match="the address of a Dask scheduler that runs"),
        open_engine("dask:tcp://127.0.0.1:9"),
    ):
        raise AssertionError
    with (
        pytest.raises(jb.InputError, match="slurm with options that submitit takes"),
        open_engine("slurm:cluster=moon"),
    ):
        raise AssertionError
    with (
        pytest.raises(jb.InputError, match="slurm with options"),
        open_engine(f"slurm:cluster=local,folder={tmp_path},speed=9"),
    ):
        raise AssertionError


def test_programs_are_kept_per_kind_of_processor(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        with shared_programs() as variables:
            folder = variables["JAX_COMPILATION_CACHE_DIR"]
            assert os.stat(folder).st_mode & 0o077 == 0
        assert not os.path.exists(folder)
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        with shared_programs() as variables:
            assert variables["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path)
        assert tmp_path.exists()
        for_this_processor()
        for_this_processor()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / machine.processor())
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_status_says_who_played_what(tmp_path):
    def odd(answer, numbers, call):
        if 2 in numbers:
            return {"worker": "node-0:1", "failed": "MemoryError"}
        return {**answer, "worker": f"node-{numbers[0] % 2}:1"}

    with pytest.raises(UnfinishedError):
        jb.sweep(spec(), tmp_path / "out", executor=Inline(odd), notice=lambda text: None)
    plan = make_plan(spec())
    for parity in (0, 1):
        made = [block for block in plan.blocks if block.number % 2 == parity and block.number != 2]
        lanes = sum(block.lanes.size for block in made)
        (line,) = [x for x in status_lines(Folder(tmp_path / "out")) if f"worker node-{parity}:1" in x]
        assert line.startswith(f"  worker node-{parity}:1: {len(made)} blocks, {lanes} lanes, ") and "rounds/s" in line
