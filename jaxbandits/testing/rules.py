"""The contracts of a policy and of a constraint, one function for each rule."""

from __future__ import annotations

import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Where an equation was written; it has no public name
from jax._src.source_info_util import summarize

from jaxbandits._engine import scan
from jaxbandits._engine.scan import book
from jaxbandits._engine.setup import check_nouns, program_of, time_parallel
from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.arm_statistics import ArmStatistics, as_floats, record
from jaxbandits.core.checks import InputError, in_a_line, user_method
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Constraint, Environment, Feedback, Ledger, Policy, Status, post
from jaxbandits.core.pytrees import Leaf, leaf_fields, map_leaves
from jaxbandits.core.settings import Settings, leaves_of
from jaxbandits.core.specs import SKIP
from jaxbandits.core.streams import typed
from jaxbandits.gradients import estimates, policy_score
from jaxbandits.policies.average_cost import and_null
from jaxbandits.policies.base import (
    IndexPolicy,
    chooses_by_logits,
    chooses_by_score,
    evaluate_state,
    margin,
    safe_round,
)
from jaxbandits.policies.knapsack import FixedSplit
from jaxbandits.policies.ucb import CUCB
from jaxbandits.result import pick
from jaxbandits.testing.lanes import (
    MARKS,
    ULPS,
    Subject,
    assert_same_results,
    assert_traced_alike,
    compilations,
    equal,
    one_setting,
    ulps_apart,
)

_jitted_scores = jit(evaluate_state)


def chooses_what_there_is(subject: Subject) -> None:
    """No lane ends as invalid: scores are numbers, not all −∞, and actions exist."""
    for instance, replicate in np.argwhere(subject.base.ended[0] == Status.INVALID)[:1]:
        rounds = int(subject.base.ledger["rounds"][0, instance, replicate, -1])
        reason = "a score is NaN (0/0, say, where nothing was paid)"
        if not chooses_by_score(subject.policy):
            reason += ", or the action does not exist, or its arm is closed"
        place = f"instance {instance}, replicate {replicate}"
        raise AssertionError(f"{place}: the lane ends as invalid after round {rounds}: {reason}")
    if not (chooses_by_score(subject.policy) or chooses_by_logits(subject.policy)):
        return
    for instance in range(subject.environment.instances):
        leaves = one_setting(subject.first, subject.environment, instance)
        steps = subject.episodes(instance)
        view, state = steps.observation.view, steps.after
        preferred = np.asarray(_preferences(leaves, state, view)) > -np.inf
        # An arm that was never pulled comes first whatever its score is
        fresh = (state.pulls == 0) & chooses_by_score(leaves)
        for replicate, i in np.argwhere(~((preferred | fresh) & view.available).any(-1))[:1]:
            place = f"instance {instance}, replicate {replicate}, round {i + 1}"
            why = "the scores of all arms are −∞, so one is drawn at random"
            raise AssertionError(f"{place}: {why}")


@jit
def _preferences(policy: Policy, states: Any, views: Any) -> jax.Array:
    """Scores or logits of states and views ``[replicate, round]``."""

    def of_round(state: Any, view: Any) -> jax.Array:
        if chooses_by_score(policy):
            return evaluate_state(policy, state, view.round)
        assert chooses_by_logits(policy)
        return policy.logits(as_floats(state, view.round), view.available)

    return jax.vmap(jax.vmap(of_round))(states, views)


def a_second_trace_is_the_first(subject: Subject) -> None:
    """Tracing reads nothing that may differ the next time."""
    shapes = Settings.of(subject.first, subject.environment.instances).shapes
    assert_traced_alike(lambda: program_of(scan, shapes, subject.environment, subject.prepared))


def agrees_without_jit(subject: Subject) -> None:
    """Without jit: states and scores within 4 units in the last place, or the policy's ``rounding``."""
    leaves = one_setting(subject.first, subject.environment)
    for i, now in subject.sampled(4):
        with jax.disable_jit():
            after, action = leaves.step(now.before, typed(subject.policy_words), now.observation)
        equal(now.after, after, f"round {i + 1}: the state without jit", terms=now.before)
        if not isinstance(leaves, IndexPolicy):
            equal(now.action, action, f"round {i + 1}: the decision without jit")
            continue
        fast = np.asarray(_jitted_scores(leaves, now.after, now.observation.view.round))
        with jax.disable_jit():
            slow = np.asarray(evaluate_state(leaves, after, now.observation.view.round))
        pulled = np.asarray(now.after.pulls) > 0
        allowed = max(ULPS, int(leaves.rounding * 2**20))
        worst = int(ulps_apart(fast, slow)[pulled].max(initial=0))
        message = f"round {i + 1}: scores without jit are {worst} units in the last place away: {fast}, {slow}"
        assert worst <= allowed, message
        if int(action) != int(now.action):
            apart = int(ulps_apart(fast[int(action)], fast[int(now.action)]))
            both = f"arm {int(action)} without jit, {int(now.action)} with it"
            assert apart <= allowed, f"round {i + 1}: {both}: {fast}"


