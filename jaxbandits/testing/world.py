"""The contract of an environment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance
from jaxbandits._engine.setup import time_parallel
from jaxbandits.constraints import Horizon
from jaxbandits.core import capabilities, streams, ticks
from jaxbandits.core.checks import InputError, in_a_line, user_method
from jaxbandits.core.fingerprint import jit, traced
from jaxbandits.core.protocol import NEVER, Environment, Outcome, Policy
from jaxbandits.core.pytrees import Pytree, select_tree
from jaxbandits.core.streams import Domain, typed
from jaxbandits.environments.continuum import Continuum
from jaxbandits.environments.finite import AddressedArms
from jaxbandits.policies.ucb import CUCB
from jaxbandits.policies.zooming import Zooming
from jaxbandits.simulation import simulate
from jaxbandits.testing.lanes import assert_same_results, assert_traced_alike, domain_words, equal


def check_environment(
    environment: Environment,
    actions: Sequence[Any] | None = None,
    *,
    key: Any = None,
    pulls: int = 4096,
    counted: bool = True,
) -> float:
    """Check that an environment keeps every rule of the contract, in each instance.

    Args:
        environment: the world.
        actions: what to try, default every arm of ``environment.spec``. Those that an instance
            calls not valid are left out there.
        key: the root key, default ``jax.random.key(0)``.
        pulls: outcomes of every action that the means are estimated from.
        counted: True if the n-th outcome of an action belongs to n and not to the round (arms that
            can be counted).

    Returns:
        The largest distance of an empirical mean from the stated one, in its standard errors.

    An environment whose outcomes are *addressed* (:mod:`jaxbandits.core.capabilities`) is held to
    it: ``pull`` agrees with ``outcome`` and ``means``, and every engine that takes it gives the
    bits of the scan engine. Where arms close, ``open`` says which pulls are valid, and no arm opens
    before ``opens_next``.

    Raises:
        AssertionError: naming the rule that is broken and where. Empirical means fail by a
            Bonferroni test at 1 %, which holds for rare outcomes, too: by exact binomial tails, or
            Hoeffding's bound. (Coins with means 0.0016 and ½ for reward and cost fail for 0.71 % of
            keys, counted exactly; 9 of 1,000 did.)
        InputError: code that fails, with class, method and line.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import check_environment
        >>> worst = check_environment(jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3]))
        >>> worst < 4
        True
    """
    forgotten = capabilities.forgotten(environment)
    assert forgotten is None, forgotten
    environment.check()
    environment = jax.tree.map(jnp.asarray, environment)
    root = streams.root_key(jax.random.key(0) if key is None else key)
    every = range(environment.spec.arms if actions is None else 0)
    tried = [jnp.int32(arm) for arm in every] if actions is None else list(actions)
    name, bound = type(environment).__name__, max(environment.largest(tried[0]))
    try:
        _structure(environment, tried[0], root)
        words = domain_words(root, 0, 0, Domain.WORLD)
        played = jnp.int32(0), _start(environment, 0), tried[0], words, jnp.int32(1)
        assert_traced_alike(lambda: traced(_pull, environment, *played))
        scores: list[tuple[float, str]] = []
        samples = []
        for instance in range(environment.instances):
            words = domain_words(root, instance, 0, Domain.WORLD)
            _pure(environment, tried, instance, words)
            if getattr(environment.spec, "context", None) is not None:
                _contexts(environment, instance, words)
            outcomes = _played(environment, tried, instance, words, pulls)
            if actions is None:
                _available(environment, instance, outcomes)
            if _closes(environment):
                _keeps_its_opening(environment, instance, words)
            if counted:
                _counted(environment, tried, instance, words)
            samples.append(_playable(environment, instance, outcomes))
            _lanes_differ(environment, tried, instance, root, samples[-1])
            scores += _means(samples[-1], instance, bound)
        _addresses(environment, root)
        from scipy import stats as laws  # slow to import

        allowed = float(laws.norm.isf(0.005 / len(scores)))
        worst, place = max(scores)
        allowance = f"among {len(scores)} comparisons {allowed:.2f} are allowed"
        assert worst <= allowed, f"{place}, {worst:.2f} standard errors away; {allowance}"
        # of worlds whose means change, and of those with arms without end, `values` says something
        # else
        means_stay = type(environment).benchmarks is Environment.benchmarks
        if actions is None and means_stay and environment.values()[0].shape[1] >= len(tried):
            for instance, outcomes in enumerate(samples):
                _values(environment, len(tried), instance, outcomes)
    except AssertionError as broken:
        raise AssertionError(f"{name}: {broken}") from broken
    except InputError:
        raise
    except Exception as problem:
        method = user_method(environment, "pull", problem)
        raise InputError(f"{method}: fails: {in_a_line(problem)}") from problem
    return worst


# --- One pull, and many.


def _pull(
    environment: Environment,
    instance: jax.Array,
    state: Pytree,
    action: Any,
    words: Any,
    round: Any,
) -> Any:
    world = at_instance(environment, instance)
    return world.pull(state, action, typed(words), jnp.asarray(round, jnp.int32))


_pull_fast = jit(_pull)


def _start(environment: Environment, instance: int) -> Pytree:
    return at_instance(environment, jnp.int32(instance)).start()


def _stacked(actions: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *actions)


@jit
def _play(
    environment: Environment, actions: Any, instance: jax.Array, words: jax.Array, *, pulls: int
) -> Outcome:
    def of_action(action: Any) -> Outcome:
        def again(state: Pytree, round: jax.Array) -> tuple[Pytree, Outcome]:
            after, outcome, _, _ = _pull(environment, instance, state, action, words, round)
            return select_tree(outcome.valid, after, state), outcome

        start = at_instance(environment, instance).start()
        return jax.lax.scan(again, start, jnp.arange(1, pulls + 1, dtype=jnp.int32))[1]

    return jax.vmap(of_action)(actions)


def _played(
    environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array, pulls: int
) -> Outcome:
    """Outcomes ``[action, pull]`` of every action alone."""
    outcomes = _play(environment, _stacked(actions), jnp.int32(instance), words, pulls=pulls)
    return jax.tree.map(np.asarray, outcomes)


def _playable(environment: Environment, instance: int, played: Outcome) -> Outcome:
    """Those of actions that are valid there; arms that are closed are out."""
    playable = np.asarray(played.valid).all(axis=1)
    if _closes(environment):
        playable = np.asarray(played.valid).any(axis=1)
    assert playable.any(), f"instance {instance}: no action is valid"
    return jax.tree.map(lambda x: x[playable], played)


# --- The rules.


def _structure(environment: Environment, action: Any, root: jax.Array) -> None:
    import chex  # type: ignore[import-untyped,unused-ignore]  # here: it takes a tenth of a second

    def alike(what: str, must: Any, given: Any) -> None:
        chex.assert_trees_all_equal_shapes_and_dtypes(must, given, custom_message=what)

    state, words = _start(environment, 0), domain_words(root, 0, 0, Domain.WORLD)
    pulled = jax.eval_shape(_pull, environment, jnp.int32(0), state, action, words, jnp.int32(1))
    parts = f"pull gives a {type(pulled).__name__} in place of (state, Outcome, feedback, empty)"
    assert isinstance(pulled, tuple) and len(pulled) == 4, parts
    after, outcome, _, empty = pulled
    whole, truth = (jax.ShapeDtypeStruct((), kind) for kind in (jnp.int32, jnp.bool_))
    if _closes(environment):
        world = at_instance(environment, jnp.int32(0))
        asked = state, jnp.int32(1)
        opening = jax.eval_shape(lambda: (world.open(*asked), world.opens_next(*asked)))
        arms = jax.ShapeDtypeStruct((environment.spec.arms,), jnp.bool_)
        alike("open and opens_next", opening, (arms, whole))
    alike("the state after a pull", state, after)
    kind = f"pull gives a {type(outcome).__name__} in place of an Outcome"
    assert isinstance(outcome, Outcome), kind
    costs: Any = jax.ShapeDtypeStruct(outcome.cost.shape, jnp.int32)
    template = Outcome(whole, costs, whole, costs, dict.fromkeys(outcome.events, whole), truth)  # type: ignore[arg-type]
    alike("outcome and empty", (template, truth), (outcome, empty))


def _pure(
    environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array
) -> None:
    """Equal arguments, equal bits: twice, without jit, and in a batch."""
    state, i = _start(environment, instance), jnp.int32(instance)
    first = [_pull_fast(environment, i, state, action, words, 1) for action in actions]
    for action, got in zip(actions, first, strict=True):
        again = _pull_fast(environment, i, state, action, words, 1)
        equal(got, again, f"instance {instance}: one pull made twice: the second")
    with jax.disable_jit():
        slow = _pull(environment, i, state, actions[0], words, 1)
    equal(first[0], slow, f"instance {instance}: a pull without jit")
    batch = jax.jit(jax.vmap(_pull, in_axes=(None, None, None, 0, None, None)))
    together = batch(environment, i, state, _stacked(actions), words, 1)
    equal(_stacked(first), together, f"instance {instance}: pulls in a batch")


def _contexts(environment: Environment, instance: int, words: jax.Array) -> None:
    """A context has the spec's shape and the same bits alone, again, and among other rounds."""
    world, rounds = at_instance(environment, jnp.int32(instance)), jnp.arange(1, 9, dtype=jnp.int32)
    context_of = jax.jit(lambda round: world.context(typed(words), round))
    alone = [context_of(round) for round in rounds]
    shape, context = tuple(environment.spec.context), alone[0]
    fits = context is not None and (context.shape, context.dtype) == (shape, jnp.float32)
    kind = "None" if context is None else f"{context.dtype}{list(context.shape)}"
    assert fits, f"instance {instance}: a context is {kind}; spec.context says float32{list(shape)}"
    together = jax.jit(jax.vmap(lambda round: world.context(typed(words), round)))(rounds)
    place = f"instance {instance}"
    equal(jnp.stack(alone), together, f"{place}: contexts among those of other rounds, which")
    equal(alone[0], context_of(rounds[0]), f"{place}: a context asked for twice, which")


