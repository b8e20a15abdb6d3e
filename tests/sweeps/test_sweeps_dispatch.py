"""Blocks handed out and taken in, in this process: same bytes, named failures."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import pytest

import jaxbandits as jb
from jaxbandits._engine import pool
from jaxbandits.apps._cli.status import status_lines
from jaxbandits.core.checks import InputError
from jaxbandits.sweeps import UnfinishedError, executors, open_engine
from jaxbandits.sweeps.executors import shared_programs
from jaxbandits.sweeps.run import play_block, request_of
from jaxbandits.sweeps.spec import load_spec, make_plan
from jaxbandits.sweeps.store import Folder, read_logs
from tests.sweeps.test_sweeps import contents, world
from tests.sweeps.test_sweeps import spec as usual_spec

TEXT = """
import jax, jaxbandits as jb

sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]),
    environments=jb.environments.random_bernoulli(jax.random.key(1), instances=3, arms=3),
    budgets=[4.0, 16.0], constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"),
    replicates=2, engine="scan", block_seconds=2e-5)
"""


def spec(**changes):
    policies = jb.policies.OmegaUCB(rho=[0.25, 1.0])
    return usual_spec(
        **({"policies": policies, "environments": world(), "seed": 0, "marks": 1} | changes)
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes that this process makes."""
    folder = tmp_path_factory.mktemp("whole")
    jb.sweep(spec(), folder)
    return contents(folder)


class Inline:
    """An executor that plays at once and does ``odd`` to what comes out."""

    def __init__(self, odd=lambda answer, number, call: answer):
        self.odd, self.calls = odd, []

    def submit(self, function, request, number):
        self.calls.append(number)
        future = Future()
        try:
            answer = self.odd(
                pickle.loads(pickle.dumps(function(request, number))), number, len(self.calls)
            )
            if isinstance(answer, Future):
                return answer
            future.set_result(answer)
        except RuntimeError as problem:
            future.set_exception(problem)
        return future


def blocks_of(files):
    return sorted(name for name in files if name.startswith("blocks/"))


# ---- the same bytes


@pytest.mark.integration
def test_any_executor_makes_the_same_bytes(whole, tmp_path):
    assert len(blocks_of(whole)) >= 6
    with ThreadPoolExecutor(2) as threads:
        jb.sweep(spec(), tmp_path / "threads", executor=threads)
    at_once = Inline()
    jb.sweep(spec(), tmp_path / "at once", executor=at_once)
    assert contents(tmp_path / "threads") == contents(tmp_path / "at once") == whole
    assert sorted(at_once.calls) == list(range(len(blocks_of(whole))))
    result = jb.sweep(spec(), executor=Inline())
    assert result.data.identical(jb.sweep(spec()).data)


@pytest.mark.integration
def test_worker_processes_play_on_their_cores_and_are_replaced(whole, tmp_path):
    with open_engine("processes:2") as client:
        caller_cores = os.sched_getaffinity(0)
        cores = list(client.run(lambda: os.sched_getaffinity(0)).values())
        assert len(cores) == 2
        assert set.union(*cores) == caller_cores
        assert len(caller_cores) < 2 or not set.intersection(*cores)
        before = set(client.run(os.getpid).values())
        os.kill(min(before), signal.SIGKILL)
        jb.sweep(spec(), tmp_path / "out", executor=client)
        players = {
            note["worker"] for note in read_logs(tmp_path / "out")[0] if note["event"] == "block"
        }
        assert not {int(worker.rpartition(":")[2]) for worker in players} & {
            os.getpid(),
            min(before),
        }
    assert contents(tmp_path / "out") == whole


def test_a_spec_travels_as_its_text(whole, tmp_path):
    path = tmp_path / "spec.py"
    path.write_text(TEXT)
    plan = make_plan(load_spec(str(path)))
    request = request_of(plan)
    path.unlink()  # a worker elsewhere has no such file
    assert request["how"] == "source" and request["spec"] == (str(path), TEXT.encode())
    ours = [name.removeprefix("blocks/") for name in blocks_of(whole)]
    assert [play_block(request, number)["name"] for number in (0, 2)] == [ours[0], ours[2]]
    request["spec"] = (str(path), TEXT.replace("0.25", "0.5").encode())
    assert "policies.OmegaUCB.rho.values" in play_block(request, 0)["refused"]


# ---- what goes wrong