def learns_nothing_from_an_empty_observation(subject: Subject) -> None:
    """If ``empty`` is set, ``step`` is ``select`` on the old state, whatever the feedback."""
    for i, now in subject.sampled(3):
        real = now.observation.feedback
        for filling in (real, jax.tree.map(lambda x: jnp.full_like(x, -12345), real)):
            observation = now.observation._replace(empty=jnp.bool_(True), feedback=filling)
            got, must = subject.decided(now.before, observation)
            equal(must[0], got[0], f"round {i + 1}: an empty observation changed the state, which")
            equal(must[1], got[1], f"round {i + 1}: an empty observation changed the action, which")


def leaves_closed_arms_alone(subject: Subject) -> None:
    """If the arm to be pulled closes, it pulls another one, rests, or skips the round."""
    null_arm = getattr(subject.environment.spec, "null_arm", False)
    for i, now in subject.sampled(16):
        available, arm = now.observation.view.available, now.action
        if available is None or not isinstance(arm, jax.Array) or arm.shape:
            return  # a point, a pair of an arm and a limit, or a set is no arm that closes
        # The null arm K and the skip −1 never close, nor does here the last arm that is open.
        if not 0 <= int(arm) < available.size or int(available.sum()) == 1:
            continue
        remaining = available.at[arm].set(False)
        view = now.observation.view._replace(available=remaining)
        (_, action), _ = subject.decided(now.before, now.observation._replace(view=view))
        allowed = np.flatnonzero(and_null(remaining) if null_arm else remaining)
        closed = f"arm {action} is chosen, though view.available says that it is closed"
        assert action == SKIP or action in allowed, f"round {i + 1}: {closed}"


def learns_from_the_context_of_the_decision(subject: Subject) -> None:
    """Learning does not depend on the view's context, which is another round's."""
    if getattr(subject.environment.spec, "context", None) is None:
        return
    leaves, words = one_setting(subject.first, subject.environment), subject.policy_words

    @jax.jit
    def learnt(before: Any, observation: Any) -> Any:
        return leaves.update(before, typed(words), observation)

    for i, now in subject.sampled(3)[1:]:
        view = now.observation.view
        assert view.context is not None
        changed = now.observation._replace(view=view._replace(context=view.context + 1))
        must, got = learnt(now.before, now.observation), learnt(now.before, changed)
        equal(must, got, f"round {i + 1}: with another context in the view, what is learned, which")


def other_values_compile_nothing(subject: Subject) -> None:
    """Other leaf values, keys or numbers of settings reuse the compiled program."""
    policies = [subject.first, *subject.variants]
    sweep = jax.tree.map(lambda *x: np.concatenate(x), *policies)
    key = jax.random.fold_in(subject.key, 1)
    _ = subject.base
    with compilations() as compiled:
        for policy in [*policies[1:], sweep]:
            subject.run(policies=policy)
        subject.run(key=key)
    calls = "calls of simulate that differ in numbers only"
    assert not compiled, f"{calls} compiled {len(compiled)} programs: {compiled}"


def sweep_equals_loop(subject: Subject) -> None:
    """A sweep over the leaves gives each value the bits that it has alone."""
    policies = [subject.first, *(subject.variants or [subject.first])]
    sweep: Any = [Settings.of(policy, subject.environment.instances) for policy in policies]
    if subject.variants:
        sweep = jax.tree.map(lambda *x: np.concatenate(x), *policies)
    together = subject.run(policies=sweep)
    for i, policy in enumerate(policies):
        alone = subject.base if i == 0 else subject.run(policies=policy)
        label = f"setting {together.settings[i]} alone and in a sweep"
        assert_same_results(alone, pick(together, settings=[i]), label)


