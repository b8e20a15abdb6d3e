"""The score function of the environment: how the regret of *any* policy depends on the instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance
from jaxbandits.constraints import pays_for_the_clock
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, refuse
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import names_of
from jaxbandits.core.streams import Domain
from jaxbandits.core.ticks import Total
from jaxbandits.environments.contextual import ContextualArms
from jaxbandits.environments.finite import BernoulliLaw, FiniteArms
from jaxbandits.gradients import contextual, estimates
from jaxbandits.gradients.estimates import MEANS, GradientEstimate, Scores
from jaxbandits.result import Result


@estimates.of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str] = MEANS,
    key: Any,
    replicates: int = 1000,
    baseline: str = "leave_one_out",
    **options: Any,
) -> GradientEstimate:
    """Unbiased gradient of the expected regret with respect to an instance's parameters.

    With f the pseudo-regret of a run, S = Σ ∂ ln p(outcome; θ) over the outcomes of all pulls up to
    and with the last one, and b a baseline that is independent of the run,

    .. math:: \\nabla_\\theta E[f] = E\\big[(f - b)\\, S + \\partial_\\theta f\\big].

    The last term is the explicit part, since gaps and the best rate depend on the instance. Lawful
    for argmax policies too: the regret is smooth in the instance whatever the policy does, but for
    kinks where the best arm changes; there it has no gradient, and the mean of both sides' slopes
    is what is estimated.

    Args:
        policy: any policy for these arms; leaves scalar or ``[setting]``.
        environment: Bernoulli arms (wrt ``mean_reward``, ``mean_cost``) or Beta arms (wrt
            ``reward_alpha``, ``reward_beta``, ``cost_alpha``, ``cost_beta``), instances ``[I]``;
            with a null arm or without. Bernoulli arms may cost several resources. Or
            :class:`~jaxbandits.environments.ContextualArms` with linear or logistic means and coins
            as outcomes (wrt ``reward``, ``cost``: θ). A mean that is clipped to 0 or 1 does not
            move.
        constraint: a horizon or a total budget, of each resource; with contexts an average cost as
            well, and of ``last_pull`` only ``"counts"``.
        wrt: one of those names, or several.
        key: as in :func:`~jaxbandits.simulate`, which gets the further ``options``.
        replicates: independent runs R ≥ 2 on every instance.
        baseline: ``"leave_one_out"`` (the mean regret of the R − 1 other runs), ``"self_play"``
            (that of one other run) or ``"none"``.

    Returns:
        A :class:`GradientEstimate`. Gradients are ``[setting, instance, K]``, those by
        ``mean_cost`` of d resources ``[setting, instance, K, d]``, and with contexts ``[setting,
        instance, …]`` with the axes of θ of one instance. NaN for absent arms. For one cost,
        ``about["next_kink"]`` says how far a mean must move until another arm is the best, ``[I]``.

    Warns of arms whose outcomes are so rare that a few runs carry the standard error.

    Raises:
        InputError: a law without density in these parameters, a mean of exactly 0 or 1, a run that
            did not end.

    Deviations: draws of Beta arms come from a table (its CDF is within 3·10⁻⁵ for shapes in (0, 5],
    see :mod:`jaxbandits._numerics.beta`); the score is the Beta law's, with the exact conditional
    expectation where an outcome is rounded to 0 or 1.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
        >>> estimate = jb.gradients.score_function.estimate(
        ...     jb.policies.OmegaUCB(), arms, jb.Horizon(20), wrt="mean_reward", key=jax.random.key(0), replicates=50)
        >>> estimate.gradient["mean_reward"].shape
        (1, 1, 2)
    """
    names = names_of(wrt)
    estimates.check_replicates(replicates, baseline)
    arms = estimates.beside_null(environment)
    play = contextual.score_runs if isinstance(arms, ContextualArms) else _scores
    runs = play(policy, environment, constraint, names, key=key, replicates=replicates, **options)
    advantage = estimates.centred(runs.regret, baseline)
    value, error = estimates.mean_and_error(runs.regret)
    gradient, errors = {}, {"value": error}
    for name in names:
        score = runs.score[name]
        samples = _broadly(advantage, score) * score + runs.explicit[name]
        is_absent = np.isnan(_broadly(runs.exists[name][:, None], samples[0]))
        estimates.refuse_endless(name, np.where(is_absent, 0.0, samples))
        estimates.warn_of_few(name, samples)
        mean, error = estimates.mean_and_error(samples)
        exists = _broadly(runs.exists[name], mean[0])
        gradient[name], errors[name] = mean + exists, error + exists
    about: dict[str, Any] = {"estimator": "score_function", "unbiased_for": "expected regret"}
    about |= {"baseline": baseline}
    if isinstance(arms, FiniteArms):
        about |= estimates.next_kink(arms, constraint, names)
    about |= {"rounds": runs.rounds, "replicates": replicates}
    return GradientEstimate(value, gradient, errors, about)


def _scores(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    names: Sequence[str],
    *,
    key: Any,
    **options: Any,
) -> Scores:
    """Of finite arms: outcomes are computed again from the number of pulls."""
    arms = estimates.check_law(environment, names)
    bernoulli = isinstance(arms.law, BernoulliLaw)
    for name, mean in zip(MEANS, arms.values(), strict=True) if bernoulli else ():
        if name in names:
            must = "strictly between 0 and 1 (at the edge the score is undefined)"
            refuse(name, mean, (mean <= 0) | (mean >= 1), must)
    result, regret, rounds = estimates.play_copies(
        policy, environment, constraint, key=key, **options
    )
    # The null arm, the last, brings nothing
    pulls = np.asarray(result.final["pulls"])[..., : arms.spec.arms]
    lanes = np.asarray(result.about.instance_ids), np.asarray(result.replicates)
    totals = sums(arms, _outcome if bernoulli else _logs, key, *lanes, pulls)
    score = (_bernoulli_scores if bernoulli else _beta_scores)(arms, pulls, totals)
    explicit = _explicit(arms, constraint, result, pulls, names)
    exists = np.where(np.asarray(arms.present), 0.0, np.nan)
    return Scores(regret, score, explicit, dict.fromkeys(names, exists), rounds)


# --- Scores of the outcomes that were seen.


def _broadly(x: np.ndarray, template: np.ndarray) -> np.ndarray:
    """``x`` with as many axes as ``template``: with several resources there is one more, the last."""
    return x[(...,) + (None,) * (template.ndim - x.ndim)]


def _outcome(reward: jax.Array, cost: jax.Array) -> jax.Array:
    return jnp.append(ticks.ticks_to_float(reward), ticks.ticks_to_float(cost))


def _bernoulli_scores(
    arms: FiniteArms, pulls: np.ndarray, totals: np.ndarray
) -> dict[str, np.ndarray]:
    """∂ ln p / ∂ μ = Σx/μ − (n − Σx)/(1 − μ)."""
    mean_r, mean_c = (mean[:, None] for mean in arms.values())
    costs = totals[..., 1:] if arms.resources is not None else totals[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: np.nan_to_num(s / mean - (_broadly(pulls, s) - s) / (1 - mean))
            for name, mean, s in zip(MEANS, (mean_r, mean_c), (totals[..., 0], costs), strict=True)
        }


def _logs(reward: jax.Array, cost: jax.Array) -> jax.Array:
    """Of both x: (ln x or 0, 1 if x is rounded to 0; ln(1 − x) or 0, 1 if 1 − x is)."""
    logs = []
    for x in (reward, ticks.ONE - 1 - reward, cost, ticks.ONE - 1 - cost):
        # x ticks stand for (x, x + 1): outcomes are rounded down. Near 1 the logarithm is taken of
        # the other side.
        small = jnp.log((jnp.clip(x, 1, None).astype(jnp.float32) + 0.5) * np.float32(2.0**-24))
        rest = jnp.clip(ticks.ONE - x, 1, None).astype(jnp.float32) - 0.5
        large = jnp.log1p(-rest * np.float32(2.0**-24))
        log = jnp.where(x > ticks.ONE // 2, large, small)
        logs += [jnp.where(x < 1, 0.0, log), (x < 1).astype(jnp.float32)]
    return jnp.stack(logs)


def _shapes(arms: FiniteArms, kind: str) -> list[np.ndarray]:
    """α and β of the rewards or the costs, ``[I, 1, K]``."""
    shapes = (getattr(arms.law, f"{kind}_{name}") for name in ("alpha", "beta"))
    return [np.asarray(x, np.float64)[:, None] for x in shapes]


def _beta_scores(arms: FiniteArms, pulls: np.ndarray, totals: np.ndarray) -> dict[str, np.ndarray]:
    """∂ ln p / ∂α = Σ ln x − n(ψ(α) − ψ(α+β)), ∂ ln p / ∂β = Σ ln(1−x) − n(ψ(β) − ψ(α+β)).

    An outcome rounded to 0 tells that x < 2⁻²⁴: there E[ln x] = ln 2⁻²⁴ − 1/α.
    """
    from scipy.special import digamma

    scores = {}
    for i, kind in enumerate(("reward", "cost")):
        shapes = _shapes(arms, kind)
        middle = digamma(shapes[0] + shapes[1])
        for j, (name, shape) in enumerate(zip(("alpha", "beta"), shapes, strict=True)):
            logs, nones = totals[..., 4 * i + 2 * j], totals[..., 4 * i + 2 * j + 1]
            log_sums = logs + nones * (-24 * np.log(2) - 1 / shape)
            scores[f"{kind}_{name}"] = log_sums - pulls * (digamma(shape) - middle)
    return scores


# --- The explicit part: how gaps and the best rate move, at fixed pulls.


def _explicit(
    arms: FiniteArms,
    constraint: Constraint,
    result: Result,
    pulls: np.ndarray,
    names: Sequence[str],
) -> dict[str, np.ndarray]:
    """∂(rate·clock − Σ earned·μ^r)/∂θ, pulls fixed: ``[setting, instance, replicate, K]``."""
    mean_r, mean_c = arms.values()
    by_money = pays_for_the_clock(constraint.prepare(arms))
    clock = ticks.to_units(result.ledger["expected_clock"][..., -1])[..., None]
    rate_r, rate_c = _rate_gradients(arms, constraint, mean_r, mean_c)
    rate = np.asarray(result.best_rate)[:, None, None]
    needs_reward = any(name.removeprefix("mean_").startswith("reward") for name in names)
    earned = _earned(arms, result, pulls) if needs_reward else 0.0
    by_r = rate_r[:, None] * clock - earned
    if arms.resources is None:
        by_c = rate_c[:, None] * clock + (rate * pulls if by_money else 0.0)
    else:  # the clock of several resources is the first
        first = np.arange(arms.resources) == 0
        paid = first * (rate * pulls)[..., None] if by_money else 0.0
        by_c = rate_c[:, None] * clock[..., None] + paid
    if names[0] in MEANS:
        return {"mean_reward": by_r, "mean_cost": by_c}
    gradient = {}
    for kind, by in (("reward", by_r), ("cost", by_c)):
        a, b = _shapes(arms, kind)
        gradient[f"{kind}_alpha"] = by * b / (a + b) ** 2
        gradient[f"{kind}_beta"] = -by * a / (a + b) ** 2
    return gradient


def _rate_gradients(
    arms: FiniteArms, constraint: Constraint, mean_r: np.ndarray, mean_c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives ``[I, K(, d)]`` of the best rate, by central differences in float64."""
    prepared = constraint.prepare(arms)
    gradients = []
    for kind, mean in enumerate((mean_r, mean_c)):
        gradient = np.zeros_like(mean)
        for place in np.ndindex(mean.shape[1:]):
            ends, cells = [], (slice(None), *place)
            for sign in (1, -1):
                means = [mean_r.copy(), mean_c.copy()]
                means[kind][cells] *= 1 + sign * 1e-6
                ends.append(prepared.best_rate(*means))
            gradient[cells] = (ends[0] - ends[1]) / (2e-6 * mean[cells])
        gradients.append(np.nan_to_num(gradient))
    return gradients[0], gradients[1]


