"""Contextual policies: linear models of reward and cost, a bonus or a draw, a price of money.

Context x without a constant, x̃ = (1, x) with one, K arms, J resources. Each arm has a model of its
own over :math:`\\tilde x`: :math:`A_k = P + \\sum \\tilde x \\tilde x^\\top`, :math:`h_k = \\sum r
\\tilde x`, :math:`g_{kj} = \\sum c_j \\tilde x`, so that

.. math:: \\hat r_k = \\langle A_k^{-1} h_k, \\tilde x \\rangle, \\quad
    \\hat c_{kj} = \\langle A_k^{-1} g_{kj}, \\tilde x \\rangle, \\quad
    w_k = \\sqrt{\\tilde x^\\top A_k^{-1} \\tilde x},

P = diag(ε, p, …, p): the constant is all but free, and what a context changes is shrunk. With
``shared`` there is one model for all arms, over rows x_k. A learner takes contexts from
observations only, never from a view that it kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._numerics.means import Means
from jaxbandits._numerics.normal import standard_normal
from jaxbandits.constraints import Allowance
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, refuse, whole_number
from jaxbandits.core.protocol import Chosen, Environment, Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import check_for_each_arm, largest, money_left
from jaxbandits.policies.pacers import (
    best_or_rest,
    net_of,
    next_price,
    pace_of_rounds,
    price_now,
    renewing_pace,
)
from jaxbandits.policies.several_resources import budgets_now, resources_of

_MOST_PULLS = 2**24  # beyond it a float32 sum of ones stands still
_LEAST_SHARE = np.float32(1 / 20)  # of an arm's mean cost: so low may its bound for one request be

# --- Features: what of a context the models see, without the constant


class Features:
    """A map from a context ``f32[…, d]`` to features ``f32[…, D − 1]``; models put a 1 in front.

    Example:
        >>> import jax.numpy as jnp
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class AndProducts(jb.policies.Features):
        ...     def size(self, d):
        ...         return d + d * d
        ...     def of(self, x):
        ...         return jnp.concatenate([x, (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:-1], -1)], axis=-1)
        >>> jb.policies.LinUCB(features=AndProducts()).features.size(3)
        12
    """

    @abstractmethod
    def size(self, d: int) -> int:
        """The number of features, D − 1."""

    @abstractmethod
    def of(self, x: jax.Array) -> jax.Array:
        """The features of a context, or of many."""

    def norm(self, d: int) -> float:
        """E‖x‖² of the features, which scales the ridge: their number, as for unit variance."""
        return float(self.size(d))


@pytree
class Raw(Features):
    """The context itself, which should have about unit variance.

    Example:
        >>> from jaxbandits.policies import Raw
        >>> Raw().size(5)
        5
    """

    def size(self, d: int) -> int:
        return d

    def of(self, x: jax.Array) -> jax.Array:
        return x


@pytree
class Standardised(Features):
    """(x − mean) / sd.

    Args:
        mean, sd: ``[d]`` each, of contexts that are known before, say; sd above 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.policies import Standardised
        >>> Standardised(jnp.array([10.0]), jnp.array([4.0])).of(jnp.array([18.0])).tolist()
        [2.0]
    """

    mean: ArrayLike = leaf(core=1)
    sd: ArrayLike = leaf(core=1, above=0)

    def size(self, d: int) -> int:
        return d

    def of(self, x: jax.Array) -> jax.Array:
        return (x - self.mean) / self.sd


@pytree
class Cells(Features):
    """One-hot nearest centre: a mean for each cell, shrunk towards the arm's mean.

    Args:
        centres: ``[C, d]``.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.policies import Cells
        >>> Cells(jnp.array([[0.0], [1.0], [4.0]])).of(jnp.array([[0.7], [3.0]])).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    centres: ArrayLike = leaf(core=2)

    def size(self, d: int) -> int:
        return int(np.shape(self.centres)[-2])

    def of(self, x: jax.Array) -> jax.Array:
        centres = jnp.reshape(self.centres, (1,) * (x.ndim - 1) + jnp.shape(self.centres))
        apart = jnp.sum((x[..., None, :] - centres) ** 2, axis=-1)
        ids = jax.lax.broadcasted_iota(jnp.int32, apart.shape, apart.ndim - 1)
        nearest = jnp.min(apart, axis=-1, keepdims=True)
        first = jnp.min(jnp.where(apart <= nearest, ids, apart.shape[-1]), axis=-1, keepdims=True)
        return (ids == first).astype(jnp.float32)

    def norm(self, d: int) -> float:
        return 1.0


# --- What an arm may be better than its estimate


class Explore:
    """Exploration: what is added to r̂. Subclasses define :meth:`above`."""

    @abstractmethod
    def above(
        self, model: Model, rows: jax.Array, width: jax.Array, key: jax.Array, round: jax.Array
    ) -> jax.Array:
        """The amount added, ``f32[K]``, for rows x̃ ``f32[K, D]`` and widths w ``f32[K]``."""