def _available(environment: Environment, instance: int, played: Outcome) -> None:
    """``available`` says which arms can be pulled."""
    arms = environment.spec.arms
    available = np.asarray(at_instance(environment, jnp.int32(instance)).available())
    place, kind = f"instance {instance}: `available`", f"{available.dtype}{list(available.shape)}"
    fits = available.shape == (arms,) and available.dtype == np.bool_
    assert fits, f"{place} gives {kind}; it must be bool[{arms}]"
    if _closes(environment):  # what is not there is never open
        return
    for arm in np.flatnonzero(available != np.asarray(played.valid)[:, 0])[:1]:
        says, valid = "is not", "valid"
        if available[arm]:
            says, valid = "is", "not valid (its mean cost is −1, say)"
        there = f"arm {arm} {says} there, and a pull of it is {valid}"
        raise AssertionError(f"{place} says that {there}")


_OPEN_ROUNDS = 256


def _closes(environment: Environment) -> bool:
    """May its arms close?"""
    world = at_instance(environment, jnp.int32(0))
    return jax.eval_shape(lambda: world.open(world.start(), jnp.int32(1))) is not None


@jit
def _open_rounds(
    environment: Environment, instance: jax.Array, words: jax.Array
) -> tuple[jax.Array, ...]:
    """Random play of open arms: (open, valid ``[round, K]``; ``opens_next`` of each round)."""
    world, key = at_instance(environment, instance), typed(words)
    exists, arms = world.available(), jax.lax.iota(jnp.int32, environment.spec.arms)

    def round_step(state: Pytree, round: jax.Array) -> tuple[Pytree, tuple[jax.Array, ...]]:
        open_ = exists & world.open(state, round)  # type: ignore[operator]
        valid = jax.vmap(lambda arm: world.pull(state, arm, key, round)[1].valid)(arms)
        arm = streams.available_arm(streams.words(key, round, 1)[0], open_)
        after = world.pull(state, jnp.minimum(arm, arms.size - 1), key, round)[0]
        next_ = world.opens_next(state, round)
        return select_tree(jnp.any(open_), after, state), (open_, valid, next_)

    rounds = jnp.arange(1, _OPEN_ROUNDS + 1, dtype=jnp.int32)
    return jax.lax.scan(round_step, world.start(), rounds)[1]