def _earned(arms: FiniteArms, result: Result, pulls: np.ndarray) -> np.ndarray:
    """Pulls whose reward counted; the exact total of means shows which arm forfeited one."""
    mean = np.where(np.asarray(arms.present), np.asarray(arms.mean_reward, np.int64), -1)
    every = (pulls.astype(np.int64) * np.maximum(mean, 0)[:, None]).sum(-1)
    missing = every - result.ledger["expected_reward"][..., -1]
    if not missing.any():
        return pulls.astype(np.float64)
    requirement = "under last_pull='forfeits', to identify the arm whose last reward was forfeited"
    if (pulls.sum(axis=-1) > result.ledger["rounds"][..., -1]).any():
        given = "one that pulls several arms a round"
        raise InputError(f"policy: {given} given; it must pull one {requirement}")
    forfeited = (missing[..., None] == mean[:, None]) & (missing[..., None] != 0)
    if (forfeited.sum(-1) > 1).any():
        given = "two arms of equal mean reward"
        raise InputError(f"environment: {given} given; they must differ {requirement}")
    return pulls - forfeited


# --- What every arm showed in a run, computed again from the number of its pulls
#
# Outcomes are addressed: the first n outcomes of an arm in (instance, replicate) are a function of
# the root key. So sums over the outcomes of a lane, such as the score of its likelihood, need no
# trace of the run and no change of the engines; they stop where the lane stopped, since only pulls
# that were played are counted.

