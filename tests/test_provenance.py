"""Where a result comes from: versions, sources, the world; paragraph, table, BibTeX."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import platform
import re
from functools import cache
from typing import Any

import jax
import jaxlib
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import _provenance
from jaxbandits.policies import MUCB, BudgetUCB, OmegaUCB, SoftIndex
from tests.contract.worlds import KEY


@jb.pytree
class Halved(MUCB):
    """A policy of one's own."""

    def score(self, arms):
        return super().score(arms) / 2


@cache
def sample_result() -> jb.Result:
    arms = jb.environments.random_bernoulli(jax.random.key(7), instances=3, arms=2)
    soft = SoftIndex(BudgetUCB(min_cost=0.1), temperature=0.1)
    policies = [OmegaUCB(rho=[0.25, 1.0]), Halved(), soft]
    budget = jb.TotalBudget(5.0, last_pull="counts")
    return jb.simulate(policies, arms, budget, key=KEY, marks=2, engine="scan")


def test_what_an_appendix_needs() -> None:
    facts = sample_result().provenance()
    assert json.loads(json.dumps(facts)) == facts
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    versions["jaxlib"] = jaxlib.__version__
    assert versions.items() <= facts.items()
    assert facts["processor"] and facts["seconds"] > 0 and facts["when"] in facts.text()
    assert facts["made_by"] == "random_bernoulli(key(7), instances=3, arms=2)"
    source = hashlib.sha256(inspect.getsource(Halved).encode()).hexdigest()
    assert facts["sources"] == [{}, {}, {f"{__name__}.Halved": source}, {}]
    assert "Own code" not in sample_result().sel(policy="OmegaUCB").provenance().text()
    assert facts["classes"] == [["OmegaUCB"], ["OmegaUCB"], ["MUCB"], ["SoftIndex", "BudgetUCB"]]
    assert re.fullmatch("[0-9a-f]{64}", facts["code"])


def test_the_paragraph_says_all_of_it() -> None:
    facts = sample_result().provenance()
    for words in ("OmegaUCB(rho=0.25) (scan)", "ids 0 to 2", facts["made_by"], facts["digest"]):
        assert words in facts.text()
    assert len(facts.rows()) == 8


def test_a_file_of_an_earlier_version_says_less() -> None:
    about = dataclasses.replace(
        sample_result().about, code="", python="", sources=(), classes=(), made_by="", seconds=0.0
    )
    old = dataclasses.replace(sample_result(), about=about)
    text = old.provenance().text()
    assert "source" not in text
    assert "Python" not in text
    assert "World: FiniteArms" in text
    assert "Own code" not in text
    assert old.sel(rho=0.25).about.classes == ()
    assert "heyden2024" in jb.cite(old)


def test_sources_of_functions_closures_and_what_has_none() -> None:
    def outer(x):
        return inner(x) + 1

    def inner(x):
        return 2 * x

    names = _provenance.sources_of([functools.partial(outer, 1), np.ones(2), MUCB()], None)
    assert {name.rsplit(".", 1)[1] for name in names} == {"outer", "inner"}
    assert len(set(names.values())) == 2
    bare: dict = {"jb": jb, "__name__": "elsewhere"}
    exec("class Bare:\n    def f(self):\n        return 1\nthing = Bare()", bare)
    assert _provenance.sources_of([bare["thing"]], "abc") == {"elsewhere.Bare": "jaxpr abc"}


def test_a_world_forgets_its_maker_when_its_numbers_change() -> None:
    arms = jb.environments.cost_valley([0.25, 0.5], lam=0.1)
    assert _provenance.maker_of(arms) == "cost_valley(centre=[0.25, 0.5], lam=0.1)"
    assert _provenance.maker_of(dataclasses.replace(arms)) == ""
    assert _provenance.maker_of(jb.environments.FiniteArms.bernoulli([0.5], [0.5])) == ""
    key = jax.random.wrap_key_data(np.array([3, 4], np.uint32))
    wide = jb.environments.Reservoir.ratio(key, instances=9, capacity=2, beta=np.arange(1.0, 10.0))
    assert _provenance.maker_of(wide).startswith(
        "Reservoir.ratio(wrap_key_data([3, 4]), instances=9, capacity=2, beta=float64[9]"
    )


def test_instances_are_numbers_unless_they_are_named() -> None:
    assert sample_result().instances == (0, 1, 2)
    assert sample_result().regret.sel(instance=2).sizes["setting"] == 4
    with pytest.raises(jb.InputError, match=r"result\.regret\.sel\(replicate=0\)"):
        sample_result().sel(instance=2)


@pytest.mark.integration
def test_a_sweep_says_where_it_comes_from_and_what_to_cite() -> None:
    worlds = {
        name: jb.environments.random_bernoulli(jax.random.key(seed), instances=size, arms=2)
        for name, seed, size in (("small", 0, 1), ("wide", 1, 4), ("again", 2, 2))
    }

    def found(rho: float) -> Any:
        policies = [jb.policies.OmegaUCB(rho=[0.25, rho]), jb.policies.UCB1()]
        axes: dict[str, Any] = {"environments": worlds, "budgets": [20.0, 40.0]}
        axes["constraint"] = lambda _, budget: jb.TotalBudget(budget, last_pull="counts")
        return jb.sweep(jb.Sweep(policies=policies, engine="scan", **axes))

    result = found(1.0)
    record = result.provenance()
    assert record["policies"] == ["OmegaUCB(rho=0.25)", "OmegaUCB(rho=1)", "UCB1"]
    assert record["engines"] == ["scan"] * 3
    assert record["processor"] and record["seconds"] > 0 and record["when"] in record.text()
    assert record["constraint"]["budget"] == [20.0, 40.0]
    assert record["made_by"].count("random_bernoulli(") == 3
    words = "3 settings × 4 instances × 1 replicate; root key [0, 0]; instance ids 0 to 3"
    assert words in record.text()
    assert json.loads(json.dumps(record))["digest"] == found(1.0).provenance()["digest"]
    assert record["digest"] != found(2.0).provenance()["digest"]
    entries = [jb.cite(policy).split("\n\n")[1:] for policy in (jb.policies.OmegaUCB, "UCB1")]
    assert jb.cite(result).split("\n\n")[1:] == [x.rstrip("\n") for x in entries[0]] + entries[1]