def finished_lanes_are_frozen(subject: Subject) -> None:
    """Lanes end where a plain loop ends them, even if other lanes of their batch continue."""
    base = subject.base
    lengths = base.ledger["rounds"][0, ..., -1]
    long = subject.run(chunk=int(2 * lengths.max()))
    assert_same_results(base, long, "short chunks, and one chunk in which most lanes stand still")
    for i in range(base.ended.shape[1]):
        steps = subject.episodes(i)
        for r in np.flatnonzero(np.isin(base.ended[0, i], (Status.EXHAUSTED, Status.HORIZON))):
            over, place = np.asarray(steps.over[r]), f"instance {i}, replicate {r}"
            assert over.any(), f"{place}: the plain loop goes on after round {lengths[i, r]}"
            last = int(np.argmax(over))
            account = account_of(jax.tree.map(lambda x, r=r, last=last: x[r, last], steps.ledger))
            for name, value in account.items():
                booked = base.ledger[name][0, i, r, -1]
                message = f"{name} ends as {booked}, in a plain loop of step and pull as {value}"
                assert np.array_equal(booked, value), f"{place}: {message}"


def cut(subject: Subject, instances: Sequence[int]) -> dict[str, Any]:
    """The policy, environment and constraint of some instances."""
    rows, environment, constraint = np.asarray(instances), subject.environment, subject.constraint
    parts = {}
    for field in leaf_fields(constraint):
        shape = np.shape(getattr(constraint, field.name))
        # [d] of d resources in a world of d instances is one budget for each resource
        is_amount = shape == (environment.resources,)
        if shape[:1] == (environment.instances,) and not is_amount:
            parts[field.name] = np.asarray(getattr(constraint, field.name))[rows]
    return {
        "policies": jax.tree.map(lambda x: x[:, rows] if x.shape[1] > 1 else x, subject.first),
        "environment": jax.tree.map(lambda x: np.asarray(x)[rows], environment),
        "constraint": dataclasses.replace(constraint, **parts),  # type: ignore[type-var]
    }


def arms_axis(environment: Environment) -> int | None:
    """The last axis of the table of existing arms, if there is one and only arms have it."""
    # Where each arm has a row of the context, its law draws so many rows.
    if len(getattr(environment.spec, "context", None) or ()) == 2:
        return None
    leaves = jax.tree_util.tree_leaves_with_path(environment)
    return next((np.ndim(x) - 1 for path, x in leaves if _is_presence(path)), None)


def _is_presence(path: Any) -> bool:
    return bool(path) and getattr(path[-1], "name", "") == "present"


def widened(policy: Policy, environment: Environment, axis: int, extra: int) -> dict[str, Any]:
    """``extra`` absent copies of the last arm in tables ``[instance, arm, …]`` and leaves."""

    def pad(path: Any, x: Any) -> np.ndarray:
        x = np.asarray(x)
        if x.ndim <= axis or x.shape[axis] != environment.spec.arms:
            return x
        widths = [(0, 0)] * axis + [(0, extra)] + [(0, 0)] * (x.ndim - axis - 1)
        return np.pad(x, widths) if _is_presence(path) else np.pad(x, widths, mode="edge")

    def pad_leaf(leaf: Leaf) -> Any:
        x, core = leaf.value, leaf.metadata.get("core", 0)  # arms come first
        widths = [(0, 0), (0, 0), (0, extra)] + [(0, 0)] * (core - 1)
        return np.pad(x, widths, mode="edge") if core else x

    environment = jax.tree_util.tree_map_with_path(pad, environment)
    return {"policies": map_leaves(policy, pad_leaf), "environment": environment}


def order_and_chunks_change_nothing(subject: Subject) -> None:
    """Another order of lanes, a part of the replicates, and other chunks give the same bits."""
    base, rows = subject.base, list(range(subject.environment.instances))[::-1]
    backwards = list(range(subject.replicates))[::-1]
    turned = subject.run(**cut(subject, rows), instance_ids=rows, replicates=backwards)
    expected = pick(base, instances=rows, replicates=backwards)
    assert_same_results(expected, turned, "lanes in order and in reverse order")
    last = [subject.replicates - 1]
    alone, what = subject.run(replicates=last), "a replicate in the whole and alone"
    assert_same_results(pick(base, replicates=last), alone, what)
    assert_same_results(base, subject.run(chunk=7), "chunks of 16 and of 7 rounds")