@pytree
class Bonus(Explore):
    """α w, an upper confidence bound.

    Args:
        alpha: α ≥ 0, about twice the noise's standard deviation: the default ¼ is for judged
            quality, 1 for coins. Li et al. 2010: 1 + √(½ ln(2/δ)).

    Source: Li, Chu, Langford, Schapire, WWW 2010 (LinUCB).

    Example:
        >>> from jaxbandits.policies import Bonus, LinUCB
        >>> LinUCB(explore=Bonus(alpha=1.0)).explore.alpha                    # for rewards that are 0 or 1
        1.0
    """

    alpha: ArrayLike = leaf(default=0.25, at_least=0)

    def above(
        self, model: Model, rows: jax.Array, width: jax.Array, key: jax.Array, round: jax.Array
    ) -> jax.Array:
        return self.alpha * width


@pytree
class Draw(Explore):
    """Thompson sampling: ⟨θ̃, x̃⟩ − r̂ with θ̃ normal, mean A⁻¹h and covariance v²A⁻¹.

    Models of arms are independent, and a round asks each for one number, which is normal with the
    standard deviation v w: that number is drawn (address: round, arm). A shared model's numbers
    depend on each other: there θ̃ = A⁻¹h + v L⁻ᵀz with A = LLᵀ is drawn.

    Args:
        v: at least 0, default 0.1; Agrawal and Goyal 2013: R √(9 d ln(t/δ)), which explores for
            long.

    Source: Agrawal, Goyal, ICML 2013 (LinTS).

    Example:
        >>> from jaxbandits.policies import Draw, LinUCB
        >>> LinUCB(explore=Draw(v=0.2)).explore.v                             # LinTS
        0.2
    """

    v: ArrayLike = leaf(default=0.1, at_least=0)

    def above(
        self, model: Model, rows: jax.Array, width: jax.Array, key: jax.Array, round: jax.Array
    ) -> jax.Array:
        if model.inverse.shape[0] == rows.shape[0]:
            return self.v * width * _normals(key, round, rows.shape[0])
        # L⁻ᵀ is the upper triangular root of A⁻¹: a lower one of the matrix that is turned round.
        root = jnp.linalg.cholesky(model.inverse[0, ::-1, ::-1])[::-1, ::-1]
        draw = _dot(root, _normals(key, round, rows.shape[1])[None, :])
        return self.v * _dot(rows, draw[None, :])


def _normals(key: jax.Array, round: jax.Array, number: int) -> jax.Array:
    ids = jax.lax.iota(jnp.uint32, number)
    words = jax.vmap(lambda i: streams.policy_words(key, round, Role.THETA_REWARD, i)[0])(ids)
    return standard_normal(words)


# --- The models


class Model(NamedTuple):
    """Linear models: one per arm (M = K), or a shared one (M = 1)."""

    # A⁻¹; where the past is forgotten the Gram matrix without P instead, since there A⁻¹ alone
    # loses the ridge
    inverse: jax.Array  # f32[M, D, D]
    reward: jax.Array  # f32[M, D]: h
    cost: jax.Array  # f32[M, J, D]: g, of costs over their prices where prices are known
    mean_cost: jax.Array  # f32[K, J]: c̄, the same
    pulls: jax.Array  # i32[K]


class Estimates(NamedTuple):
    """The models' estimates for a request."""

    rows: jax.Array  # f32[K, D]: x̃
    reward: jax.Array  # f32[K]: r̂
    cost: jax.Array  # f32[K, J]: ĉ
    width: jax.Array  # f32[K]: w


def _dot(x: jax.Array, y: jax.Array) -> jax.Array:
    """⟨x, y⟩ along the last axis; no product of matrices, so that no device takes TF32 for it."""
    return jnp.sum(x * y, axis=-1)


def _applied(matrix: jax.Array, rows: jax.Array) -> jax.Array:
    """A x of ``[M, D, D]`` and ``[K, D]``.

    A product of matrices: on CPU it is four times as fast as sums of products (D = 27: 3.1 to 0.8 ·
    10⁵ rounds/s).
    """
    if matrix.shape[0] == 1:
        return jnp.einsum("ij,kj->ki", matrix[0], rows, precision="highest")
    return jnp.einsum("kij,kj->ki", matrix, rows, precision="highest")


def check_contexts(owner: Policy, spec: FiniteSpec) -> None:
    """Refuse an environment without contexts."""
    must = f"one with contexts for {type(owner).__name__}, such as ContextualArms"
    refuse("environment", "no contexts", spec.context is None, must)


