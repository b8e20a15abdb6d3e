"""Playing the settings of the ω-UCB experiment, once each; what was played is kept in the output folder."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np
import xarray

import jaxbandits as jb
from experiments.common.rows import Row, row
from experiments.common.running import Options, kept
from experiments.omega_ucb.specs import FAMILIES, KEY, MARKS, SETTINGS, Part, Setting, budget, steps


class Played(NamedTuple):
    """One family of policies in one setting.

    ``regret`` (in units of reward) and ``share`` (of the best arm's reward for the same budget) have the axes
    ``(policy, instance, replicate, mark)``. Of random instances there is one run each; ``instance`` counts the given
    campaigns, ``replicate`` what was sampled on them.
    """

    regret: xarray.DataArray
    share: xarray.DataArray
    rounds: float
    seconds: float


class Curves(NamedTuple):
    """All policies of a setting that are asked for: arrays ``(instance, replicate, mark)`` by policy."""

    setting: Setting
    regret: dict[str, xarray.DataArray]
    share: dict[str, xarray.DataArray]

    @property
    def over(self) -> str:
        """What was sampled."""
        return self.setting.over

    def at(self, share: float, *names: str) -> xarray.DataArray:
        """Regret when this share of the budget is spent: of one policy, or of several on the runs that all have."""
        chosen = [self.regret[name].sel(mark=share, drop=True) for name in names]
        if len(names) == 1:
            return chosen[0]
        together = xarray.concat(chosen, "policy", join="inner", coords="minimal", compat="override")
        return together.assign_coords(policy=list(names))


def curves(setting: str, options: Options, families: Iterable[str] | None = None) -> Curves:
    """Play (or take) some families in a setting, by default all of it."""
    chosen = SETTINGS[setting]
    played = [play(setting, family, options) for family in families or chosen.policies]
    regret, share = (
        {str(name): x.sel(policy=name, drop=True) for x in kind for name in x["policy"].values}
        for kind in ([p.regret for p in played], [p.share for p in played])
    )
    return Curves(chosen, regret, share)


def seconds_row(
    prefix: str, settings: Iterable[str], options: Options, families: Iterable[str] | None = None, note: str = ""
) -> Row:
    """Wall-clock seconds and rounds that the simulations of a figure took, whenever they were made."""
    played = [play(s, f, options) for s in settings for f in families or SETTINGS[s].policies]
    took, rounds = sum(p.seconds for p in played), sum(p.rounds for p in played)
    item = f"{prefix}seconds of simulation, compile included"
    return row(item, took, note=f"{rounds:.3g} rounds{note}", digits=".0f")


@functools.cache
def play(setting: str, family: str, options: Options) -> Played:
    """One family in one setting; from the folder ``runs`` if the very same was played there before."""
    began = time.perf_counter()
    chosen = SETTINGS[setting]
    policy = FAMILIES[family].make(_parts(chosen, options)[0], options)
    worlds = [leaf for part in _parts(chosen, options) for leaf in jax.tree.leaves(part.arms)]
    size = f"{steps(options)} {chosen.runs(options, family)}"

    def make() -> dict[str, np.ndarray]:
        regret, share, rounds = _simulated(chosen, family, options)
        took = time.perf_counter() - began
        print(f"  {setting}, {family}: {rounds:.3g} rounds in {took:.1f} s", flush=True)
        return {"regret": regret, "share": share, "cost": np.array([rounds, took])}

    depends_on = [*worlds, *jax.tree.leaves(policy), MARKS, policy, size]
    found = kept(options, f"{setting}_{family}", depends_on, make)
    return _labelled(family, found["regret"], found["share"], *map(float, found["cost"]))


@functools.cache
def _parts(setting: Setting, options: Options) -> list[Part]:
    return setting.make(options)


def _simulated(setting: Setting, family: str, options: Options) -> tuple[np.ndarray, np.ndarray, float]:
    parts = _parts(setting, options)
    campaigns = np.unique(np.concatenate([part.campaign for part in parts]))
    draws = 1 + max(int(part.draw.max()) for part in parts)
    runs = setting.runs(options, family)
    shape = (len(FAMILIES[family].labels), campaigns.size, draws, runs, MARKS.size)
    regret, possible, rounds = np.zeros(shape), np.zeros((campaigns.size, draws)), 0.0
    for part in parts:
        result = jb.simulate(
            FAMILIES[family].make(part, options),
            part.arms,
            budget(part, options),
            key=KEY,
            replicates=runs,
            marks=MARKS,
            instance_ids=part.ids.tolist(),
        )
        place = np.searchsorted(campaigns, part.campaign)
        regret[:, place, part.draw] = result.regret.values
        possible[place, part.draw] = result.best_rate * steps(options) * part.least_cost
        rounds += float(result.ledger["rounds"][..., -1].sum())
    share = regret / possible[None, :, :, None, None]
    if setting.over == "instance":  # one campaign: its draws are the instances
        return regret[:, 0], share[:, 0], rounds
    if draws > 1:  # runs of one draw of the laws are not independent of each other: their mean is one observation
        return regret.mean(axis=3), share.mean(axis=3), rounds
    return regret[:, :, 0], share[:, :, 0], rounds


def _labelled(family: str, regret: np.ndarray, share: np.ndarray, rounds: float, took: float) -> Played:
    def made(values: np.ndarray) -> xarray.DataArray:
        coords = {
            "policy": list(FAMILIES[family].labels),
            "instance": np.arange(values.shape[1]),
            "replicate": np.arange(values.shape[2]),
            "mark": MARKS,
        }
        return xarray.DataArray(values, dims=("policy", "instance", "replicate", "mark"), coords=coords)

    return Played(made(regret), made(share), rounds, took)