def what_it_is_played_with_changes_nothing(subject: Subject) -> None:
    """Single instances, fewer slots and marks, and two absent arms give the same bits."""
    axis = arms_axis(subject.environment)
    change = f"alone, with few slots and few marks{'' if axis is None else ' and two absent arms'}"
    # All changes at once, since each of them is a program to compile
    for i in range(subject.environment.instances):
        options = {**cut(subject, [i]), "instance_ids": [i], "marks": (MARKS[1], 1.0)}
        if axis is not None:
            options |= widened(options["policies"], options["environment"], axis, 2)
        got = subject.run(**options, slots=max(subject.replicates - 1, 1))
        if axis is not None:
            pulls = got.final["pulls"]
            pulled = "an arm that it does not have was pulled"
            assert not pulls[..., -2:].any(), f"instance {i} {change}: {pulled}"
            got = dataclasses.replace(got, final={**got.final, "pulls": pulls[..., :-2]})
        whole, marks = pick(subject.base, instances=[i]), [(1, 0), (len(MARKS) - 1, 1)]
        assert_same_results(whole, got, f"instance {i} as ever, and {change}", marks=marks)


def leap_equals_scan(subject: Subject) -> None:
    """An engine for many rounds at once, if it accepts the policy, gives scan's bits."""
    if not isinstance(time_parallel(subject.policy, subject.environment, subject.prepared), str):
        owners = subject.policy, subject.environment, subject.constraint
        pairs = zip(owners, ("rests", "addressed", "additive"), strict=True)
        promise = " and ".join(f"{type(owner).__name__}.{name}" for owner, name in pairs)
        label = f"{promise} are declared, and one of them is not kept: engine scan and engine leap"
        assert_same_results(subject.base, subject.run(engine="leap"), label)


def replicates_differ(subject: Subject) -> None:
    """No two replicates are equal."""
    ledger = subject.base.ledger
    # Spent: of each resource
    columns = [ledger[name] for name in ("rounds", "reward", "spent", "expected_reward")]
    runs = np.concatenate([x.reshape(*ledger["rounds"].shape, -1) for x in columns], axis=-1)[0]
    for i, instance in enumerate(runs):
        different = np.unique(instance.reshape(subject.replicates, -1), axis=0)
        same = f"instance {i}: two of {subject.replicates} replicates are the same run"
        assert len(different) == subject.replicates, same


def scores_rest_as_declared(subject: Subject) -> None:
    """If ``rests`` is declared, a score reads only its own arm and t, and never falls at rest."""
    leaves = one_setting(subject.first, subject.environment)
    if not isinstance(leaves, IndexPolicy) or not leaves.rests:
        return
    if not isinstance(subject.round(0).after, ArmStatistics):
        return
    for i, now in subject.sampled(5)[2:]:
        t, pulled = now.observation.view.round, np.asarray(now.after.pulls) > 0
        every = np.asarray(_jitted_scores(leaves, now.after, t))
        before = every[pulled]
        for arm in np.flatnonzero(pulled)[:4]:
            unit = jnp.int32(ticks.ONE)
            stats = record(now.after, jnp.int32(arm), unit, unit)
            after_pull = np.asarray(_jitted_scores(leaves, stats, t))
            moves = (ulps_apart(every, after_pull) > ULPS) & pulled
            moves[arm] = False
            for changed in np.flatnonzero(moves)[:1]:
                change = f"from {every[changed]} to {after_pull[changed]} by a pull of arm {arm}"
                goes = f"the score of arm {changed} goes {change}"
                raise AssertionError(f"`rests` is declared; round {i + 1}: {goes}")
        for later in (1, 30, 1000):
            then = np.asarray(_jitted_scores(leaves, now.after, safe_round(t + later)))[pulled]
            floor = before * (1 - float(margin(leaves)) * np.sign(before))
            for fell in np.flatnonzero(~(then >= floor)):
                change = f"from {before[fell]} to {then[fell]} in {later} rounds of rest"
                raise AssertionError(f"`rests` is declared; round {i + 1}: a score falls {change}")


def keys_are_addressed_by_the_round(subject: Subject) -> None:
    """No draw uses a fixed key, or the policy's key alone, which would repeat each round."""
    leaves, now = one_setting(subject.first, subject.environment), subject.round(0)

    def step(words: jax.Array, before: Any, observation: Any) -> Any:
        return leaves.step(before, typed(words), observation)

    traced = jax.make_jaxpr(step)(subject.policy_words, now.before, now.observation)
    inputs = [_KEY] + [_VARIES] * (len(traced.jaxpr.invars) - 1)
    for draw in draws_of_a_fixed_key(traced.jaxpr, inputs)[1]:
        raise AssertionError(
            f"a draw uses a key that is the same in every round, so the draw repeats ({draw}); its key must be "
            "addressed by the round: jax.random.fold_in(key, view.round), or one of jb.draws"
        )


# What a value depends on: the policy's key; anything that another round may have otherwise
_KEY, _VARIES = (1, 2)