def test_a_block_that_fails_three_times_is_named_and_the_rest_goes_on(whole, tmp_path):
    def without_3(answer, number, call):
        if number == 3:
            raise RuntimeError("MemoryError: none left")
        return answer

    notices, count = [], len(blocks_of(whole))
    executor = Inline(without_3)
    with pytest.raises(UnfinishedError) as caught:
        jb.sweep(spec(), tmp_path / "out", executor=executor, notice=notices.append)
    assert str(caught.value) == (
        "one block failed 3 times: block 3 (OmegaUCB on FiniteArms, budget 16): RuntimeError: MemoryError: none left; "
        f"{count - 1} of {count} blocks are finished"
    )
    assert "is left out" in notices[-1] and executor.calls.count(3) == 3
    assert len(Folder(tmp_path / "out").listed()) == count - 1
    jb.sweep(spec(), tmp_path / "out")
    assert contents(tmp_path / "out") == whole


def test_dead_workers_and_harmed_bytes_cost_a_block(whole, tmp_path):
    def odd(answer, number, call):
        if call in (1, 4):
            raise RuntimeError("worker process 7 was killed (signal 9)")
        if call == 2:
            answer["content"] = answer["content"][:-1] + b"?"
        return answer

    jb.sweep(spec(), tmp_path / "out", executor=Inline(odd))
    assert contents(tmp_path / "out") == whole
    reasons = [note["why"] for note in read_logs(tmp_path / "out")[0] if note["event"] == "failed"]
    assert len(reasons) >= 3
    assert all(
        any(part in text for text in reasons) for part in ("was killed (signal 9)", "checksum")
    )


def test_workers_that_could_make_other_bits_are_refused_in_one_line(monkeypatch):
    request = request_of(make_plan(spec()))
    assert "content" in play_block(request, 0)
    for field in ("jax", "code", "platform"):
        identity = json.loads(request["identity"])
        identity["versions"][field] = "0.0.1"
        refused = play_block({**request, "identity": json.dumps(identity)}, 0)["refused"]
        assert f"its {field} is '" in refused
        assert "it must be '0.0.1', as where the sweep began" in refused
    assert (
        "its python is"
        in play_block({**request, "how": "2.7", "spec": b"never read"}, 0)["refused"]
    )
    identity = json.loads(request["identity"])
    identity["seed"] = 7  # a spec that makes something else there
    assert (
        "seed: 0 here; it must be 7"
        in play_block({**request, "identity": json.dumps(identity)}, 0)["refused"]
    )
    everybody = Inline(
        lambda answer, number, call: {"worker": "old:1", "refused": "its jax is '0.1'"}
    )
    with pytest.raises(UnfinishedError, match=r"old:1 must not run it: its jax is '0.1'"):
        jb.sweep(spec(), executor=everybody)


def test_an_executor_that_ends_is_told_of_in_one_line(tmp_path):
    class Broken(Inline):
        def submit(self, *args):
            raise concurrent.futures.BrokenExecutor("a process was terminated")

    def cancelled(answer, number, call):
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future if call == 2 else answer

    with pytest.raises(UnfinishedError, match="BrokenExecutor: a process was terminated"):
        jb.sweep(spec(), executor=Broken())
    with pytest.raises(UnfinishedError, match=r"lost its work .*; \d of"):
        jb.sweep(spec(), tmp_path / "out", executor=Inline(cancelled))


def test_ctrl_c_cancels_what_waits(monkeypatch):
    waiting = []

    def never(answer, number, call):
        waiting.append(Future())
        return waiting[-1]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent.futures, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jb.sweep(spec(), executor=Inline(never))
    assert len(waiting) > 3 and all(future.cancelled() for future in waiting)


def test_a_failure_in_this_process_is_told_too(monkeypatch):
    monkeypatch.setattr(pool.Queue, "serve", lambda *_: 1 / 0)
    with pytest.raises(UnfinishedError, match=r"3 times: block 0 .* ZeroDivisionError"):
        jb.sweep(spec(), notice=lambda text: None)


# ---- at the door


def test_what_is_no_executor_and_what_cannot_be_sent():
    with pytest.raises(jb.InputError, match=r"executor: 3 given; it must be an object with submit"):
        jb.sweep(spec(), executor=3)
    with pytest.raises(jb.InputError, match="workers: 2 given"):
        jb.sweep(spec(), executor=Inline(), workers=2)
    lock = __import__("threading").Lock()
    odd = spec(
        constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts") if lock else None
    )
    with pytest.raises(jb.InputError, match="spec: cannot be sent to another process"):
        jb.sweep(odd, executor=Inline())


