"""Estimate from logged decisions what other policies would have earned within a budget.

:func:`replay` evaluates policies that learn: a row of the :class:`Log` counts if the policy chooses
the logged arm. :func:`off_policy` evaluates a rule that does not learn, from all rows.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import driver, scan
from jaxbandits._engine.setup import lay_out, prepare_constraint
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._progress import unfinished
from jaxbandits.constraints import Horizon, TotalBudget, rounds_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import bad, booleans, door, in_float32, numbers, refuse, whole_number
from jaxbandits.core.fingerprint import PROGRAM
from jaxbandits.core.protocol import Constraint, Feedback, Outcome, Policy, Status, View, unknown
from jaxbandits.core.pytrees import leaf, pytree, select_tree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import check_unit, ticks32
from jaxbandits.environments.finite import CountedArms, listed
from jaxbandits.policies.base import Plan
from jaxbandits.result import Result, join_settings
from jaxbandits.simulation import labelled, origin_of
from jaxbandits.statistics.estimates import check_level, mean_ends

__all__ = ["AsLogged", "Log", "RuleValue", "off_policy", "replay"]

_SUMS_TO_ONE = 1e-6
# Rows of a part over those that a run is expected to need: 1.3, and eight deviations of its rounds
_SPARE = 1.3, 8.0
_MOST_PARTS = 1000
_FEW = 10  # rows: 50 logged ones with a fifth of the weight each cover 94 %, 20 cover 80 %
_IMPLAUSIBLE = 5.0  # standard errors


@dataclasses.dataclass(frozen=True)
class Log:
    """Logged decisions and their outcomes, one per row; make one with :meth:`of`.

    Attributes:
        action: the arm of each row, ``i32[N]``, a position in ``arms``.
        reward, cost: in [0, 1], ``f64[N]``; costs of several resources ``[N, d]``.
        propensity: the probability with which the arm was taken, ``f64[N]``.
        arms: the names of the K arms.
        context: the context of each decision, ``f32[N, d]`` or ``[N, K, d]``, or None.
        available: which arms could be chosen, ``bool[N, K]``; None: all.
    """

    action: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    propensity: np.ndarray
    arms: tuple[Any, ...]
    context: np.ndarray | None = None
    available: np.ndarray | None = None

    @classmethod
    @door
    def of(
        cls,
        action: Any,
        reward: Any,
        cost: Any = 0.0,
        *,
        propensity: Any,
        context: Any = None,
        available: Any = None,
        arms: int | Sequence[Any] | None = None,
    ) -> Self:
        """A log from arrays, or from columns of a DataFrame.

        Args:
            action: the arm of each row, ``[N]``: names, or numbers from 0.
            reward: in [0, 1] (divide by the largest), ``[N]``, or booleans.
            cost: in [0, 1], ``[N]``, or ``[N, d]`` for d resources; or one number for all rows.
                Divide budgets by the same number as costs.
            propensity: the probability of the logged arm, ``[N]``; or those of all arms, ``[N, K]``;
                or ``"uniform"``, the same for every available arm.
            context: ``[N, d]``, or ``[N, K, d]`` with a row for each arm, on a scale near 1.
            available: which arms could be chosen, ``[N, K]``.
            arms: K, or the names of all arms in their order; default those that occur, sorted.

        Columns are matched by position; the index of a DataFrame is ignored.

        Raises:
            InputError: columns of unequal length, numbers out of range, an arm that is not in
                ``arms`` or was not available, probabilities of a row that do not sum to 1.

        Example:
            >>> import jaxbandits as jb
            >>> log = jb.Log.of(["b", "a", "b"], [1.0, 0.0, 1.0], [0.2, 0.1, 0.2], propensity="uniform")
            >>> log
            Log of 3 rows, 2 arms (a, b): reward 0.6667, cost 0.1667 a row
            >>> log.action.tolist()
            [1, 0, 1]
        """
        given = np.asarray(action)
        is_column = given.ndim == 1 and given.size > 0
        refuse("action", _shape(given), not is_column, "[N], the arm of each row")
        blank = [x for x in given.tolist() if x is None or x != x]
        refuse("action", blank[:1], len(blank) > 0, "the name or number of an arm in every row")
        if arms is None:
            names: tuple[Any, ...] = tuple(np.unique(given).tolist())
        else:
            refuse("arms", arms, isinstance(arms, str), "K, or the names of all arms")
            names = tuple(range(whole_number("arms", arms, 1)) if isinstance(arms, int) else arms)
            twice = [name for name, count in Counter(names).items() if count > 1]
            refuse("arms", twice[:1], len(twice) > 0, "distinct names")
        n, k, place = len(given), len(names), {name: at for at, name in enumerate(names)}
        unknown = next((x for x in given.tolist() if x not in place), None)
        listed_arms = ", ".join(map(str, names[:20]))
        refuse("action", unknown, unknown is not None, f"one of the arms {listed_arms}")
        chosen = np.array([place[x] for x in given.tolist()], np.int32)

        r, c = numbers("reward", _counted(reward)), numbers("cost", _counted(cost))
        c = np.broadcast_to(c, n) if c.ndim == 0 else c
        refuse("reward", _shape(r), r.shape != (n,), f"[N], N = {n}")
        refuse("cost", _shape(c), c.shape[:1] != (n,) or c.ndim > 2, f"[N] or [N, d], N = {n}")
        check_unit("reward", r, rows=True)
        check_unit("cost", c, rows=True)
        could = None if available is None else booleans("available", available)
        if could is not None:
            refuse("available", _shape(could), could.shape != (n, k), f"[N, K], {(n, k)}")
            row = int(np.argmin(could[np.arange(n), chosen]))
            says = f"False for arm {names[chosen[row]]} in row {row}"
            refuse("available", says, not could[row, chosen[row]], "True: it was chosen")
        known = None if context is None else in_float32("context", _counted(context))
        if known is not None:
            fits = known.ndim in (2, 3) and known.shape[:-1] in ((n,), (n, k))
            refuse("context", _shape(known), not fits, f"[N, d] or [N, K, d], N = {n}, K = {k}")
            row = int(np.isfinite(known).reshape(n, -1).all(axis=1).argmin())
            says = f"{known[row]} in row {row}"
            refuse("context", says, not np.isfinite(known[row]).all(), "finite")
        chance = _propensities(propensity, chosen, could, n, k)
        log = cls(chosen, r, c, chance, names, known, could)
        log._doubt()
        return log

    def __len__(self) -> int:
        return len(self.action)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.arms[:6])) + (", …" if len(self.arms) > 6 else "")
        cost = "/".join(f"{x:.4g}" for x in np.atleast_1d(self.cost.mean(axis=0)))
        means = f"reward {self.reward.mean():.4g}, cost {cost} a row"
        return f"Log of {len(self):,} rows, {len(self.arms)} arms ({shown}): {means}"

    def _doubt(self) -> None:
        """Warn where the propensities are not those of this log: 1{a = k}/p has the mean 1."""
        arms = np.arange(len(self.arms))
        could = np.ones(arms.size) if self.available is None else self.available
        apart = (self.action[:, None] == arms) / self.propensity[:, None] - could
        with np.errstate(invalid="ignore", divide="ignore"):
            z = apart.mean(axis=0) / (apart.std(axis=0) / np.sqrt(len(self)))
        k = int(np.nanargmax(np.abs(z))) if np.isfinite(z).any() else 0
        if abs(z[k]) > _IMPLAUSIBLE:
            amount = f"{'more' if z[k] > 0 else 'fewer'} than their probabilities imply"
            by = f"by {abs(z[k]):.1f} standard errors: do these belong to this log?"
            rows = f"rows of arm {self.arms[k]!r} are {amount}"
            warnings.warn(f"propensity: {rows}, {by}", stacklevel=4)

    def _chosen_blindly(self) -> bool:
        """Was an arm's probability the same in all rows, which are then a fair sample of it?"""
        of_arm = np.zeros(len(self.arms))
        of_arm[self.action] = self.propensity
        same = np.allclose(of_arm[self.action], self.propensity, rtol=1e-9, atol=0)
        return same and self.context is None and self.available is None

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean reward ``[K]`` and cost ``[K(, d)]`` of each arm: Σ v/p / Σ 1/p, NaN without rows."""
        weight = (self.action[:, None] == np.arange(len(self.arms))) / self.propensity[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = weight / weight.sum(axis=0)
        return weight.T @ self.reward, weight.T @ self.cost

    def _world(self) -> LoggedArms:
        money = [ticks32(x)[None] for x in (self.reward, self.cost, *self.means())]
        tables = (None if x is None else x[None] for x in (self.context, self.available))
        return LoggedArms(*money, *tables)


def _counted(column: Any) -> Any:
    """Yes and no as 1 and 0."""
    given = np.asarray(column)
    return given.astype(np.float64) if given.dtype == bool else column


def _shape(x: np.ndarray) -> str:
    return f"shape {x.shape}"


def _propensities(
    propensity: Any, action: np.ndarray, available: np.ndarray | None, n: int, k: int
) -> np.ndarray:
    """The probability of each row's arm, checked."""
    if isinstance(propensity, str):
        may_be = "probabilities, [N] or [N, K], or 'uniform'"
        refuse("propensity", propensity, propensity != "uniform", may_be)
        return np.full(n, 1 / k) if available is None else 1 / available.sum(axis=1)
    p = numbers("propensity", propensity)
    fits = p.shape in ((n,), (n, k))
    refuse("propensity", _shape(p), not fits, f"[N] or [N, K], {(n,)} or {(n, k)}")
    if p.ndim == 2:
        row = int(np.abs(p.sum(axis=1) - 1).argmax())
        ok, given = abs(p[row].sum() - 1) <= _SUMS_TO_ONE, f"a sum of {p[row].sum():g} in row {row}"
        refuse("propensity", given, not ok, "1 over the arms of a row")
        p = p[np.arange(n), action]
    row = int(np.argmin((p > 0) & (p <= 1)))
    given = f"{p[row]:g} in row {row}"
    refuse("propensity", given, not 0 < p[row] <= 1, "in (0, 1]: the arm was chosen")
    return p