def draws_of_a_fixed_key(jaxpr: Any, inputs: Sequence[int]) -> tuple[list[int], list[str]]:
    """(what each output depends on, draws with a key that does not depend on the round)."""
    of: dict[Any, int] = dict(zip(jaxpr.invars, inputs, strict=True))
    places: list[str] = []

    def read(x: Any) -> int:
        return of.get(x, 0) if hasattr(x, "count") or not hasattr(x, "val") else 0

    for equation in jaxpr.eqns:
        name, place = equation.primitive.name, summarize(equation.source_info).rpartition("/")[2]
        sources = [read(x) for x in equation.invars]
        together = functools.reduce(operator.or_, sources, 0)
        if name == "random_bits" and not sources[0] & _VARIES:
            places.append(place)
        inner = [x for value in equation.params.values() for x in _jaxprs(value)]
        outputs = [together] * len(equation.outvars)
        loops = name in ("scan", "while")
        for body in inner:
            fits = len(body.invars) == len(sources)
            # What does not match one by one (a loop's parts, a branch) is taken together: rather
            # too much varies.
            into = [together] * len(body.invars)
            if (fits or name == "cond") and not loops:
                into = sources[len(sources) - len(body.invars) :]
            out, draws = draws_of_a_fixed_key(body, into)
            places += [draw or place for draw in draws]
            if len(inner) == 1 and len(out) == len(outputs) and fits and not loops:
                outputs = out
        of |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(x) for x in jaxpr.outvars], list(dict.fromkeys(places))


def _jaxprs(value: Any) -> list[Any]:
    """The programs in a parameter of an equation."""
    if isinstance(value, (tuple, list)):
        return [x for part in value for x in _jaxprs(part)]
    value = getattr(value, "jaxpr", value)
    return [value] if hasattr(value, "eqns") else []


def totals_go_on_beyond_128_units(subject: Subject) -> None:
    """Totals of 300 rewards and costs of one unit do not wrap, as int32 ticks do after 128."""
    leaves = one_setting(subject.first, subject.environment)
    observation = subject.round(0).observation
    action = observation.action
    if not isinstance(observation.feedback, Feedback) or not isinstance(action, jax.Array):
        return
    if action.shape or action.dtype != jnp.int32:
        return
    ones = jax.tree.map(lambda x: jnp.full_like(x, ticks.ONE), observation.feedback)
    pulled: Any = {"action": jnp.int32(0), "empty": jnp.bool_(False), "feedback": ones}
    observation = observation._replace(**pulled)

    def again(state: Any, round: jax.Array) -> tuple[Any, Any]:
        view = observation.view._replace(round=round)
        after = leaves.update(state, typed(subject.policy_words), observation._replace(view=view))
        return after, after

    rounds = jnp.arange(2, 302, dtype=jnp.int32)
    _, states = jax.jit(lambda state: jax.lax.scan(again, state, rounds))(subject.round(0).before)
    for path, x in jax.tree_util.tree_leaves_with_path(states):
        if x.dtype != jnp.int32:
            continue
        steps = np.diff(np.asarray(x).astype(np.int64), axis=0).reshape(len(rounds) - 1, -1)
        for after in np.flatnonzero((steps < -(2**31)).any(axis=1))[:1]:
            raise AssertionError(
                f"state{jax.tree_util.keystr(path)} wraps after {after + 2} rewards and costs of one unit: int32 ticks "
                "hold 128 units; keep a Total (jb.ticks.add), or arm_statistics as ArmTotals does"
            )


def draws_change_from_round_to_round(subject: Subject) -> None:
    """A draw that depends on the key depends on the round too, since the key never changes."""
    leaves, chance = one_setting(subject.first, subject.environment), 128

    @jax.jit
    def acts(state: Any, observation: Any) -> tuple[Any, Any]:
        def act(key: jax.Array, round: jax.Array) -> Any:
            return leaves.select(state, typed(key), observation.view._replace(round=round))[1]

        words = subject.policy_words[None, :] ^ jnp.arange(chance, dtype=jnp.uint32)[:, None]
        rounds = observation.view.round + jnp.arange(chance)
        by_key = jax.vmap(act, (0, None))(words, observation.view.round)
        return by_key, jax.vmap(act, (None, 0))(subject.policy_words, rounds)

    def share_of_the_rest(actions: Any) -> float:
        leaves = (np.asarray(x).reshape(chance, -1) for x in jax.tree.leaves(actions))
        table = np.concatenate(list(leaves), axis=1)
        return 1 - np.unique(table, axis=0, return_counts=True)[1].max() / chance

    for i, now in subject.sampled(3):
        by_key, by_round = acts(now.after, now.observation)
        # A quarter of the keys: what is rarer may well not happen in that many rounds.
        assert share_of_the_rest(by_round) > 0 or share_of_the_rest(by_key) < 0.25, (
            f"round {i + 1}: {chance} keys give different actions, {chance} rounds with one key all the same: the draw "
            "must be addressed by view.round"
        )