_BLOCK = 64  # outcomes of a pair at a time; their parts fit one int32
_PAIRS = 1 << 12

# (reward, cost) of a pull in ticks -> f32[S], numbers to be summed (below 2²⁴ in size).
Statistic = Callable[[jax.Array, jax.Array], jax.Array]


def sums(
    environment: FiniteArms,
    statistic: Statistic,
    key: jax.Array,
    instance_ids: np.ndarray,
    replicate_ids: np.ndarray,
    pulls: np.ndarray,
) -> np.ndarray:
    """Σ statistic over each arm's first ``pulls`` outcomes, ``[..., instance, replicate, arm, S]``.

    ``statistic`` is hashable, so that it is compiled once; ``key`` the root key of the run, whose
    ids are given.
    """
    lead = pulls.shape[:-3]
    flat = pulls.reshape(-1)
    place = np.unravel_index(np.arange(flat.size), (int(np.prod(lead)), *pulls.shape[-3:]))
    row, replicate, arm = (x.astype(np.int32) for x in place[1:])
    order = np.argsort(-flat, kind="stable")  # pairs of similar length together
    root = np.asarray(jax.random.key_data(key))
    environment = jax.tree.map(np.asarray, environment)  # a copy: `jit` looks at its code again
    parts = []
    for start in range(0, flat.size, _PAIRS):
        batch = order[start : start + _PAIRS]
        padded = np.resize(batch, _PAIRS)  # always the same width, so that it compiles once
        n = np.where(np.arange(_PAIRS) < batch.size, flat[padded], 0).astype(np.int32)
        lane = instance_ids[row[padded]], replicate_ids[replicate[padded]]
        pairs = row[padded], *(x.astype(np.uint32) for x in lane), arm[padded], n
        total = _sums(environment, root, pairs, statistic=statistic)
        parts.append(ticks.to_units(ticks.join(jax.tree.map(np.asarray, total)))[: batch.size])
    totals = np.concatenate(parts)
    result = np.empty_like(totals)
    result[order] = totals
    return result.reshape(*pulls.shape, -1)


