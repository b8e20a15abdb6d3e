"""Results and states as files: what is written can be read, and nothing else is taken for it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import stat
import tracemalloc
import zipfile

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._files import npz


@pytest.fixture
def result():
    lanes, at = (1, 2, 2), (1, 2, 2, 2)
    names = ("rounds", "reward", "spent", "expected_reward", "expected_spent", "clock", "expected_clock")
    return jb.Result(
        ledger={name: np.arange(8).reshape(at) for name in names},
        ended=np.full(lanes, 2, np.int32),
        final={"pulls": np.ones((*lanes, 3), np.int32)},
        best_rate=np.array([0.5, 0.25]),
        settings=("MUCB(alpha=1)",),
        instances=("ρ", "1"),
        replicates=(7, 3),
        marks=(0.5, 1.0),
        about={"policies": ["MUCB(alpha=1)"]},
    )


def rewritten(path, change):
    """The file with its manifest changed."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    manifest = json.loads(str(arrays["manifest"]))
    change(manifest)
    np.savez(path, **(arrays | {"manifest": np.array(json.dumps(manifest))}))


@pytest.mark.parametrize("said", [0, 2, "1", True, 1.0, None, "missing"])
def test_another_format_is_refused(tmp_path, result, said):
    path = tmp_path / "r.npz"
    result.save(path)
    rewritten(path, lambda manifest: None)
    assert jb.Result.load(path).settings == result.settings, "the change itself does no harm"
    change = (lambda m: m.pop("format")) if said == "missing" else (lambda m: m.update(format=said))
    rewritten(path, change)
    with pytest.raises(jb.InputError, match=r"^path: .*r.npz.* has format .* and not 1"):
        jb.Result.load(path)


def test_all_that_can_be_saved_can_be_loaded(tmp_path, result):
    path = tmp_path / "r.npz"
    free = {name: np.zeros_like(x) if name == "expected_clock" else x for name, x in result.ledger.items()}
    odd = [
        result,
        dataclasses.replace(result, best_rate=np.full(2, np.nan), ledger=free),  # every arm is free: no rate
        dataclasses.replace(result, final={"estimate": np.full((1, 2, 2), np.nan), "ready": np.ones((1, 2, 2), bool)}),
        dataclasses.replace(result, ledger=result.ledger | {"spent": np.ones((1, 2, 2, 2, 3), np.int64)}),
        dataclasses.replace(result, ledger={name: x.astype(">i8") for name, x in result.ledger.items()}),
        dataclasses.replace(result, about={"constraint": {"class": "Mine", "by": len}}),
    ]
    for one in odd:
        one.save(path)
        again = jb.Result.load(path)
        for name, x in one.ledger.items():
            np.testing.assert_array_equal(again.ledger[name], x)
            assert again.ledger[name].dtype == np.int64 and again.ledger[name].flags.writeable
        np.testing.assert_array_equal(again.best_rate, one.best_rate)
        assert {k: v.dtype for k, v in again.final.items()} == {k: v.dtype for k, v in one.final.items()}
        assert (again.instances, again.replicates, again.marks) == (("ρ", "1"), (7, 3), (0.5, 1.0))


def test_a_bomb_is_refused_before_it_unfolds(tmp_path, result):
    result.save(tmp_path / "r.npz")
    with (
        zipfile.ZipFile(tmp_path / "r.npz") as old,
        zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            if name != "ledger/reward.npy":
                new.writestr(name, old.read(name))
        with new.open("ledger/reward.npy", "w") as file:
            np.lib.format.write_array(file, np.zeros((1, 2, 2, 1 << 20), np.int64))
    assert (tmp_path / "b.npz").stat().st_size < 1 << 17
    tracemalloc.start()
    with pytest.raises(jb.InputError, match="does not fit its labels"):
        jb.Result.load(tmp_path / "b.npz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20, f"{peak:,} bytes for a file whose array would take 32 MiB"


def test_no_more_is_inflated_than_was_declared():
    """A directory that says less than the compressed bytes give: the array is cut off there, and refused."""
    file = io.BytesIO()
    np.savez_compressed(file, x=np.zeros(1 << 20))
    data = bytearray(file.getvalue())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(npz.NotArrays):
        dict(npz.read(io.BytesIO(data)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_writing_follows_no_link_and_replaces_nothing_but_files(tmp_path, result):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "r.npz").symlink_to(mine)
    result.save(tmp_path / "r.npz")
    assert mine.read_text() == "mine" and jb.Result.load(tmp_path / "r.npz").settings == result.settings
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(jb.InputError, match=r"path: .*fifo.* is a FIFO"):
        result.save(tmp_path / "fifo")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "mine.txt", "r.npz"]


def test_a_file_gets_the_rights_of_the_umask(tmp_path, result):
    before = os.umask(0o027)
    try:
        result.save(tmp_path / "r.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "r.npz").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "bad", [object(), np.array([None]), jax.random.key(0), np.zeros(2, "V2"), np.datetime64(1, "s")]
)
def test_a_state_with_an_object_is_refused_by_name(tmp_path, bad):
    with pytest.raises(jb.InputError, match=r"^state: \['mine'\]: .*nothing is pickled"):
        jb.live.save(tmp_path / "s.npz", {"fine": np.zeros(2), "mine": bad}, policy=None)
    assert not list(tmp_path.iterdir())


def test_a_state_of_another_format_is_refused(tmp_path):
    path = tmp_path / "s.npz"
    jb.live.save(path, {"x": np.arange(3)}, policy=None)
    assert jb.live.load(path, like={"x": np.arange(3)})["x"].tolist() == [0, 1, 2]
    np.savez(path, about=np.array(json.dumps({"format": 2, "structure": "x"})), leaf0=np.arange(3))
    with pytest.raises(jb.InputError, match=r"^path: .*has no format 1"):
        jb.live.load(path, like={"x": np.arange(3)})