def slopes_are_finite(subject: Subject) -> None:
    """ln p of a randomised policy's choice always has finite slopes by real parameters."""
    if not chooses_by_logits(subject.policy):
        return
    declared = leaves_of(subject.policy).items()
    paths = [path for path, x in declared if not (x.get("integer") or x.get("core", 0))]
    for instance in range(subject.environment.instances):
        steps = subject.episodes(instance)
        leaves = one_setting(subject.first, subject.environment, instance)
        of_lane = jax.vmap(functools.partial(policy_score.slopes, leaves, paths))
        found = jax.jit(jax.vmap(of_lane))(steps.after, steps.observation.view, steps.action)
        for i, path in enumerate(paths):
            try:
                estimates.refuse_endless(path, np.asarray(found)[..., i], "rounds")
            except InputError as problem:
                raise AssertionError(f"instance {instance}: {problem}") from problem


POLICY_CHECKS: Sequence[Callable[[Subject], None]] = (
    chooses_what_there_is,
    a_second_trace_is_the_first,
    agrees_without_jit,
    learns_nothing_from_an_empty_observation,
    leaves_closed_arms_alone,
    learns_from_the_context_of_the_decision,
    other_values_compile_nothing,
    sweep_equals_loop,
    finished_lanes_are_frozen,
    order_and_chunks_change_nothing,
    what_it_is_played_with_changes_nothing,
    scores_rest_as_declared,
    leap_equals_scan,
    replicates_differ,
    keys_are_addressed_by_the_round,
    draws_change_from_round_to_round,
    totals_go_on_beyond_128_units,
    slopes_are_finite,
)
"""The contract of a policy, with a function for each rule."""


def check_policy(
    policy: Policy,
    environment: Environment,
    constraint: Constraint | None = None,
    *,
    key: Any = None,
) -> None:
    """Check that a policy keeps every rule of the contract, in about ten seconds.

    Args:
        policy: its first setting is checked, with other values of its leaves (half and double, if
            they are allowed).
        environment: a small environment for it, best with two or more instances of different
            kinds.
        constraint: default a total budget for about a hundred rounds; a horizon if costs are 0.
        key: the root key, default ``jax.random.key(0)``.

    Raises:
        AssertionError: naming the rule that is broken and where.
        InputError: if the three do not fit together.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import check_policy
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.3], [0.4, 0.5]])
        >>> @jb.pytree
        ... class Ratio(jb.policies.IndexPolicy):
        ...     def score(self, arms):
        ...         return arms.reward / arms.cost
        >>> check_policy(Ratio(), arms, jb.TotalBudget(30.0, last_pull="forfeits"))
        Traceback (most recent call last):
        AssertionError: Ratio breaks the rule «chooses what there is»: ... a score is NaN (0/0, ...)
    """
    check_nouns([policy], environment, constraint or Horizon(1))
    if constraint is None:
        cost = np.nanmean(environment.values()[1])
        constraint = TotalBudget(100 * cost, last_pull="counts") if cost > 0 else Horizon(100)
    key = jax.random.key(0) if key is None else key
    _keep(POLICY_CHECKS, policy, Subject(policy, environment, constraint, key))


# --- A constraint


def books_without_jit(subject: Subject) -> None:
    """The account is the same without jit, to the bit."""
    constraint = lane_constraint(subject)
    for i, now in subject.sampled(8):
        before = _before(subject, i)
        with jax.disable_jit():
            slow = book(constraint, before, now.outcome)
        equal(now.ledger, slow, f"round {i + 1}: the ledger without jit")


def clock_runs_forward(subject: Subject) -> None:
    """The clock never goes back, and a lane that reaches the end of the clock has ended."""
    ledgers = jax.tree.map(jnp.asarray, subject.episodes(0).ledger)
    constraint = lane_constraint(subject)
    clock = ticks.join(jax.vmap(jax.vmap(constraint.clock))(ledgers))
    steps = np.diff(clock, axis=-1)
    assert (steps >= 0).all(), f"the clock goes back by {-int(steps.min())} ticks in a round"
    over, at_end = np.asarray(subject.episodes(0).over), clock >= ticks.join(constraint.end())
    goes_on = "`ended` is False where the clock has reached its `end`: a lane would never end"
    assert (over | ~at_end).all(), goes_on