@pytree
class _Linear(Policy):
    """Linear models. Write ``init`` and ``select_while_open``; the state has ``model``."""

    features: Features = leaf(default=Raw())
    ridge: ArrayLike = leaf(default=None, above=0)
    free: ArrayLike = leaf(default=0.01, above=0)
    shared: bool = static(default=False)
    priced: bool = static(default=False)
    forget: int | None = static(default=None)

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        check_contexts(self, spec)
        context: Any = spec.context
        name, by_row = type(self).__name__, len(context) == 2
        must = f"False if all arms have one context, of shape {list(context)}"
        refuse(f"{name}.shared", True, self.shared and not by_row, must)
        if self.forget is not None:
            whole_number(f"{name}.forget", self.forget, 1, 20)
        no_features = context[-1] <= (1 if by_row else spec.arms)
        must = "False if a context has no features besides prices"
        refuse(f"{name}.priced", True, self.priced and no_features, must)

    @property
    def most_rounds(self) -> int:
        """2²⁴ without forgetting, where a float32 sum of ones stops growing."""
        return _MOST_PULLS if self.forget is None else super().most_rounds

    def split(self, context: jax.Array, arms: int) -> tuple[jax.Array, jax.Array | None]:
        """(the features in a context, prices ``f32[K]`` if it includes them)."""
        if not self.priced:
            return context, None
        if context.ndim == 2:
            return context[:, :-1], context[:, -1]
        return context[:-arms], context[-arms:]

    def rows(self, context: jax.Array, arms: int) -> jax.Array:
        """x̃ of every arm, ``f32[K, D]``."""
        features = self.features.of(self.split(context, arms)[0])
        features = jnp.broadcast_to(features, (arms, features.shape[-1]))
        return jnp.concatenate([jnp.ones((arms, 1), jnp.float32), features], axis=-1)

    def prior(self, context: jax.Array, arms: int) -> jax.Array:
        """The diagonal of P, ``f32[D]``."""
        d = self.split(context, arms)[0].shape[-1]
        p = 4 * self.features.norm(d) if self.ridge is None else self.ridge
        free = jnp.asarray(self.free, jnp.float32)
        return jnp.append(free, jnp.full((self.features.size(d),), p, jnp.float32))

    def untaught(self, spec: FiniteSpec) -> Model:
        """The models before the first round."""
        diagonal = self.prior(jnp.zeros(spec.context), spec.arms)  # type: ignore[arg-type]
        d, arms, costs = diagonal.shape[0], spec.arms, resources_of(spec)
        models = 1 if self.shared else arms
        start = jnp.diag(1 / diagonal) if self.forget is None else jnp.zeros((d, d))
        return Model(
            jnp.broadcast_to(start, (models, d, d)),
            jnp.zeros((models, d)),
            jnp.zeros((models, costs, d)),
            jnp.zeros((arms, costs)),
            jnp.zeros((arms,), jnp.int32),
        )

    def taught(self, model: Model, observation: Observation) -> Model:
        """The pulled arm's model after one more outcome: A⁻¹ by Sherman and Morrison."""
        arms, arm, feedback = model.pulls.shape[0], observation.action, observation.feedback
        context = observation.context
        x = self.rows(context, arms).at[arm].get(mode="clip")  # type: ignore[arg-type]
        reward = ticks.ticks_to_float(feedback.reward)
        cost = ticks.ticks_to_float(jnp.atleast_1d(feedback.cost))
        prices = self.split(context, arms)[1]  # type: ignore[arg-type]
        if prices is not None:
            cost = cost / prices.at[arm].get(mode="clip")
        x, reward, cost = jax.lax.optimization_barrier((x, reward, cost))
        place = jnp.zeros_like(arm) if self.shared else arm
        is_model = jax.lax.iota(jnp.int32, model.inverse.shape[0]) == place
        is_arm = jax.lax.iota(jnp.int32, arms) == arm
        if self.forget is None:
            before = model.inverse.at[place].get(mode="clip")
            u = _applied(before[None], x[None])[0]
            z = jnp.where(is_model[:, None], u / jnp.sqrt(1 + _dot(x, u)), 0)
            # Of the others 0 is subtracted: faster than to write one of them in its place.
            inverse = model.inverse - z[:, :, None] * z[:, None, :]
            keep = np.float32(1)
        else:
            keep = np.float32(1 - 2.0**-self.forget)
            outer = jnp.where(is_model[:, None, None], x[:, None] * x[None, :], 0)
            inverse = keep * model.inverse + outer
        pulls = model.pulls + is_arm.astype(jnp.int32)
        step = cost[None, :] - model.mean_cost
        step = step / jnp.maximum(pulls, 1).astype(jnp.float32)[:, None]
        return Model(
            inverse,
            keep * model.reward + jnp.where(is_model[:, None], reward * x, 0),
            keep * model.cost + jnp.where(is_model[:, None, None], cost[:, None] * x[None, :], 0),
            model.mean_cost + jnp.where(is_arm[:, None], step, 0),
            pulls,
        )

    def estimates(self, model: Model, view: View) -> Estimates:
        """r̂, ĉ and w for the current request."""
        arms = model.pulls.shape[0]
        rows = self.rows(view.context, arms)  # type: ignore[arg-type]
        # What stands in the row of an absent arm may be NaN
        rows = jnp.where(view.available[:, None], rows, 0)
        if self.forget is None:
            solved = _applied(model.inverse, rows)
        else:
            whole = model.inverse + jnp.diag(self.prior(view.context, arms))[None]  # type: ignore[arg-type]
            whole, rows = (jnp.broadcast_to(x, (arms, *x.shape[1:])) for x in (whole, rows))
            root = jnp.linalg.cholesky(whole)
            solved = jax.vmap(lambda low, x: jax.scipy.linalg.cho_solve((low, True), x))(root, rows)
        width = jnp.sqrt(jnp.maximum(_dot(rows, solved), 0))
        each_cost = (arms, model.cost.shape[1], rows.shape[-1])
        cost = _dot(model.cost, jnp.broadcast_to(solved[:, None], each_cost))
        return Estimates(rows, _dot(model.reward, solved), cost, width)

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        return state._replace(model=self.taught(state.model, observation))

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        return self.select_while_open(state, key, view, jnp.zeros_like(state.model.pulls))