def _keeps_its_opening(environment: Environment, instance: int, words: jax.Array) -> None:
    """``open`` says which pulls are valid, and no closed arm opens before ``opens_next`` says so."""
    rounds = _open_rounds(environment, jnp.int32(instance), words)
    is_open, valid, after = map(np.asarray, rounds)
    for round, arm in np.argwhere(is_open != valid)[:1]:
        says, but = ("is open", "not valid") if is_open[round, arm] else ("is closed", "valid")
        place = f"instance {instance}: in round {round + 1}"
        both = f"arm {arm} {says}, and a pull of it is {but}"
        raise AssertionError(f"{place} `open` says that {both}")
    # [earlier, round]: an arm that was closed is open. Elsewhere than by address a pull between may
    # have opened it.
    opens = np.triu((is_open[None] & ~is_open[:, None]).any(axis=2), 1)
    if not isinstance(environment, AddressedArms):
        idle = np.append(0, np.cumsum(is_open.any(axis=1)))
        opens &= idle[:-1, None] == idle[None, :-1]
    opens &= after[:, None] > np.arange(1, len(is_open) + 1)
    for earlier, round in np.argwhere(opens)[:1]:
        when = "never" if after[earlier] == NEVER else f"round {after[earlier]}"
        place = f"instance {instance}: in round {earlier + 1} `opens_next` says {when}"
        raise AssertionError(f"{place}, and in round {round + 1} an arm opens")