def every_lane_has_its_own_clock(subject: Subject) -> None:
    """Each lane has its own clock: one instance's numbers do not affect another's."""
    instances, like = subject.environment.instances, _before(subject, 0)
    # accounts are [instance, …, mark]: where both axes are of one length, a wrong one broadcasts
    # without a word
    marks = instances if instances != len(MARKS) else instances - 1
    for result in (subject.base, subject.run(marks=marks)):
        for lane in np.ndindex(*result.ledger["clock"].shape[1:]):
            account = {name: x[0, *lane] for name, x in result.ledger.items()}
            clock = ticks.join(lane_constraint(subject, lane[0]).clock(ledger_from(account, like)))
            expected = lane_constraint(subject, lane[0], np.asarray).expected_clock(account)
            for name, by_lane in (("clock", clock), ("expected_clock", expected)):
                place = f"instance {lane[0]}, replicate {lane[1]}, mark {lane[2] + 1} of {len(result.marks)}"
                message = f"{place}: {name} is {account[name]}, of the lane by itself {by_lane}"
                assert np.array_equal(account[name], by_lane), message


def ends_as_it_says(subject: Subject) -> None:
    """Lanes end with the status ``ends_with``, and the best rate has the clock's unit."""
    ended, must = subject.base.ended, subject.constraint.ends_with
    strays = ended[(ended != must) & (ended != Status.ROUND_CAP)]
    assert strays.size == 0, f"a lane ends as {Status(int(strays[0])).name}; it must be {must.name}"
    assert (ended == must).any(), f"no lane ends as {must.name}: all of them by max_rounds"
    rate, shape = np.asarray(subject.base.best_rate), (subject.environment.instances,)
    assert rate.shape == shape and np.isfinite(rate).all(), f"best_rate gives {rate}"


def expected_clock_is_the_clock_of_the_means(subject: Subject) -> None:
    """If every outcome equals its mean, ``expected_clock`` is the clock."""
    host_constraint = lane_constraint(subject, 0, np.asarray)
    constraint, ledger = lane_constraint(subject), _before(subject, 0)
    for i, now in subject.sampled(8):
        outcome = now.outcome
        plain = outcome._replace(reward=outcome.expected_reward, cost=outcome.expected_cost)
        ledger = book(constraint, ledger, plain)
        if bool(constraint.ended(ledger)):
            return
        clock = ticks.join(constraint.clock(ledger))
        account = account_of(ledger) | {"clock": clock}
        whole = {name: x.astype(np.int64) for name, x in account.items()}
        expected = host_constraint.expected_clock(whole)
        both = f"expected_clock is {expected}, the clock {clock} ticks"
        assert np.array_equal(expected, clock), f"round {i + 1}: {both}"


def adds_up_as_declared(subject: Subject) -> None:
    """If *additive*, it ends with its clock, and until then books exactly as ``post``."""
    if not capabilities.has(subject.constraint, capabilities.ADDITIVE):
        return
    if subject.environment.resources is None:  # of several it ends with the first
        constraint = lane_constraint(subject)
        ledgers = jax.tree.map(jnp.asarray, subject.episodes(0).ledger)
        clock = ticks.join(jax.vmap(jax.vmap(constraint.clock))(ledgers))
        over = np.asarray(jax.vmap(jax.vmap(constraint.ended))(ledgers))
        early = "it is additive, and `ended` before its clock has reached its `end`"
        assert (over == (clock >= ticks.join(constraint.end()))).all(), early
    for i in range(subject.steps.over.shape[0]):
        before, now = _before(subject, i), subject.round(i)
        if not bool(now.over):
            posted = post(before, now.outcome)._replace(rounds=before.rounds + 1)
            label = f"`additive` is declared; round {i + 1}: what post books and what charge books differ: the ledger"
            equal(posted, now.ledger, label)