@pytree
class LoggedArms(CountedArms):
    """Rows of a log as an environment: every pull has the outcome of the row."""

    # :func:`replay` hands over one row at a time, and drops the rounds in which another arm was
    # pulled.

    reward: ArrayLike = leaf()  # i32[instance, N]
    cost: ArrayLike = leaf()  # i32[instance, N(, d)]
    mean_reward: ArrayLike = leaf()  # i32[instance, K]
    mean_cost: ArrayLike = leaf()  # i32[instance, K(, d)]
    features: ArrayLike = leaf(default=None)
    could: ArrayLike = leaf(default=None)  # bool[instance, N, K]

    @property
    def spec(self) -> FiniteSpec:
        # One instance has an axis less: the runner puts rows in place of tables
        resources = self.cost.shape[-1] if len(self.cost.shape) > len(self.reward.shape) else None
        size = None if self.features is None else self.features.shape[len(self.reward.shape) :]
        return FiniteSpec(int(self.mean_reward.shape[-1]), resources, context=size)

    def open(self, state: Any, round: jax.Array) -> jax.Array | None:
        return None if self.could is None else self.could[0]

    def opens_next(self, state: Any, round: jax.Array) -> jax.Array:
        return round + 1

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        return None if self.features is None else self.features[0]

    def pull(self, state: Any, action: jax.Array, key: jax.Array, round: jax.Array) -> Any:
        reward, cost = self.reward[0], self.cost[0]
        valid = (action >= 0) & (action < self.spec.arms)
        outcome = Outcome(reward, cost, reward, cost, {}, valid=valid)
        return self.counted(state, action), outcome, Feedback(reward, cost), jnp.bool_(False)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The means estimated from the log."""
        return ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)

    def listed_costs(self) -> np.ndarray | None:
        return listed(self.cost, 0 if self.resources is None else 1)

    def benchmarks(self, constraint: Constraint, clock: np.ndarray) -> Any:
        """Unknown: a log has no optimum to compare with."""
        return {"moving": unknown}


@pytree
class AsLogged(Plan):
    """The policy that wrote the log: every row counts."""

    def check(self, spec: Any) -> None:
        """Accepts several costs, since it does not use them."""

    def select(self, state: jax.Array, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        return state, jnp.argmax(view.available).astype(jnp.int32)


# --- A walk


class _Walk(NamedTuple):
    """Lanes on their way through the rows."""

    row: jax.Array  # i32[]
    carry: scan.Carry  # [lane]
    met: jax.Array  # i32[lane]: rows until the end of the run


@partial(jax.jit, static_argnames="all_count")
def _walk(
    rows: LoggedArms, action: jax.Array, lanes: scan.Lane, *, all_count: bool
) -> tuple[driver.EndedLane, jax.Array]:
    """All lanes through the rows of their parts, ``[row, part, …]``, and the rows that each met."""
    of_row = ("reward", "cost", "features", "could")

    def at(row: jax.Array) -> LoggedArms:
        every = {name: getattr(rows, name) for name in of_row}
        now = {name: None if x is None else x[row][:, None] for name, x in every.items()}
        return dataclasses.replace(rows, **now)

    def one(world: LoggedArms, logged: jax.Array, lane: scan.Lane, carry: scan.Carry) -> Any:
        after = scan.step(world, lane, carry)
        counts = all_count | (after.state.action == logged[lane.row])
        # A run that its policy ends has played no round
        counts |= after.state.ledger.rounds == carry.state.ledger.rounds
        after = carry._replace(state=select_tree(counts, after.state, carry.state))
        reached = ticks.reached(lane.constraint.clock(after.state.ledger), after.goal)
        return after, reached & (after.next_mark < lane.marks.whole.shape[0])

    def next_row(now: _Walk) -> _Walk:
        world = at(now.row)
        met = now.met + (now.carry.state.status == Status.RUNNING)
        carry, due = jax.vmap(partial(one, world, action[now.row]))(lanes, now.carry)
        write = jax.vmap(partial(scan.record_mark, world))
        carry = jax.lax.cond(jnp.any(due), write, lambda lanes, carry: carry, lanes, carry)
        return _Walk(now.row + 1, carry, met)

    def more(now: _Walk) -> jax.Array:
        running = now.carry.state.status == Status.RUNNING
        return (now.row < action.shape[0]) & jnp.any(running)

    first = at(jnp.int32(0))
    begin = jax.vmap(partial(scan.start_lane, first))(lanes)
    last = jax.lax.while_loop(more, next_row, _Walk(jnp.int32(0), begin, jnp.zeros_like(lanes.row)))
    return driver.outcomes(first, lanes, last.carry), last.met


def _parts_of(log: Log, order: np.ndarray, parts: int) -> tuple[LoggedArms, np.ndarray]:
    """Rows ``[row, part, …]`` of as many equal parts of the log in this order."""
    length = len(order) // parts
    cut = order[: length * parts].reshape(parts, length).T
    means = (np.repeat(ticks32(x)[None], parts, axis=0) for x in log.means())
    money = [ticks32(x[cut]) for x in (log.reward, log.cost)]
    tables = (None if x is None else x[cut] for x in (log.context, log.available))
    return LoggedArms(*money, *means, *tables), log.action[cut]


@door
def replay(
    policies: Policy | Sequence[Policy],
    log: Log,
    constraint: Constraint,
    *,
    key: Any,
    parts: int | None = None,
    marks: int | Sequence[float] = 50,
) -> Result:
    """Estimate what policies that learn would have earned on this log within a budget.

    A run goes through the rows in a random order and makes a decision for each; if it chooses the
    logged arm, the row counts: it is paid, booked and learned, and the next round begins. All other
    rows are skipped. If every arm was logged with the same probability, a run has the distribution
    of a run in the environment behind the log (Li et al., Theorem 1). Other logs are thinned first:
    a row with propensity p is kept with probability min p / p, unless each arm has one probability
    in all rows and there is no context, where that is not needed.

    The log is divided into equal ``parts``, the same for every policy, and each is one run. Runs of
    different parts are independent, so intervals over ``"replicate"`` have their stated coverage;
    those of several random orders of the same rows would not. The last setting is the logging policy.

    Args:
        policies: one, or several; the settings of each are as in :func:`~jaxbandits.simulate`.
        log: see :meth:`Log.of`.
        constraint: :class:`~jaxbandits.Horizon` counts the rounds of a policy, not rows.
        key: ``jax.random.key(seed)``: for the order of rows, which rows are kept, the policies' draws.
        parts: how many runs; default as many as the rows allow, up to 1,000.
        marks: as in :func:`~jaxbandits.simulate`.

    Returns:
        A :class:`~jaxbandits.Result`, whose replicates are the parts. ``final["rows"]`` is how many
        rows a run used, ``result.rounds`` how many counted. Its regret is NaN, since the most that
        could have been earned is unknown. A run whose part ends first has the status ``round_cap``.

    Raises:
        InputError: an arm without rows in the log, and what ``simulate`` refuses.

    Source: Li, Chu, Langford, Wang, Unbiased offline evaluation of contextual-bandit-based news
    article recommendation algorithms, WSDM 2011, Algorithm 2 (policy evaluator).

    Deviations: runs end with a budget; the same random numbers serve a policy in all rows of one
    round, which leaves the law of a run as it is.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> rng = np.random.default_rng(0)
        >>> arm = rng.integers(0, 3, 20_000)
        >>> reward, cost = rng.random(20_000) < np.array([0.6, 0.4, 0.2])[arm], np.full(20_000, 0.5)
        >>> log = jb.Log.of(arm, reward.astype(float), cost, propensity="uniform")
        >>> result = jb.replay(
        ...     jb.policies.OmegaUCB(), log, jb.TotalBudget(50.0, last_pull="counts"), key=jax.random.key(1))
        >>> earned = jb.statistics.mean(result.reward[..., -1], over="replicate")
        >>> [bool(x > 38) for x in earned.value.values.ravel()]                   # who wrote the log earns 40
        [True, True]
    """
    if not isinstance(log, Log):
        raise bad("log", log, "a Log, see jb.Log.of")
    given: list[Any] = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    tried = np.bincount(log.action, minlength=len(log.arms)) > 0
    if not tried.all():
        missing = log.arms[int(np.argmin(tried))]
        may_be = "a log with rows of every arm: leave arms that were never tried out of `arms`"
        raise bad("log", f"no row of arm {missing!r}", may_be)
    seed = np.asarray(jax.random.key_data(streams.root_key(key)))
    generator = np.random.default_rng(seed.tolist())
    order = generator.permutation(len(log))
    least = log.propensity.min()
    stays = log._chosen_blindly() | (generator.random(len(log)) * log.propensity <= least)
    kept = order[stays[order]]
    # Of the rows that are left, whatever a policy takes was logged with at least this probability
    match = least * len(log) / len(kept)

    world = log._world()
    options: dict[str, Any] = {"key": key, "marks": marks, "engine": "scan"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "regret:")
        one_run = lay_out([*given], world, constraint, **options)
        if parts is None:
            rounds = float(one_run.expected[0])
            needed = (_SPARE[0] * rounds + _SPARE[1] * rounds**0.5) / match + 10 * len(log.arms)
            parts = int(np.clip(len(kept) // needed, 1, _MOST_PARTS))
        most = len(kept) // len(log.arms)
        few = f"{least:.3g}, the least, which leaves {len(kept)} rows that are fair to all arms"
        refuse(
            "propensity", few, most <= 0, "larger: you may leave out the rows with the least one"
        )
        parts = whole_number("parts", parts, 1, most)
        layout = lay_out([*given, AsLogged()], world, constraint, replicates=parts, **options)

    results, short = [], []
    fair, every = (_parts_of(log, some, parts) for some in (kept, order))
    origin = origin_of(world, jax.local_devices()[0].device_kind)
    for number, task in enumerate(layout.tasks):
        logged = isinstance(task.policy, AsLogged)
        rows, action = every if logged else fair
        lanes = task.lanes(np.arange(task.order.size))
        part = task.places(np.arange(task.order.size))[2].astype(np.int32)
        lanes = lanes._replace(row=part)  # type: ignore[arg-type]
        with PROGRAM(task.program):
            ended, met = jax.device_get(_walk(rows, action, lanes, all_count=logged))
        status = np.where(ended.status == Status.RUNNING, Status.ROUND_CAP, ended.status)
        accounts = scan.unpack(ended.rows, ended.account)
        ledger = scan.ledger_of(accounts, task.constraint, np.zeros(len(met), np.int32))
        final = {**ended.final, "rows": met}
        place = dataclasses.replace(task, engine=sys.modules[__name__], environment=world)
        tasks = (*layout.tasks[:number], place, *layout.tasks[number + 1 :])
        part_layout = dataclasses.replace(layout, tasks=tasks)
        results.append(labelled(ledger, status, final, part_layout, number, constraint, origin))
        cut = status == Status.ROUND_CAP
        if cut.any():
            share = ledger["clock"][cut, -1] / ticks.join(task.constraint.end())[0]
            name = type(task.policy).__name__
            short.append(f"{name} {cut.sum()} of {cut.size} (at {share.mean():.0%})")
    if short:
        limit = "budget" if layout.tasks[0].constraint.clock_name == "spent" else "horizon"
        ended = f"the rows ended before the {limit}"
        take = f"take {f'fewer parts than {parts} or ' if parts > 1 else ''}a smaller budget"
        runs = f"runs of {', '.join(short)}, so their rewards are for that share"
        warnings.warn(f"replay: {ended} in {runs}; {take}", stacklevel=3)
    if parts == 1:
        one = "one run of each policy, so no interval"
        warnings.warn(f"replay: {one}; take a smaller budget", stacklevel=3)
    result = join_settings(results)
    for text in unfinished(np.where(result.ended == Status.ROUND_CAP, 1, result.ended)):
        warnings.warn(f"replay: {text}; see result.status", stacklevel=3)
    return result


# --- A rule that does not learn


@dataclasses.dataclass(frozen=True)
class RuleValue:
    """What a rule earns under a constraint, estimated from a log.

    Attributes:
        value, low, high: the estimate and its interval.
        reward, cost: a round's, estimated.
        over_log, over_log_low, over_log_high: how much more it earns than the logging policy, paired.
        effective_rows: :math:`(\\sum w)^2 / \\sum w^2`, the number of equally weighted rows as informative.
        method: ``"ips"``, ``"snips"`` or ``"dr"``.
        rows: of the log.
    """

    value: float
    low: float
    high: float
    reward: float
    cost: np.ndarray
    over_log: float
    over_log_low: float
    over_log_high: float
    effective_rows: float
    method: str
    rows: int

    def __repr__(self) -> str:
        value = f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"
        over = f"{self.over_log:+.4g} ({self.over_log_low:+.4g} to {self.over_log_high:+.4g})"
        rows = f"{self.effective_rows:,.0f} of {self.rows:,} rows"
        return f"{value}, over the log {over}; {self.method}, {rows}"


@door
def off_policy(
    log: Log,
    shares: Any,
    constraint: Constraint,
    *,
    method: str = "dr",
    model: Any = None,
    level: float = 0.95,
) -> RuleValue:
    """Estimate what a rule that does not learn would have earned, from all rows of a log.

    With :math:`w_i = \\pi(a_i | x_i) / p_i`, q̂ a model of means, and v the reward or a cost, a
    round earns

    .. math:: \\text{ips: } \\tfrac1n \\sum_i w_i v_i, \\qquad
              \\text{snips: } \\sum_i w_i v_i / \\sum_i w_i, \\qquad
              \\text{dr: } \\tfrac1n \\sum_i \\Big[ \\sum_a \\pi(a|x_i)\\, \\hat q(x_i, a)
              + w_i (v_i - \\hat q(x_i, a_i)) \\Big].

    The value is the reward of a round times the rounds that the constraint allows, the least of T
    and B_j over the cost of a round: a ratio of two estimates under a budget. Its interval is that
    of the mean of the rows' influences, corrected for skewness.

    Args:
        log: see :meth:`Log.of`.
        shares: π, the probability of every arm, ``[K]`` or of each row ``[N, K]``.
        constraint: a :class:`~jaxbandits.Horizon` or a :class:`~jaxbandits.TotalBudget`.
        method: ``"dr"``, ``"snips"`` or ``"ips"``.
        model: q̂ of the reward and of all costs, ``[N, K, 1 + d]``; default a ridge regression on
            the context for each arm, fitted on the other half of the rows.
        level: of the intervals.

    Raises:
        InputError: shares that do not sum to 1, or are positive for an arm without rows in the log
            (or which was not available); another constraint.

    Source: Horvitz and Thompson (1952); Swaminathan and Joachims, The self-normalized estimator for
    counterfactual learning, NIPS 2015; Dudík, Langford, Li, Doubly robust policy evaluation and
    learning, ICML 2011, equation 1.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> rng = np.random.default_rng(0)
        >>> arm = rng.integers(0, 2, 4000)
        >>> reward = (rng.random(4000) < np.array([0.6, 0.2])[arm]).astype(float)
        >>> log = jb.Log.of(arm, reward, 0.5, propensity="uniform")
        >>> found = jb.off_policy(log, [1.0, 0.0], jb.TotalBudget(50.0, last_pull="counts"))
        >>> found.low < 60 < found.high, round(found.effective_rows / 4000, 2)
        (True, 0.49)
    """
    if not isinstance(log, Log):
        raise bad("log", log, "a Log, see jb.Log.of")
    check_level("level", level)
    n, k = len(log), len(log.arms)
    pi = _rule(log, shares)
    got = np.column_stack([log.reward, log.cost])  # [N, 1 + d]
    weight = pi[np.arange(n), log.action] / log.propensity
    refuse("method", method, method not in ("dr", "snips", "ips"), "'dr', 'snips' or 'ips'")
    if method == "snips":
        share = weight / weight.mean()
        round_ = (share[:, None] * got).mean(axis=0)
        influence = share[:, None] * (got - round_)
    else:  # ips is dr without a model
        q = np.zeros((n, k, got.shape[1]))
        if method == "dr":
            q = _ridge(log, got) if model is None else numbers("model", model)
        shape = (n, k, got.shape[1])
        refuse("model", _shape(q), q.shape != shape, f"[N, K, 1 + d], {shape}")
        residual = got - q[np.arange(n), log.action]
        terms = np.einsum("nk,nkv->nv", pi, q) + weight[:, None] * residual
        round_, influence = terms.mean(axis=0), terms - terms.mean(axis=0)

    if not isinstance(constraint, (Horizon, TotalBudget)):
        raise bad("constraint", constraint, "a Horizon or a TotalBudget")
    ready = prepare_constraint(constraint, log._world())
    effective = float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))
    if effective < _FEW:
        weigh = f"these shares have the weight of {effective:.1f} rows"
        few = f"too few for an interval with its stated coverage; it needs {_FEW}"
        warnings.warn(f"off_policy: {weigh}, {few}", stacklevel=3)
    value, of_rule = _under(ready, round_, influence)
    of_log, log_influence = _under(ready, got.mean(axis=0), got - got.mean(axis=0))
    centred = np.stack([value + of_rule, value - of_log + of_rule - log_influence], axis=-1)
    low, high = (x.tolist() for x in mean_ends(centred[None], level)[1:])
    means, over = (float(round_[0]), round_[1:]), (value - of_log, low[1], high[1])
    return RuleValue(value, low[0], high[0], *means, *over, effective, method, n)


def _rule(log: Log, shares: Any) -> np.ndarray:
    """The probability of every arm in every row, ``[N, K]``, checked."""
    n, k = len(log), len(log.arms)
    pi = numbers("shares", shares)
    fits = pi.shape in ((k,), (n, k))
    refuse("shares", _shape(pi), not fits, f"[K] or [N, K], {(k,)} or {(n, k)}")
    pi = np.broadcast_to(pi, (n, k))
    row = int(np.maximum(np.abs(pi.sum(axis=1) - 1), -pi.min(axis=1)).argmax())
    ok = np.isfinite(pi).all() and abs(pi[row].sum() - 1) <= _SUMS_TO_ONE and (pi >= 0).all()
    refuse("shares", pi[row], not ok, "at least 0, with the sum 1")
    asked = (pi > 0).any(axis=0) & (np.bincount(log.action, minlength=k) == 0)
    arm = f"arm {log.arms[int(asked.argmax())]!r}"
    refuse("shares", arm, asked.any(), "positive only for arms with rows in the log")
    if log.available is not None:
        away = (pi > 0) & ~log.available
        row = int(away.any(axis=1).argmax())
        given = f"an arm that was not available in row {row}"
        refuse("shares", given, away.any(), "0 where an arm was not available")
    return pi


def _under(
    ready: Constraint, round_: np.ndarray, influence: np.ndarray
) -> tuple[float, np.ndarray]:
    """Reward of a whole run from that of a round, and the influence ``[N]`` of each row on it."""
    most, rounds = rounds_of(ready), np.inf
    if most is not None:
        rounds = float(most[0])
    binding = None
    if isinstance(ready, TotalBudget):
        budget = np.atleast_1d(ticks.to_units(ticks.join(ready.budget))[0])
        with np.errstate(divide="ignore"):
            allowed = budget / np.maximum(round_[1:], 0)
        if allowed.min() < rounds:
            binding, rounds = int(allowed.argmin()), float(allowed.min())
    if not np.isfinite(rounds):
        raise bad(
            "constraint", "a budget that this rule never spends", "one that limits rounds too"
        )
    value = rounds * round_[0]
    by_row = rounds * influence[:, 0]
    if binding is not None:  # of r/c: (δr − (r/c) δc) / c
        by_row = by_row - value * influence[:, 1 + binding] / round_[1 + binding]
    return float(value), by_row


def _ridge(log: Log, got: np.ndarray) -> np.ndarray:
    """Means of every arm at every row, ``[N, K, 1 + d]``, by the rows of the other half."""
    n, k = len(log), len(log.arms)
    ones = np.ones((n, 1))
    context = np.zeros((n, k, 0)) if log.context is None else np.asarray(log.context, np.float64)
    if context.ndim == 2:
        context = np.repeat(context[:, None], k, axis=1)
    half = np.random.default_rng(0).permutation(n) % 2 == 0  # a log may have an order of its own
    means = np.empty((n, k, got.shape[1]))
    for arm in range(k):
        x = np.hstack([ones, context[:, arm]])
        for fitted in (half, ~half):
            rows = fitted & (log.action == arm)
            # A unit prior on slopes; the mean of all rows where the half has none of this arm
            gram = x[rows].T @ x[rows] + np.eye(x.shape[1]) * np.r_[1e-9, np.ones(x.shape[1] - 1)]
            at = np.linalg.solve(gram, x[rows].T @ got[rows]) if rows.any() else None
            means[~fitted, arm] = got.mean(axis=0) if at is None else x[~fitted] @ at
    return means