def _counted(
    environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array
) -> None:
    """The n-th pull gives the same, whatever was pulled in between."""
    i, times = jnp.int32(instance), 6
    state, mixed, round = _start(environment, instance), {}, 0
    for n in range(times):
        for number, action in enumerate(actions):
            round += 1
            state, *mixed[number, n] = _pull_fast(environment, i, state, action, words, round)
    if _closes(environment):  # who is open may be another matter of the round
        times, mixed = 1, {pair: [x[0]._replace(valid=None), *x[1:]] for pair, x in mixed.items()}
    for number, action in enumerate(actions):
        state = _start(environment, instance)
        for n in range(times):
            state, *got = _pull_fast(environment, i, state, action, words, 1000 + n)
            if _closes(environment):
                got[0] = got[0]._replace(valid=None)
            label = f"instance {instance}: pull {n + 1} of action {number} among others, and alone in other rounds: it"
            try:
                equal(mixed[number, n], got, label)
            except AssertionError as broken:
                hint = "outcomes that depend on the round or on the last one need check_environment(…, counted=False)"
                raise AssertionError(f"{broken}; {hint}") from None


def _lanes_differ(
    environment: Environment, actions: Sequence[Any], instance: int, root: Any, outcomes: Outcome
) -> None:
    """Replicates and instances meet different outcomes (unless nothing is random)."""
    if not any((x != x[:, :1]).any() for x in (outcomes.reward, outcomes.cost)):
        return
    for lane, name in (((instance, 1), "replicate"), ((instance + 1, 0), "instance id")):
        words = domain_words(root, *lane, Domain.WORLD)
        played = _played(environment, actions, instance, words, outcomes.reward.shape[1])
        elsewhere = _playable(environment, instance, played)
        pairs = (outcomes.reward, elsewhere.reward), (outcomes.cost, elsewhere.cost)
        differ = f"instance {instance}: another {name} gives the same outcomes of every action"
        assert not all(np.array_equal(*pair) for pair in pairs), differ