# --- Optimistic values net of optimistic costs


class RequestBounds(NamedTuple):
    """Optimistic value and cost of each arm for a request."""

    upper: jax.Array  # f32[K]: U
    lower: jax.Array  # f32[K, J]: L
    fresh: jax.Array  # bool[K]: must be pulled first


@pytree
class _Optimistic(_Linear):
    """U = min(r̂ + bonus, 1), L = max(ĉ − α_c w c̄, c̄/20), first pulls, and a null arm."""

    explore: Explore = leaf(default=Bonus())
    cost_alpha: ArrayLike = leaf(default=0.0, at_least=0)
    cost_guess: ArrayLike = leaf(default=None, above=0, at_most=1, core=1)
    first: int = static(default=2)

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        name = type(self).__name__
        whole_number(f"{name}.first", self.first, 1, 2**20)
        check_for_each_arm(f"{name}.cost_guess", self.cost_guess, spec)
        several = self.cost_guess is not None and resources_of(spec) > 1
        refuse(f"{name}.cost_guess", "a guess of one cost", several, "left out for several costs")

    def bounds(self, model: Model, key: jax.Array, view: View, open: jax.Array) -> RequestBounds:
        estimates, n = self.estimates(model, view), model.pulls
        above = self.explore.above(model, estimates.rows, estimates.width, key, view.round)
        known = estimates, above, model.mean_cost, self
        estimates, above, mean, policy = jax.lax.optimization_barrier(known)
        upper = jnp.minimum(estimates.reward + above, 1)
        lower = estimates.cost - policy.cost_alpha * estimates.width[:, None] * mean
        lower = jnp.maximum(lower, _LEAST_SHARE * mean)
        fresh = n + open < self.first
        if policy.cost_guess is not None:
            # Nothing is forced: what the budget cannot carry is never tried.
            guess = jnp.asarray(policy.cost_guess)[:, None]
            upper, lower = jnp.where(n < 2, 1.0, upper), jnp.where((n == 0)[:, None], guess, lower)
            fresh = jnp.zeros_like(fresh)
        prices = self.split(view.context, n.shape[0])[1]  # type: ignore[arg-type]
        if prices is not None:
            lower = lower * jnp.where(view.available, prices, 0)[:, None]
        return RequestBounds(upper, lower, fresh & view.available)


class PacedState(NamedTuple):
    """The models, whether the policy may rest, and the price of each resource."""

    model: Any  # Model; () where nothing is learnt
    may_rest: jax.Array  # bool[]
    price: Any = ()  # f32[J], where it moves; below 0: not set yet