def no_arm_has_a_regret_below_0(subject: Subject) -> None:
    """Pulling one arm forever earns at most ``best_rate``, up to one round and chance."""
    arms = getattr(subject.environment.spec, "arms", 0)
    if not isinstance(subject.environment.spec, FixedSplit.plays) or not 1 <= arms <= 64:
        return
    alone = FixedSplit(np.eye(arms))
    result = subject.run(policies=alone, replicates=16, marks=1, slots=None, chunk=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regret = result.regret.values[..., -1]
    if any("rank by" in str(warning.message) for warning in caught):
        return
    keeps = np.full(regret.shape, True)
    if "audit:violation" in result.ledger:  # who overspends may earn more
        keeps = result.ledger["audit:violation"][..., -1] <= 0
    keeps &= np.isin(result.ended, (subject.constraint.ends_with, Status.CLOSED))
    error = regret.std(axis=2, ddof=1) / 4
    worst = regret.mean(axis=2) + 1 + np.abs(result.best_rate) + 5 * error
    for arm, instance in np.argwhere((worst < 0) & keeps.all(axis=2))[:1]:
        raise AssertionError(
            f"instance {instance}: arm {arm} alone has a mean regret of "
            f"{regret[arm, instance].mean():.4g} ± {error[arm, instance]:.2g}: best_rate is "
            f"{result.best_rate[instance]:.4g} per unit of the clock, and it earns more"
        )


CONSTRAINT_CHECKS: Sequence[Callable[[Subject], None]] = (
    a_second_trace_is_the_first,
    books_without_jit,
    clock_runs_forward,
    every_lane_has_its_own_clock,
    ends_as_it_says,
    expected_clock_is_the_clock_of_the_means,
    adds_up_as_declared,
    no_arm_has_a_regret_below_0,
    finished_lanes_are_frozen,
    order_and_chunks_change_nothing,
    what_it_is_played_with_changes_nothing,
    leap_equals_scan,
)
"""The contract of a constraint, with a function for each rule."""


def check_constraint(
    constraint: Constraint,
    environment: Environment,
    policy: Policy | None = None,
    *,
    key: Any = None,
) -> None:
    """Check that a constraint keeps every rule of the contract, in about ten seconds.

    Args:
        constraint: one whose lanes end after some hundred rounds.
        environment: a small world; two or more instances of different kinds are best.
        policy: who plays, default :class:`~jaxbandits.policies.CUCB`, which leaps where it is
            allowed to.

    Key and errors are those of :func:`check_policy`.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import check_constraint
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.3], [0.4, 0.5]])
        >>> check_constraint(jb.TotalBudget(30.0, last_pull="forfeits"), arms, jb.policies.BGreedy())
    """
    key = jax.random.key(0) if key is None else key
    check_nouns([policy or CUCB()], environment, constraint)
    _keep(CONSTRAINT_CHECKS, constraint, Subject(policy or CUCB(), environment, constraint, key))


def _keep(checks: Sequence[Callable[[Subject], None]], owner: object, subject: Subject) -> None:
    """Raise :class:`AssertionError` with the first rule that ``owner`` breaks."""
    for check in checks:
        try:
            check(subject)
        except AssertionError as broken:
            rule = f"{type(owner).__name__} breaks the rule «{check.__name__.replace('_', ' ')}»"
            raise AssertionError(f"{rule}: {broken}") from broken
        except InputError:
            raise
        except Exception as problem:
            name = user_method(owner, "step" if isinstance(owner, Policy) else "charge", problem)
            raise InputError(f"{name}: fails: {in_a_line(problem)}") from problem


_TOTALS = ("reward", "spent", "expected_reward", "expected_spent")


def account_of(ledger: Ledger) -> dict[str, np.ndarray]:
    """Exact accounts by their names in a result."""
    exact = {name: ticks.join(getattr(ledger, name)) for name in _TOTALS}
    counts = {f"event:{name}": np.asarray(x) for name, x in ledger.events.items()}
    audits = {f"audit:{name}": ticks.join(x) for name, x in ledger.audit.items()}
    return {"rounds": np.asarray(ledger.rounds)} | exact | counts | audits


def ledger_from(account: dict[str, Any], like: Ledger) -> Ledger:
    """The ledger for accounts as from :func:`account_of`."""

    def total(name: str) -> ticks.Total:
        return jax.tree.map(jnp.asarray, ticks.split(account[name]))

    return like._replace(
        rounds=jnp.int32(account["rounds"]),
        **{name: total(name) for name in _TOTALS},
        events={name: jnp.int32(account[f"event:{name}"]) for name in like.events},
        audit={name: total(f"audit:{name}") for name in like.audit},
    )


def lane_constraint(
    subject: Subject, instance: int = 0, array: Callable[..., Any] = jnp.asarray
) -> Constraint:
    """The traced form for one instance."""
    return jax.tree.map(lambda x: array(x)[instance], subject.prepared)


def _before(subject: Subject, i: int) -> Ledger:
    """The ledger before the round ``i + 1`` of the first lane."""
    if i > 0:
        return subject.round(i - 1).ledger
    empty = jax.tree.map(jnp.zeros_like, subject.round(0).ledger)
    return empty._replace(audit=jax.tree.map(jnp.asarray, lane_constraint(subject).audit()))
