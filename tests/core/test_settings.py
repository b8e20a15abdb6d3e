"""The settings of a policy: checked, cast, named once, then carried; what cannot be played."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core.pytrees import pytree
from jaxbandits.core.settings import Settings, label
from tests.core.test_pytrees import Around, One


def test_settings_are_checked_cast_and_named_once():
    widths = np.array([[0.25, 1.0], [0.5, 2.0]], np.float32)
    settings = Settings.of(Around(One(width=widths)), 2)
    once = settings.policy
    assert settings.count == 2 and once.share.shape == (2, 1) and once.share.dtype == np.float32
    assert settings.labels[0] == "Around(One(width=per instance, kind=a), share=0.5)"
    assert len(settings.labels) == 2
    assert settings.parameters == [{"policy": "Around", "share": 0.5}] * 2
    assert label(once) == "Around(One(kind=a))"
    assert jax.tree.all(jax.tree.map(np.array_equal, Settings.of(once, 2).policy, once))
    widths[:] = np.nan  # what was checked is what is played
    assert np.isfinite(once.inner.width).all()
    with pytest.raises(ValueError, match="read-only"):
        once.share[0] = -1.0
    part = settings.of_instances([1])
    assert part.policy.inner.width.tolist() == [[1.0], [2.0]] and part.count == 2
    assert part.parameters[1] == {"policy": "Around", "width": 2.0, "share": 0.5}
    changed = dataclasses.replace(once, share=np.float32(-1))
    with pytest.raises(jb.InputError, match=r"Around\.share: -1\.0 given; it must be .* above 0"):
        Settings.of(changed, 2)
    with pytest.raises(jb.InputError, match="with 3 instances"):
        Settings.of(once, 3)


def test_settings_are_carried_and_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.of(Around(One(width=[0.25, 0.5]), share=2.0), 2)
    monkeypatch.setattr("jaxbandits.core.settings.as_played", None)
    assert Settings.of(settings, 2) is settings
    second = settings.only(1)
    assert second.labels == ("Around(One(width=0.5, kind=a), share=2)",) == settings.labels[1:]
    assert settings.record(1) == {
        "policy": "Around",
        "parameters": {"One.width": 0.5, "Around.share": 2.0},
    }
    shapes = settings.shapes
    assert type(shapes) is Around and shapes.share == jax.ShapeDtypeStruct((), np.float32)
    named = dataclasses.replace(settings, name="around", hidden=("share",))
    assert named.labels[0] == "around(One(width=0.25, kind=a))"


def test_a_spec_that_the_policy_does_not_play_is_refused() -> None:
    class Odd(jb.environments.FiniteArms):
        spec = property(lambda self: "two arms")  # type: ignore[assignment]

    world = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
    odd = pytree(Odd)(**{f.name: getattr(world, f.name) for f in dataclasses.fields(world)})
    with pytest.raises(jb.InputError, match="FiniteSpec, but Odd has a str"):
        jb.simulate(policies.UCB1(), odd, jb.Horizon(5), key=jax.random.key(0))