@pytest.mark.parametrize("name", ["", "processes", "processes:0", "processes:x", "dask:4", "slurm"])
def test_unknown_engines(name):
    may_be = r"executor: .* given; it must be processes:N or dask:tcp"
    with pytest.raises(jb.InputError, match=may_be), open_engine(name):
        raise AssertionError


def test_an_engine_without_its_package_and_one_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("jaxbandits.sweeps.executors._PATIENCE", "0.2s")
    address = "dask:tcp://127.0.0.1:9"
    with (
        pytest.raises(jb.InputError, match="the address of a Dask scheduler that runs"),
        open_engine(address),
    ):
        raise AssertionError
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(jb.InputError, match=r"pip install '\.\[dask\]'"),
        open_engine("processes:1"),
    ):
        raise AssertionError


def test_workers_of_this_machine_share_their_programs(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        with shared_programs() as variables:
            folder = variables["JAX_COMPILATION_CACHE_DIR"]
            assert os.path.isdir(folder)
        assert not os.path.exists(folder)
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        with shared_programs() as variables:
            assert variables["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path)
        assert tmp_path.exists()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_status_says_who_played_what(tmp_path):
    def odd(answer, number, call):
        if number == 2:
            raise RuntimeError("MemoryError")
        return {**answer, "worker": f"node-{number % 2}:1"}

    with pytest.raises(UnfinishedError):
        jb.sweep(spec(), tmp_path / "out", executor=Inline(odd), notice=lambda text: None)
    plan = make_plan(spec())
    for parity in (0, 1):
        blocks = [
            block for block in plan.blocks if block.number % 2 == parity and block.number != 2
        ]
        lanes = sum(block.lanes.size for block in blocks)
        (line,) = [x for x in status_lines(tmp_path / "out") if f"worker node-{parity}:1" in x]
        assert line.startswith(f"  worker node-{parity}:1: {len(blocks)} blocks, {lanes} lanes, ")
        assert "rounds/s" in line


def test_the_kind_of_device_belongs_to_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned and finished by a caller without the workers' kind, as a login node."""

    class Elsewhere:
        """Plays at once, on another kind of device."""

        def __init__(self, kind: str):
            self.kind = kind

        def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            with monkeypatch.context() as patch:
                patch.setattr(jax, "default_backend", lambda: self.kind)
                future.set_result(function(*args))
            return future

    gpus = Elsewhere("gpu")
    jb.sweep(spec(), tmp_path, executor=gpus)
    assert (
        Folder(tmp_path).manifest()["identity"]["versions"]["platform"]
        == "gpu"
        != jax.default_backend()
    )
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    (tmp_path / "result.nc").unlink()
    jb.sweep(spec(), tmp_path)  # all blocks are there: whoever asks may collect them
    assert (tmp_path / "result.nc").read_bytes() == whole["result.nc"]
    next((tmp_path / "blocks").glob("*.npz")).unlink()
    with pytest.raises(InputError, match=r"1 of . blocks .* begun on 'gpu'"):
        jb.sweep(spec(), tmp_path)
    with pytest.raises(UnfinishedError, match="platform is 'tpu'; it must be 'gpu'"):
        jb.sweep(spec(), tmp_path, executor=Elsewhere("tpu"))
    jb.sweep(spec(), tmp_path, executor=gpus)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == whole


def test_each_worker_process_gets_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert executors.own_gpu(1, 2, str(tmp_path / "none")) == {}
    for bus in ("0000:17:00.0", "0000:65:00.0"):
        (tmp_path / bus).mkdir()
    assert [executors.own_gpu(n, 2, str(tmp_path))["CUDA_VISIBLE_DEVICES"] for n in range(2)] == [
        "0",
        "1",
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")  # what Slurm gave
    variables = [executors.own_gpu(n, 4, str(tmp_path)) for n in range(4)]
    assert [of["CUDA_VISIBLE_DEVICES"] for of in variables] == ["3", "5", "3", "5"]
    # Two share what one would take
    assert {of["XLA_PYTHON_CLIENT_MEM_FRACTION"] for of in variables} == {"0.38"}