def _means(outcomes: Outcome, instance: int, bound: int) -> list[tuple[float, str]]:
    """How far mean rewards and costs of valid actions are from the stated ones, see :func:`distance`."""
    scores = list[tuple[float, str]]()
    for name in ("reward", "cost"):
        sample, stated = getattr(outcomes, name), getattr(outcomes, f"expected_{name}")
        low = -bound if stated.min() < 0 else 0
        valid = np.broadcast_to(outcomes.valid[(..., *[None] * (sample.ndim - 2))], sample.shape)
        for x in sample[((sample < low) | (sample > bound)) & valid][:1]:
            beyond = f"a {name} of {x} ticks is outside {low} … {bound}, which `largest` says"
            raise AssertionError(f"instance {instance}: {beyond}")
        for number, *resource in np.ndindex(sample.shape[0], *sample.shape[2:]):
            pulls = outcomes.valid[number]
            of_action = (x[number, pulls][(..., *resource)] for x in (sample, stated))
            draws, means = (x.astype(np.float64) for x in of_action)
            sampled, stated_mean = ticks.to_units(draws.mean()), ticks.to_units(means.mean())
            place = (
                f"instance {instance}: the mean {name} of action {number} (of those that are valid) is "
                f"{sampled:.6g} in {draws.size} pulls, and the stated one {stated_mean:.6g}"
            )
            scores.append((distance(draws, means, low, bound), place))
    return scores


_FEW = 300  # outcomes other than the commonest, for the mean to be near enough to a normal law: its skew is then 0.06


def distance(sample: np.ndarray, stated: np.ndarray, low: float, high: float) -> float:
    """The distance of a mean in ``low … high`` from the stated one, in standard errors."""
    # Or what a normal law has for the same chance: that of 0-or-1 outcomes is exact, and where few
    # outcomes differ from the commonest one no normal law holds, but Hoeffding's bound.
    from scipy import stats as laws  # slow to import

    number = sample.size
    if (np.abs(sample - stated) <= 1).all():
        return 0.0
    # The stated mean is rounded to a tick.
    mean = float(np.clip(sample.mean(), stated.mean() - 0.5, stated.mean() + 0.5))
    share, observed = (mean - low) / (high - low), (sample.mean() - low) / (high - low)
    kinds, counts = np.unique(sample, return_counts=True)
    if np.isin(kinds, (low, high)).all() and (stated == stated[0]).all():
        won = int((sample == high).sum())
        tail = min(laws.binom.cdf(won, number, share), laws.binom.sf(won - 1, number, share))
        return float(laws.norm.isf(min(tail, 0.5)))
    if number - counts.max() >= _FEW:
        return float(abs(sample.mean() - mean) / (sample.std(ddof=1) / np.sqrt(number)))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.nan_to_num(observed * np.log(observed / share))
        apart += np.nan_to_num((1 - observed) * np.log((1 - observed) / (1 - share)))
    return float(laws.norm.isf(min(np.exp(-number * apart), 0.5)))


def _values(environment: Environment, arms: int, instance: int, outcomes: Outcome) -> None:
    """``values``, of which regret is made, says what outcomes say of their means."""
    for name, values in zip(("reward", "cost"), environment.values(), strict=True):
        stated = getattr(outcomes, f"expected_{name}")
        of_arms = np.asarray(values, np.float64)[instance][:arms]
        prefix = f"instance {instance}: `values` gives a mean"
        by_values = of_arms[np.isfinite(of_arms)].reshape(-1, *stated.shape[2:])
        if _closes(environment) and len(stated) < len(by_values):  # some can never be pulled
            return
        counts = f"{len(by_values)} arms, but {len(stated)} can be pulled"
        assert len(by_values) == len(stated), f"{prefix} {name} of {counts}"
        # A mean that changes from pull to pull is no single value.
        by_outcomes = ticks.to_units(stated[:, 0])
        apart = np.where(stated[:, 0] == stated[:, 1], np.abs(by_values - by_outcomes), 0.0)
        at = apart.argmax()
        both = f"{by_values.flat[at]:.6g}, but its outcomes one of {by_outcomes.flat[at]:.6g}"
        assert apart.max() <= 2.0**-23, f"{prefix} {name} of {both}"