@pytree
class LinUCB(_Optimistic):
    """Linear models; pulls the arm with the largest optimistic reward minus cost at a fixed price:

    .. math:: \\arg\\max_k\\ U_k - \\lambda \\sum_j L_{kj}, \\qquad U_k = \\min(\\hat r_k + \\alpha w_k, 1), \\quad
        L_{kj} = \\max(\\hat c_{kj} - \\alpha_c w_k \\bar c_{kj}, \\bar c_{kj} / 20),

    or the null arm, which has 0, where there is one. Price 0 is LinUCB, with ``explore=Draw()``
    linear Thompson sampling. c̄ is the arm's mean cost. Outcomes that come late are learnt with
    their own contexts.

    Args:
        price: λ ≥ 0, reward for a unit of cost; default 0.
        explore: :class:`Bonus` (default) or :class:`Draw`.
        cost_alpha: α_c ≥ 0, default 0: costs are taken at their estimates. Like α where costs are
            noise, too.
        first: each arm so many times at first, in index order; default 2.
        cost_guess: list prices ``[K]``, in place of first pulls: an arm of fewer than two pulls has
            U = 1, one of none L = its guess, so that what is too dear is never tried.
        features: :class:`Raw` (default), :class:`Standardised`, :class:`Cells` or your own.
        ridge: p > 0; default four times E‖x‖², if every feature has unit variance (of cells 4).
            What a context changes is shrunk by so many observations.
        free: ε > 0, default 0.01: the constant is all but free.
        shared: True for one model of all arms, over contexts with a row for each arm.
        priced: True if the last number of each row, or the last K of a context for all arms, are
            the arms' prices in this round: the models are of cost over price.
        forget: n, for the discount γ = 1 − 2⁻ⁿ of all that was learnt with each outcome; default
            none. It costs where nothing drifts. P does not decay.

    Raises:
        InputError: before anything runs, for a world without contexts, or more than 2²⁴ rounds
            without forgetting, where float32 sums stand still.

    Source: Li, Chu, Langford, Schapire, A contextual-bandit approach to personalized news article
    recommendation, WWW 2010, from memory.

    Deviations: the constant has a ridge of its own, U ≤ 1, and costs.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.ContextualArms.linear(
        ...     [[0.5, 0.3, 0.0], [0.5, -0.3, 0.0]], [[0.5, 0.0, 0.0]] * 2, jb.environments.UnitSphere(2))
        >>> policies = [jb.policies.LinUCB(explore=jb.policies.Bonus(1.0), ridge=4.0), jb.policies.UCB1()]
        >>> result = jb.simulate(policies, world, jb.Horizon(2000), key=jax.random.key(0), replicates=8, marks=1)
        >>> (result.regret.mean("replicate") / 2000).values.round(2).ravel().tolist()
        [0.0, 0.19]
    """

    price: ArrayLike = leaf(default=0.0, at_least=0)

    def init(self, spec: FiniteSpec) -> PacedState:
        return PacedState(self.untaught(spec), jnp.bool_(spec.null_arm))

    def select_while_open(
        self, state: PacedState, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        bounds = self.bounds(state.model, key, view, open)
        price = jnp.full(bounds.lower.shape[1:], self.price, jnp.float32)
        net = net_of(bounds.upper, price, bounds.lower)
        return state, best_or_rest(net, key, view, state.may_rest, bounds.fresh)[0]


@pytree
class ContextualPacer(_Optimistic):
    """:class:`LinUCB` at prices that pace the budget, moved after each decision by mirror descent:

    .. math:: \\arg\\max_k\\ U_k - \\sum_j \\lambda_j L_{kj}, \\qquad
        \\lambda_j \\leftarrow \\lambda_j \\exp\\big(\\min(\\eta\\,(L_{kj} / \\tau_j - 1), 1)\\big),

    L of the chosen arm for this request, 0 if it rests; λτ from s/2¹⁰ to 1, s at first. The pace τ
    is what is left over the rounds that are left (:class:`~jaxbandits.TotalBudget` with rounds),
    over the requests that are expected (:class:`~jaxbandits.Renewing`, behind
    :class:`~jaxbandits.policies.InFlight`), or with ``c`` given, for
    :class:`~jaxbandits.AverageCost`,

    .. math:: \\tau = \\mathrm{clip}\\big(c + (\\text{left} - c) / h,\\ c/2,\\ 2c\\big).

    It keeps the mean cost near the budget, without a bound in every round
    (:class:`~jaxbandits.policies.Guarded` gives that).

    Args:
        eta: η > 0, default 0.01.
        start: s, the first price as λτ, in (0, 1]; default 0.1.
        c: the average cost of a round, where that is the constraint; with several costs the same
            for each.
        window: h ≥ 1, over how many rounds what was saved or overspent is made good; default 300.
        budgets: how many, where :class:`~jaxbandits.Renewing` has several for one cost.
        explore, cost_alpha, first, cost_guess, features, ridge, free, shared, priced, forget: as of
            :class:`LinUCB`.

    Raises:
        InputError: before anything runs, as :class:`LinUCB`; for a constraint without a pace if no
            ``c`` is given.

    Source: ours: LinUCB with the dual mirror descent of Balseiro, Lu, Mirrokni, Operations Research
    71, 2023.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.ContextualArms.linear(
        ...     [[0.3, 0.0], [0.5, 0.4]], [[[0.1, 0.0]], [[0.5, 0.0]]], jb.environments.Gaussian(1), resources=1)
        >>> limit = jb.TotalBudget([600.0], last_pull="counts", rounds=2000)
        >>> best = world.value_of_context(limit)
        >>> oracle = jb.policies.ContextualOracle.of(world, [one.price for one in best])
        >>> policies = [jb.policies.ContextualPacer(explore=jb.policies.Bonus(1.0)), oracle]
        >>> result = jb.simulate(policies, world, limit, key=jax.random.key(0), replicates=8, marks=1)
        >>> learner, oracle = result.reward.values.mean((1, 2, 3)) / 2000
        >>> f"{learner:.2f}, by an oracle {oracle:.2f}, without context {best[0].fixed:.2f}"
        '0.53, by an oracle 0.54, without context 0.40'
    """

    eta: ArrayLike = leaf(default=0.01, above=0)
    start: ArrayLike = leaf(default=0.1, above=0, at_most=1)
    c: ArrayLike = leaf(default=None, above=0, at_most=1)
    window: ArrayLike = leaf(default=300.0, at_least=1)
    budgets: int | None = static(default=None)

    def init(self, spec: FiniteSpec) -> PacedState:
        number = resources_of(spec)
        if self.budgets is not None:
            number = whole_number("budgets", self.budgets, 1, 64)
        unset = jnp.full((number,), -1, jnp.float32)
        return PacedState(self.untaught(spec), jnp.bool_(spec.null_arm), unset)

    def select_while_open(
        self, state: PacedState, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        bounds = self.bounds(state.model, key, view, open)
        target, cost = self.pace(state, view, open), bounds.lower
        if isinstance(view.left, Allowance):
            cost = jnp.where(view.left.scope.T, cost, 0)  # type: ignore[union-attr]
        price = price_now(state.price, target, self.start)
        price, cost = jax.lax.optimization_barrier((price, cost))
        net = net_of(bounds.upper, price, cost)
        arm, rests = best_or_rest(net, key, view, state.may_rest, bounds.fresh)
        paid = jnp.where(rests, 0, cost.at[arm].get(mode="fill", fill_value=0))
        price = next_price(price, paid, target, self.eta, self.start)
        return state._replace(price=price), arm

    def pace(self, state: PacedState, view: View, open: jax.Array) -> jax.Array:
        """τ of each budget, ``f32[J]``, at least a tick."""
        if isinstance(view.left, Allowance):
            pulled, mean = state.model.pulls > 0, state.model.mean_cost.T
            bound = ticks.ticks_to_float(view.left.bound)[None, :]  # type: ignore[arg-type]
            mean = jnp.where(pulled[None, :], mean, bound)
            return renewing_pace(self, view, mean, open, state.price.shape[0])
        money = money_left(view)
        money = Total(jnp.atleast_1d(money.whole), jnp.atleast_1d(money.part))
        if self.c is not None:
            c = jnp.asarray(self.c, jnp.float32)
            return jnp.clip(c + (ticks.to_float(money) - c) / self.window, c / 2, 2 * c)
        if money.part.shape != (state.price.shape[0] + 1,):
            must = "TotalBudget([…], rounds=T), Renewing behind InFlight, or AverageCost with ContextualPacer.c"
            raise InputError(f"constraint: one without a pace given; it must be {must}")
        return pace_of_rounds(ticks.to_float(money))


# --- Money alone is the clock


class RateState(NamedTuple):
    """The models, and the totals earned and paid."""

    model: Model
    earned: Total
    paid: Total


@pytree
class LinearRate(_Optimistic):
    """For a total budget: the arm with the largest optimistic reward minus cost at the rate so far,

    .. math:: \\arg\\max_k\\ U_k - \\hat\\rho L_k, \\qquad \\hat\\rho = \\sum r / \\sum c,

    which is the price of a unit of money where E max_k (r − ρ c) = 0. The arm of the largest ratio
    U/L is another rule, and wrong with contexts: it never lets a good request have the dear arm.
    Every request is served.

    Args:
        cost_alpha: α_c ≥ 0, default 1.
        explore: default ``Bonus(1.0)``.
        first, cost_guess, features, ridge, free, shared, priced, forget: as of :class:`LinUCB`.

    Raises:
        InputError: before anything runs, as :class:`LinUCB`; for several costs, or a null arm: then
            one would wait for the best request forever.

    Source: ours, after Dinkelbach's method for ratios.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> rows = jb.environments.Rows.of([[0.0], [1.0]])
        >>> world = jb.environments.ContextualArms.linear(
        ...     [[0.2, -0.15], [0.9, -0.7]], [[0.1, 0.0], [0.6, -0.1]], rows)
        >>> budget = jb.TotalBudget(400.0, last_pull="counts")
        >>> policies = [jb.policies.LinearRate(), jb.policies.OmegaUCB()]
        >>> result = jb.simulate(policies, world, budget, key=jax.random.key(0), replicates=8, marks=1)
        >>> (result.reward.mean("replicate") / 400).values.round(2).ravel().tolist()         # ρ* = 1.357
        [1.29, 1.23]
    """

    explore: Explore = leaf(default=Bonus(1.0))
    cost_alpha: ArrayLike = leaf(default=1.0, at_least=0)

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        must = "without one for LinearRate, which would wait forever for the best request"
        refuse("environment", "a null arm", spec.null_arm, must)
        must = "one with one cost for LinearRate"
        refuse("environment", f"{spec.resources} resources", resources_of(spec) > 1, must)

    def init(self, spec: FiniteSpec) -> RateState:
        return RateState(self.untaught(spec), ticks.zero(), ticks.zero())

    def update(self, state: RateState, key: jax.Array, observation: Observation) -> RateState:
        feedback = observation.feedback
        cost = jnp.sum(jnp.atleast_1d(feedback.cost), dtype=jnp.int32)
        earned, paid = ticks.add(state.earned, feedback.reward), ticks.add(state.paid, cost)
        return RateState(self.taught(state.model, observation), earned, paid)

    def select_while_open(
        self, state: RateState, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        bounds = self.bounds(state.model, key, view, open)
        paid = jnp.maximum(ticks.to_float(state.paid), np.float32(1 / ticks.ONE))
        rate = ticks.to_float(state.earned) / paid
        net = net_of(bounds.upper, rate[None], bounds.lower)
        return state, largest(net, key, view, fresh=bounds.fresh)


# --- Two games between arms and resources, of the literature


class GameState(NamedTuple):
    """The models, and the weights of the resources."""

    model: Model
    may_rest: jax.Array  # bool[]
    budget: Total  # [J + 1]: as round 1 told them, the last of rounds
    money: Total  # [J]: when it last acted
    weight: jax.Array  # f32[J]: ln(y_j / y of the dummy)


class Move(NamedTuple):
    """What a move against the resources depends on."""

    estimates: Estimates
    price: jax.Array  # f32[J]: Z y
    rounds: jax.Array  # f32[]: T
    may_rest: jax.Array  # bool[]


@pytree
class _Game(_Linear):
    """Weights y of resources and a dummy against arms: :class:`LinCBwK` and :class:`SquareCBwK`.

    Write :meth:`play`.
    """

    ridge: ArrayLike = leaf(default=1.0, above=0)
    free: ArrayLike = leaf(default=1.0, above=0)
    scale: ArrayLike = leaf(default=None, above=0)

    def init(self, spec: FiniteSpec) -> GameState:
        costs, may_rest = resources_of(spec), jnp.bool_(spec.null_arm)
        amounts = ticks.zero((costs + 1,)), ticks.zero((costs,)), jnp.zeros((costs,), jnp.float32)
        return GameState(self.untaught(spec), may_rest, *amounts)

    @abstractmethod
    def play(self, now: Move, key: jax.Array, view: View) -> jax.Array:
        """The chosen arm, K for the null arm."""

    def select_while_open(
        self, state: GameState, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        budget, amounts = budgets_now(state.budget, view, timed_for=self)
        now = jax.tree.map(lambda x: x[:-1], money_left(view))
        paid = jnp.where(view.round > 1, ticks.to_float(ticks.minus(state.money, now)), 0)
        known = paid, state.weight, amounts.budget, self
        paid, weight, every, policy = jax.lax.optimization_barrier(known)
        costs, rounds = weight.shape[0], every[-1]
        pace = every[:-1] / rounds
        rate = np.float32(2 * np.log(max(costs, 2))) / jnp.sqrt(rounds)
        weight = jnp.where(view.round > 1, weight + rate * (paid - pace), weight)
        # The largest weight, the dummy's 0 among them, is 1.
        top = jnp.maximum(jnp.max(weight), 0)
        share = jnp.exp(weight - top)
        total = jnp.exp(-top)
        for j in range(costs):
            total = total + share[j]
        scale = 1 / jnp.min(pace) if policy.scale is None else policy.scale
        state = state._replace(budget=budget, money=now, weight=weight)
        estimates, price = policy.estimates(state.model, view), scale * share / total
        return state, policy.play(Move(estimates, price, rounds, state.may_rest), key, view)


@pytree
class LinCBwK(_Game):
    """LinCBwK: linear models, and multiplicative weights as prices of the resources,

    .. math:: \\arg\\max_k\\ \\min(\\hat r_k + \\beta w_k, 1) - Z \\langle y, \\max(\\hat c_k - \\beta w_k, 0)\\rangle,
        \\qquad y_j \\propto y_j \\exp(\\eta\\,(c_{tj} - b_j)), \\quad \\eta = 2 \\ln J / \\sqrt T,

    y on the J resources and a dummy that costs nothing, even at first, b = B/T, P the identity; the
    null arm, where there is one, has 0. It counts costs in units of the dearest answer: where a
    budget is only some hundreds of these, far below its theory's range, the bonus drowns the costs
    and it overspends many times.

    Args:
        beta: β ≥ 0, default 1. The published code takes √D, the paper √(D ln((1 + tD)/δ)) + √D.
        scale: Z > 0, default T / min_j B_j, that of the published code. The paper: from OPT/B to
            O(OPT/B + 1).
        ridge, free, features, shared, priced, forget: as of :class:`LinUCB`; defaults 1, 1: P = I.

    Raises:
        InputError: before anything runs, as :class:`LinUCB`; for a constraint other than
            :class:`~jaxbandits.TotalBudget` with rounds.

    Source: Agrawal, Devanur, Linear contextual bandits with knapsacks, NIPS 2016, from memory, and
    the code of its comparison with SquareCBwK (quejialin/SquareCBwK).

    Deviations: U ≤ 1 and L ≥ 0; ln 2 where J = 1, since the code's rate would be 0.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.LinCBwK(beta=0.5).beta
        0.5
    """

    beta: ArrayLike = leaf(default=1.0, at_least=0)

    def play(self, now: Move, key: jax.Array, view: View) -> jax.Array:
        estimates, above = now.estimates, self.beta * now.estimates.width
        upper = jnp.minimum(estimates.reward + above, 1)
        lower = jnp.maximum(estimates.cost - above[:, None], 0)
        return best_or_rest(net_of(upper, now.price, lower), key, view, now.may_rest)[0]


@pytree
class SquareCBwK(_Game):
    """SquareCBwK: inverse gap weighting at prices that multiplicative weights make,

    .. math:: s_k = \\hat r_k - Z \\langle y, \\hat c_k \\rangle, \\qquad
        p_k = \\frac{1}{M + \\gamma (s_{k^*} - s_k)}, \\quad k \\ne k^*,

    and the rest of the probability for the best, k*; M actions with the null arm, whose s is 0. y
    as of :class:`LinCBwK`.

    Args:
        greed: γ > 0, default 2 √(K T / (d ln T)), that of the published code.
        scale, ridge, free, features, shared, priced, forget: as of :class:`LinCBwK`.

    Source: Han, Zeng, Wang, Xiang, Zhang, Optimal contextual bandits with knapsacks under
    realizability via regression oracles, AISTATS 2023; the code of quejialin/SquareCBwK.

    Deviations: ridge regression in place of an online Newton step.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.SquareCBwK(greed=100.0).greed
        100.0
    """

    greed: ArrayLike = leaf(default=None, above=0)

    def play(self, now: Move, key: jax.Array, view: View) -> jax.Array:
        """A drawn arm, from one uniform of the round (role ``MIX``)."""
        arms = now.estimates.reward.shape[0]
        net = net_of(now.estimates.reward, now.price, now.estimates.cost)
        d, greed = now.estimates.rows.shape[1] - 1, self.greed
        if greed is None:
            greed = 2 * jnp.sqrt(arms * now.rounds / (d * jnp.log(now.rounds)))
        chance = self.probabilities(net, view.available, now.may_rest, greed)
        uniform = streams.uniform(streams.policy_words(key, view.round, Role.MIX)[0])
        arm, total = jnp.int32(0), jnp.float32(0)
        for k in range(arms):  # as many arms and the null arm as lie below the uniform
            total = total + chance[k]
            arm = arm + (total <= uniform).astype(jnp.int32)
        # Whatever rounding makes of sums
        last = jnp.max(jnp.where(chance > 0, jax.lax.iota(jnp.int32, arms + 1), 0))
        return jnp.where(jnp.any(jnp.isnan(net) & view.available), arms + 1, jnp.minimum(arm, last))

    @staticmethod
    def probabilities(
        net: jax.Array, available: jax.Array, may_rest: jax.Array, greed: Any
    ) -> jax.Array:
        """p of the arms and, last, of the null arm, ``f32[K + 1]``."""
        allowed = jnp.append(available, may_rest)
        score = jnp.where(allowed, jnp.append(net, 0), -jnp.inf)
        number = jnp.sum(allowed, dtype=jnp.int32)
        ids = jax.lax.iota(jnp.int32, allowed.shape[0])
        best = jnp.max(score)
        first = jnp.min(jnp.where(score == best, ids, allowed.shape[0]))
        gap = best - jnp.where(allowed, score, best)
        chance = jnp.where(allowed & (ids != first), 1 / (number + greed * gap), 0)
        rest = jnp.float32(1)
        for k in range(allowed.shape[0]):
            rest = rest - chance[k]
        return jnp.where(ids == first, jnp.maximum(rest, 0), chance)


# --- The oracle


@pytree
class ContextualOracle(Policy):
    """An oracle: each request's best arm at the *true* means and at prices that pace the budget.

    As :class:`ContextualPacer` with r and c in place of U and L; the price moves from λ*.

    Args:
        reward, cost: the world's :class:`~jaxbandits.environments.Means`; :meth:`of` takes them
            from it.
        price: λ*, ``[J]``, from ``world.value_of_context(…)``.
        eta: η ≥ 0, default 0.01; 0 keeps λ*.

    Raises:
        InputError: before anything runs, for a world without contexts, or a constraint other than
            :class:`~jaxbandits.TotalBudget` with rounds.

    :class:`ContextualPacer` has an example.
    """

    reward: Means = leaf()
    cost: Means = leaf()
    price: ArrayLike = leaf(core=1, at_least=0)
    eta: ArrayLike = leaf(default=0.01, at_least=0)

    plays: ClassVar[type] = FiniteSpec

    @classmethod
    def of(cls, world: Environment, price: Any, eta: Any = 0.01) -> ContextualOracle:
        """An oracle with an environment's means, and prices of each instance ``[instance, J]``."""
        means: Any = world
        reward, cost = jax.tree.map(lambda x: np.asarray(x)[None], (means.reward, means.cost))
        return cls(reward, cost, np.asarray(price)[None], eta)

    def check(self, spec: FiniteSpec) -> None:
        check_contexts(self, spec)

    def init(self, spec: FiniteSpec) -> PacedState:
        price = jnp.asarray(self.price, jnp.float32)
        return PacedState((), jnp.bool_(spec.null_arm), price)

    def update(self, state: PacedState, key: jax.Array, observation: Observation) -> PacedState:
        return state

    def select(self, state: PacedState, key: jax.Array, view: View) -> Chosen:
        context, arms = view.context, view.available.shape[0]
        money = ticks.to_float(money_left(view))
        if money.shape != (state.price.shape[0] + 1,):
            must = "TotalBudget([…], rounds=T)"
            raise InputError(f"constraint: one without a horizon given; it must be {must}")
        ids = jax.lax.iota(jnp.int32, arms)
        rows = jnp.broadcast_to(context, (arms, context.shape[-1]))  # type: ignore[union-attr,arg-type]
        net, cost = (jnp.clip(jax.vmap(x.at)(rows, ids), 0, 1) for x in (self.reward, self.cost))
        net, cost, price = jax.lax.optimization_barrier((net[:, 0], cost, state.price))
        arm, rests = best_or_rest(net_of(net, price, cost), key, view, state.may_rest)
        paid = jnp.where(rests, 0, cost.at[arm].get(mode="fill", fill_value=0))
        price = next_price(price, paid, pace_of_rounds(money), self.eta, jnp.float32(0.1))
        return state._replace(price=price), arm