@jit
def _sums(
    environment: FiniteArms, root: jax.Array, pairs: tuple[jax.Array, ...], *, statistic: Statistic
) -> Total:
    """:func:`sums` of pairs (row, instance id, replicate id, arm, n): exact totals ``[pair, S]``."""
    row, instance, replicate, arm, n = pairs

    def words(instance: jax.Array, replicate: jax.Array) -> jax.Array:
        lane = streams.lane_key(streams.typed(root), instance, replicate)
        return jax.random.key_data(streams.domain_key(lane, Domain.WORLD))

    keys = jax.vmap(words)(instance, replicate)

    def outcome(row: jax.Array, key: jax.Array, arm: jax.Array, place: jax.Array) -> jax.Array:
        world = at_instance(environment, row)
        return statistic(*world.outcome(streams.typed(key), arm, place))

    outcomes = jax.vmap(jax.vmap(outcome, in_axes=(None, None, None, 0)))
    first = jax.lax.iota(jnp.int32, _BLOCK)
    shape: Any = jax.eval_shape(outcomes, row, keys, arm, first[None, :] + n[:, None]).shape

    def block(state: tuple[jax.Array, Total]) -> tuple[jax.Array, Total]:
        done, total = state
        place = jnp.broadcast_to((done + first)[None, :], (n.shape[0], _BLOCK))
        values = jnp.where((place < n[:, None])[..., None], outcomes(row, keys, arm, place), 0)
        whole = jnp.floor(values)
        part = ((values - whole) * ticks.ONE).astype(jnp.int32)  # exact: values are float32
        parts = jnp.sum(part, axis=1, dtype=jnp.int32)
        more = ticks.count(jnp.sum(whole.astype(jnp.int32), axis=1, dtype=jnp.int32))
        return done + _BLOCK, ticks.plus(ticks.add(total, parts), more)

    longest, start = jnp.max(n), (jnp.int32(0), ticks.zero((shape[0], shape[2])))
    return jax.lax.while_loop(lambda s: s[0] < longest, block, start)[1]