# --- Outcomes by address: what must be kept if engines are to play many rounds at once.

_PULLS = 3


def _addresses(environment: Environment, root: jax.Array) -> None:
    """``pull`` agrees with ``means`` and ``outcome``; an engine that fits gives scan's bits."""
    policy: Policy
    if isinstance(environment, AddressedArms) and environment.resources is None:
        policy = CUCB()
        if capabilities.has(environment, capabilities.ADDRESSED):
            for instance in range(environment.instances):
                _pull_agrees(environment, instance, domain_words(root, instance, 0, Domain.WORLD))
    elif isinstance(environment, Continuum):
        policy = Zooming(lipschitz=4.0, capacity=min(environment.remembered, 64))
    else:
        return
    horizon = Horizon(200)
    if not isinstance(time_parallel(policy, environment, horizon.prepare(environment)), str):
        with warnings.catch_warnings():
            # How well it plays does not matter here
            warnings.filterwarnings("ignore", r"Zooming\.lipschitz")
            options: dict[str, Any] = {"key": root, "replicates": 2, "marks": (0.5, 1.0)}
            nouns = policy, environment, horizon
            by_scan, by_leap = (simulate(*nouns, engine=x, **options) for x in ("scan", "leap"))
        promise = f"{type(environment).__name__}.addressed is declared; engine scan and engine {by_leap.about.engine}"
        assert_same_results(by_scan, by_leap, promise)


def _pull_agrees(environment: AddressedArms, instance: int, words: jax.Array) -> None:
    """Every arm a few times: the outcome, its means, the count of pulls, and nothing else."""
    pairs = _by_pull_and_by_address(environment, jnp.int32(instance), words)
    valid = np.asarray(pairs["valid"][0])
    for name, (by_pull, by_address) in jax.tree.map(np.asarray, pairs).items():
        for arm, n in np.argwhere((by_pull != by_address) & valid)[:1]:
            place = f"`addressed` is declared; instance {instance}: pull {n + 1} of arm {arm}"
            both = f"{by_pull[arm, n]} by pull and {by_address[arm, n]} by means and outcome"
            raise AssertionError(f"{place}: {name} is {both}")


@jit
def _by_pull_and_by_address(
    environment: AddressedArms, instance: jax.Array, words: jax.Array
) -> dict[str, Any]:
    """By name what pull says, and what means and outcome say: ``[arm, pull]`` each."""
    world, key = at_instance(environment, instance), typed(words)

    def pulls(arm: jax.Array) -> dict[str, Any]:
        def again(state: Any, n: jax.Array) -> tuple[Any, dict[str, Any]]:
            after, outcome, feedback, empty = world.pull(state, arm, key, n + 1)
            reward, cost = world.outcome(key, arm, n)
            mean_reward, mean_cost = world.means(arm)
            counted = state + (jax.lax.iota(jnp.int32, state.size) == arm)
            open_, is_counts = world.opening(arm, n, n + 1), jnp.all(after == counted)
            return after, {
                "the number of events": (jnp.int32(len(outcome.events)), jnp.int32(0)),
                "the reward": (outcome.reward, reward),
                "the cost": (outcome.cost, cost),
                "the mean reward": (outcome.expected_reward, mean_reward),
                "the mean cost": (outcome.expected_cost, mean_cost),
                "the learner's reward": (feedback.reward, reward),
                "the learner's cost": (feedback.cost, cost),
                "the state (is it the counts of pulls?)": (is_counts, jnp.bool_(True)),
                "empty": (empty, jnp.bool_(False)),
                "valid": (outcome.valid, (mean_cost >= 0) & (True if open_ is None else open_)),
            }

        return jax.lax.scan(again, world.start(), jnp.arange(_PULLS, dtype=jnp.int32))[1]

    return jax.vmap(pulls)(jnp.arange(environment.spec.arms, dtype=jnp.int32))
