"""Rules of the contract about whole lanes: how they end, that they stand still then, that no two are the same."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.ledger import Ledger
from jaxbandits.core.protocol import Status
from jaxbandits.policies.base.index import chooses_by_score
from jaxbandits.testing.bits import assert_same_results
from jaxbandits.testing.subject import Subject


def chooses_what_there_is(subject: Subject) -> None:
    """No lane ends as invalid: every score is a number, every action one that the world has."""
    ended = subject.base.ended[0]
    if (ended == Status.INVALID).any():
        instance, replicate = (int(i) for i in np.argwhere(ended == Status.INVALID)[0])
        rounds = int(subject.base.ledger["rounds"][0, instance, replicate, -1])
        why = "a score is NaN (0/0, say, where nothing was paid)"
        if not chooses_by_score(subject.policy):
            why += ", or the action is none that the world has"
        raise AssertionError(
            f"instance {instance}, replicate {replicate}: the lane ends as invalid after round {rounds}: {why}"
        )


def finished_lanes_are_frozen(subject: Subject) -> None:
    """Lanes end where a plain loop ends them, though other lanes of their batch go on."""
    base = subject.base
    lengths = base.ledger["rounds"][0, ..., -1]
    long = subject.run(chunk=int(2 * lengths.max()))
    assert_same_results(base, long, "short chunks, and one chunk in which most lanes stand still")
    for i in range(base.ended.shape[1]):
        steps = subject.episodes(i)
        for r in np.flatnonzero(np.isin(base.ended[0, i], (Status.EXHAUSTED, Status.HORIZON))):
            over = np.asarray(steps.over[r])
            assert over.any(), f"instance {i}, replicate {r}: the plain loop goes on after round {lengths[i, r]}"
            last = int(np.argmax(over))
            account = _account(jax.tree.map(lambda x, r=r, last=last: x[r, last], steps.ledger))
            for name, value in account.items():
                booked = base.ledger[name][0, i, r, -1]
                assert np.array_equal(booked, value), (
                    f"instance {i}, replicate {r}: {name} ends as {booked}, in a plain loop of step and pull as {value}"
                )


def _account(ledger: Ledger) -> dict[str, Any]:
    totals = ("reward", "spent", "expected_reward", "expected_spent")
    exact = {name: ticks.join(getattr(ledger, name)) for name in totals}
    counts = {f"event:{name}": np.asarray(x) for name, x in ledger.events.items()}
    audits = {f"audit:{name}": ticks.join(x) for name, x in ledger.audit.items()}
    return {"rounds": np.asarray(ledger.rounds)} | exact | counts | audits


def replicates_differ(subject: Subject) -> None:
    """No two replicates are the same run."""
    ledger = subject.base.ledger
    columns = [ledger[name] for name in ("rounds", "reward", "spent", "expected_reward")]  # spent: of each resource
    runs = np.concatenate([x.reshape(*ledger["rounds"].shape, -1) for x in columns], axis=-1)[0]
    for i, instance in enumerate(runs):
        different = np.unique(instance.reshape(subject.replicates, -1), axis=0)
        assert len(different) == subject.replicates, (
            f"instance {i}: two of {subject.replicates} replicates are the same run"
        )
