"""Results and states as files: what is written can be read, and nothing else is taken for it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import stat

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import _files
from jaxbandits.result import About
from jaxbandits.statistics.estimates import PAIRED_BY


@pytest.fixture
def result():
    lanes, at = (1, 2, 2), (1, 2, 2, 2)
    names = ("rounds", "reward", "spent", "clock")
    names += ("expected_reward", "expected_spent", "expected_clock")
    return jb.Result(
        ledger={name: np.arange(8).reshape(at) for name in names},
        ended=np.full(lanes, 2, np.int32),
        final={"pulls": np.ones((*lanes, 3), np.int32)},
        best_rate=np.array([0.5, 0.25]),
        settings=("MUCB(alpha=1)",),
        instances=("ρ", "1"),
        replicates=(7, 3),
        marks=(0.5, 1.0),
        about=About(
            parameters=({"policy": "MUCB", "alpha": 1.0},),
            engines=("leap",),
            clock="spent",
            key=(0, 1),
        ),
    )


def test_all_that_can_be_saved_can_be_loaded(tmp_path, result):
    path = tmp_path / "r.npz"
    odd = [
        result,
        dataclasses.replace(result, best_rate=np.full(2, np.nan)),  # every arm is free: no rate
        dataclasses.replace(
            result,
            final={"estimate": np.full((1, 2, 2), np.nan), "ready": np.ones((1, 2, 2), bool)},
        ),
        dataclasses.replace(
            result, ledger=result.ledger | {"spent": np.ones((1, 2, 2, 2, 3), np.int64)}
        ),
        dataclasses.replace(
            result,
            about=About(constraint={"class": "Mine", "by": len}, replicate_ids=([7, 3], [1, 2])),
        ),
    ]
    for saved in odd:
        saved.save(path)
        again = jb.Result.load(path)
        for name, x in saved.ledger.items():
            np.testing.assert_array_equal(again.ledger[name], x)
            assert again.ledger[name].dtype == np.int64 and again.ledger[name].flags.writeable
        np.testing.assert_array_equal(again.best_rate, saved.best_rate)
        kinds, others = ({k: v.dtype for k, v in x.final.items()} for x in (again, saved))
        assert kinds == others
        assert (again.instances, again.replicates, again.marks) == (("ρ", "1"), (7, 3), (0.5, 1.0))
        about, other = (json.dumps(x.about.as_json(), default=repr) for x in (again, saved))
        assert about == other
    known = {"instances_digest": "1", "constraint": {"class": "Horizon"}}
    result = dataclasses.replace(result, about=dataclasses.replace(result.about, **known))
    result.save(path)
    again = jb.Result.load(path)
    assert again.about == result.about and again.regret.attrs == result.regret.attrs
    others = {"instances_digest": "0", "key": (0, 9), "constraint": {"class": "No"}}
    for word, (name, other) in zip(PAIRED_BY, others.items(), strict=True):
        about = dataclasses.replace(again.about, **{name: other})
        x, y = (r.reward[0] for r in (result, dataclasses.replace(again, about=about)))
        with pytest.raises(jb.InputError, match=f"^y: runs of another {word} given"):
            jb.statistics.paired(x, y)
        assert (jb.statistics.paired(x, y.drop_attrs()) == 0).all()


def test_a_file_of_an_earlier_version_is_read(tmp_path, result):
    """With keys that are no field, and without some that are."""
    path = tmp_path / "r.npz"
    result.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    manifest = json.loads(str(arrays["manifest"]))
    manifest["about"] = {
        "policies": ["MUCB(alpha=1)"],
        "engine": "leap",
        "clock": "spent",
        "key": [0, 1],
    }
    np.savez(path, **arrays | {"manifest": np.array(json.dumps(manifest))})
    assert jb.Result.load(path).about == About(clock="spent", key=(0, 1))


def test_the_folder_of_a_sweep_is_no_file_of_a_result(tmp_path):
    with pytest.raises(jb.InputError, match=r"jb\.sweep\(spec, folder\) opens that of a sweep"):
        jb.Result.load(tmp_path)


def test_arrays_are_plain_equal_bytes_or_refused():
    arrays = {
        "x": np.arange(6).reshape(2, 3),
        "name": np.array("ρ"),
        "big": np.arange(3, dtype=">i8"),
    }
    for compressed in (False, True):
        file, again = io.BytesIO(), io.BytesIO()
        _files.write_arrays(file, arrays, compressed)
        _files.write_arrays(again, dict(arrays), compressed)
        assert file.getvalue() == again.getvalue()
        file.seek(0)
        loaded = _files.read_arrays(file)
        assert loaded.keys() == arrays.keys()
        assert all((loaded[name] == arrays[name]).all() for name in arrays)
    with pytest.raises(jb.InputError, match="nothing is pickled"):
        _files.write_arrays(io.BytesIO(), {"x": np.array([None])})
    pickled = io.BytesIO()
    np.savez(pickled, x=np.array([None]))
    for content in (b"", b"text", file.getvalue()[:-30], pickled.getvalue()):
        with pytest.raises(ValueError, match=r"is no \.npz file of plain arrays") as refusal:
            _files.read_arrays(io.BytesIO(content))
        assert "pickle" not in str(refusal.value), "nobody is advised to run what is in a file"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    def half(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    _files.write_whole(tmp_path / "x", lambda file: file.write(b"whole"))
    with pytest.raises(OSError, match="No space"):
        _files.write_whole(tmp_path / "x", half)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"whole")]


FORMAT = "has format .* and not 1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ledger/reward": np.zeros((1, 2, 2, 5), np.int64)}, "ledger/reward' of shape"),
        ({"ended": np.zeros((2, 2), np.int32)}, "'ended' of shape"),
        ({"ledger/clock": None}, "it has no 'ledger/clock'"),
        ({"best_rate": np.array([None, 0.5])}, r"of plain arrays\)"),
        ({"manifest": np.array("{")}, "Expecting property name"),
        *((lambda manifest, x=x: manifest | {"format": x}, FORMAT) for x in (0, 2, "1", None)),
        (lambda manifest: {k: x for k, x in manifest.items() if k != "format"}, FORMAT),
        (lambda manifest: manifest | {"about": [1]}, "its about is .1., not a record"),
        (lambda manifest: manifest | {"about": {"clock": 3}}, "its about has clock 3"),
        (lambda manifest: manifest | {"about": {"parameters": [1]}}, "its about has parameters"),
    ],
)
def test_arrays_that_do_not_fit_their_labels_are_refused(tmp_path, result, change, message):
    path = tmp_path / "r.npz"
    result.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    if callable(change):
        change = {"manifest": np.array(json.dumps(change(json.loads(str(arrays["manifest"])))))}
    np.savez(path, **{name: x for name, x in (arrays | change).items() if x is not None})
    with pytest.raises(jb.InputError, match=f"^path: .*r.npz.*{message}"):
        jb.Result.load(path)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04", "arrays", None])
def test_what_is_no_result_is_one_line(tmp_path, content):
    path = tmp_path / "r.npz"
    if content == "arrays":
        np.savez(path, x=np.zeros(3))
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(jb.InputError, match=r"^path: .*r.npz.* a saved result") as caught:
        jb.Result.load(path)
    assert "\n" not in str(caught.value)


def test_a_result_that_cannot_be_written_is_one_line(tmp_path, result):
    with pytest.raises(jb.InputError, match=r"^path: .* a file that can be written"):
        result.save(tmp_path / "nowhere" / "r.npz")
    assert not list(tmp_path.iterdir())


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
def test_an_object_is_refused_by_name(tmp_path, bad):
    with pytest.raises(jb.InputError, match=r"^arrays: mine: .*nothing is pickled"):
        _files.save_arrays("arrays", tmp_path / "s.npz", {"fine": np.zeros(2), "mine": bad})
    assert not list(tmp_path.iterdir())
