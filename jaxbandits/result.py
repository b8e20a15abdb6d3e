"""The result of a simulation: exact ledgers at marks, labelled views, save and load."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits import _files
from jaxbandits._numerics.arrays import one_of
from jaxbandits._provenance import Provenance
from jaxbandits._tables import Shown, Table, count_of, span
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, quoted, refuse
from jaxbandits.core.fingerprint import digest, digest_of_arrays
from jaxbandits.core.protocol import Status
from jaxbandits.statistics.estimates import PAIRED_BY, mean

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = ("setting", "instance", "replicate", "mark")
UTC = "%Y-%m-%dT%H:%M:%SZ"
_FORMAT = 1
_LABELS = ("settings", "instances", "replicates", "marks")
_ACCOUNTS = ("rounds", "reward", "spent", "expected_reward", "clock", "expected_clock")
_BY_SETTING = ("parameters", "engines", "classes", "sources")  # of what `about` holds
# What a file has for the types of About's fields.
_JSON: dict[str, Any] = {"tuple": list, "Sequence": list, "Mapping": dict, "None": object}
_JSON |= {kind.__name__: kind for kind in (str, int, float)}


@dataclasses.dataclass(frozen=True)
class About:
    """What was run. Fields missing from a file of an earlier version are empty.

    Attributes:
        parameters: of each setting: its ``policy`` (the class's name) and its parameters that are
            one number.
        engines: of each setting, ``"scan"``, ``"leap"``, ``"merge"`` or ``"kernel"``.
        why_scan: why a faster engine was not taken, if one was looked for.
        why_plain: what kept a CPU from playing rounds as one native function, the compiler's words.
        environment: the class's name.
        constraint: its ``class``, and its fields.
        clock: ``"spent"`` or ``"rounds"``.
        key: the two words of the root key.
        instance_ids, replicate_ids: by which draws are addressed; replicate ids only where each
            instance has its own, ``[instance][replicate]``, else they are the labels of the axis.
        max_rounds: of each instance, after which a lane ends at the latest.
        jaxbandits, python, jax, jaxlib, numpy: versions.
        code: SHA-256 of this package's source files: two checkouts may bear the same version.
        device, processor: the device's kind, and the name of the machine's processor.
        seconds: of the call of :func:`~jaxbandits.simulate`, with compilation; of a sweep those of
            all its runs; 0.0 where it was played in parts.
        when: the time, UTC, at which that began.
        instances_digest: of the environment's numbers.
        made_by: the call by which a function of this package made the environment, such as
            ``random_bernoulli(…)``.
        classes: of each setting, the classes of this package that its policy is made of.
        sources: of each setting, of each class and function of the user's in it, SHA-256 of its
            source; ``jaxpr`` and the digest of what was traced where no source can be read.
    """

    parameters: tuple[Mapping[str, Any], ...] = ()
    engines: tuple[str, ...] = ()
    why_scan: str | None = None
    why_plain: str | None = dataclasses.field(default=None, compare=False)
    environment: str = ""
    constraint: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    clock: str = ""
    key: tuple[int, ...] = ()
    instance_ids: tuple[int, ...] = ()
    replicate_ids: tuple[Sequence[int], ...] | None = None
    max_rounds: tuple[int, ...] = ()
    jaxbandits: str = ""
    python: str = ""
    jax: str = ""
    jaxlib: str = ""
    numpy: str = ""
    code: str = ""
    device: str = ""
    processor: str = dataclasses.field(default="", compare=False)
    seconds: float = dataclasses.field(default=0.0, compare=False)
    when: str = dataclasses.field(default="", compare=False)
    instances_digest: str = ""
    made_by: str = ""
    classes: tuple[Sequence[str], ...] = ()
    sources: tuple[Mapping[str, str], ...] = ()

    def __repr__(self) -> str:
        known = (f"{name}={reprlib.repr(x)}" for name, x in vars(self).items() if x)
        return f"About({', '.join(known)})"

    @property
    def engine(self) -> str:
        """The names of the engines that were used."""
        return " and ".join(dict.fromkeys(self.engines))

    def as_json(self) -> dict[str, Any]:
        """The record for a file: plain lists, numbers and text."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {name: list(x) if isinstance(x, tuple) else x for name, x in fields.items()}
        if self.replicate_ids is None:
            del plain["replicate_ids"]
        return plain | {"engine": self.engine}

    @staticmethod
    def from_json(record: Any) -> About:
        """Read a record of :meth:`as_json`, of any version; ValueError if it is not one."""
        if not isinstance(record, dict):
            raise ValueError(f"its about is {quoted(record)}, not a record")
        fields: dict[str, Any] = {}
        for field in dataclasses.fields(About):
            if (x := record.get(field.name)) is None:
                continue
            kind, of = re.findall(r"\w+", f"{field.type} Any")[:2]
            items = x if kind == "tuple" and isinstance(x, list) else ()
            if not (isinstance(x, _JSON[kind]) and all(isinstance(y, _JSON[of]) for y in items)):
                raise ValueError(f"its about has {field.name} {quoted(x)}")
            fields[field.name] = tuple(x) if kind == "tuple" else x
        return About(**fields)


@dataclasses.dataclass(frozen=True)
class Result(Shown):
    """Exact accounts of every lane at every mark, with labelled, derived views.

    Every view is an :class:`xarray.DataArray` with axes ``setting, instance, replicate, mark``
    (``mark`` is the share of the clock: of the budget, or of the horizon). Rewards, money and
    regret are in the environment's units.

    Attributes:
        ledger: int64 arrays ``[setting, instance, replicate, mark]``: ``rounds`` and counts as they
            are, ``reward``, ``spent``, ``expected_reward``, ``expected_clock``, ``clock`` in ticks
            of 2⁻²⁴.
        ended: how each lane ended, ``i32[setting, instance, replicate]``, see
            :class:`~jaxbandits.Status`.
        final: final values of the environment, e.g. ``pulls`` ``[setting, instance, replicate,
            arm]``, and values that policies report at the end. Settings whose policy does not
            report a value have NaN.
        best_rate: best reward per unit of the clock, ``f64[instance]``, over the whole run; NaN if
            unknown. For an environment whose best rate changes, ``ledger`` has what could have been
            earned by each mark.
        settings, instances, replicates, marks: the labels of the axes. Instances are numbers (their
            ids), unless they were named.
        about: what was run: parameters, constraint, key, versions.
    """

    ledger: Mapping[str, np.ndarray]
    ended: np.ndarray
    final: Mapping[str, np.ndarray]
    best_rate: np.ndarray
    settings: tuple[str, ...]
    instances: tuple[str | int, ...]
    replicates: tuple[int, ...]
    marks: tuple[float, ...]
    about: About

    def __repr__(self) -> str:
        sizes = " × ".join(map(count_of, self.ledger["rounds"].shape, AXES))
        means = self._ends("regret")
        least = f"; mean regret at the end {span(means)}" if np.isfinite(means).any() else ""
        return f"Result({sizes}{least}; {self._ended(self.ended)})"

    def _shown_rows(self) -> Table:
        """Each setting with its mean regret, reward and rounds at the end, and how its lanes ended."""
        names = ("regret", "reward", "rounds")
        means = [[f"{x:,.4g}" for x in self._ends(name)] for name in names]
        rows = list(zip(self.settings, *means, map(self._ended, self.ended), strict=True))
        return Table(("setting", *(f"mean {name} at the end" for name in names), "ended"), rows)

    def _ends(self, name: str) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(getattr(self, name).values[..., -1].mean(axis=(1, 2)))

    @staticmethod
    def _ended(ended: np.ndarray) -> str:
        """How many lanes ended in which way."""
        counts = ((int((ended == x).sum()), x.name.lower()) for x in Status)
        return ", ".join(f"{count:,} {name}" for count, name in counts if count)

    @property
    def plot(self) -> ResultPlots:
        """Matplotlib figures: ``.regret(over=…)``, ``.distribution()``."""
        return ResultPlots(self)

    def sel(self, **parameters: Any) -> Result:
        """Select the settings with these parameters, as a result.

        Args:
            parameters: ``policy`` (the class's name) and values of parameters, one or a list of
                each.

        Raises:
            InputError: no setting has them; a parameter that no policy has.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> both = [jb.policies.OmegaUCB(rho=[0.25, 1.0]), jb.policies.MUCB()]
            >>> result = jb.simulate(both, arms, jb.Horizon(20), key=jax.random.key(0), marks=2)
            >>> result.sel(rho=0.25).settings, result.sel(policy="MUCB").settings
            (('OmegaUCB(rho=0.25)',), ('MUCB(alpha=0.0625)',))
        """
        columns, members = self._parameters(), np.ones(len(self.settings), bool)
        for name, value in parameters.items():
            if name not in columns:
                must = f"one of {', '.join(columns)} (for other axes use a view: result.regret.sel(replicate=0))"
                raise InputError(f"{name}: no policy of this result has it; it must be {must}")
            members &= np.isin(columns[name], np.atleast_1d(np.asarray(value)))
        if not members.any():
            there = ", ".join(self.settings)
            raise InputError(f"sel: no setting has {parameters}; there are {there}")
        rows, of = np.flatnonzero(members), vars(self.about)
        facts: Any = {x: tuple(of[x][row] for row in rows) for x in _BY_SETTING if of[x]}
        about = dataclasses.replace(self.about, **facts)
        return dataclasses.replace(pick(self, settings=rows), about=about)

    def provenance(self) -> Provenance:
        """A record for a paper's appendix: all that is needed to repeat and verify this result.

        A dict of plain JSON: ``about`` (policies with their parameters and engines, how the
        environment was made and a digest of its numbers, constraint, key, versions, digests of all
        source, machine, seconds), the sizes of the axes, and ``digest``, of all exact accounts.
        Equal digests mean equal numbers, to the tick.

        ``.text()`` is a paragraph, ``.rows()`` the same by title, for a table.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> result = jb.simulate(jb.policies.OmegaUCB(), arms, jb.Horizon(20), key=jax.random.key(0), marks=2)
            >>> result.provenance().rows()["Constraint"]
            'Horizon(rounds=20)'
        """
        accounts = {**self.ledger, **{f"final/{name}": x for name, x in self.final.items()}}
        sizes = dict(zip(AXES, self.ledger["rounds"].shape, strict=True))
        digest = digest_of_arrays(sorted(accounts.items()))
        return Provenance(self._about(), sizes=sizes, digest=digest)

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each setting, instance, replicate and mark.

        Columns: the four labels (``mark``: share of the clock), ``policy`` and its parameters;
        ``regret``, ``realised_regret`` and ``reward`` in the environment's unit of reward,
        ``spent`` in its unit of cost, ``rounds`` so far, and ``status``, how the run ended.
        ``.attrs["units"]`` has the units. Pulls per arm have no mark, so they are not in it:
        ``result.pulls.to_dataframe()``.
        """
        return _files.of_dataset(self.to_dataset(), [*AXES, *self._parameters()])

    def _about(self) -> dict[str, Any]:
        return {"policies": list(self.settings), **self.about.as_json()}

    def _parameters(self) -> dict[str, np.ndarray]:
        """Columns ``[setting]``: the policy's name, each parameter (NaN if it has none)."""
        rows = self.about.parameters
        if len(rows) != len(self.settings):
            return {}
        names = dict.fromkeys(name for row in rows for name in row if name != "policy")
        columns = {name: np.array([float(row.get(name, np.nan)) for row in rows]) for name in names}
        return {"policy": np.array([row["policy"] for row in rows]), **columns}

    def _places(self, count: int = 3) -> dict[str, list[Any]]:
        """The labels of the first axes."""
        return {axis: list(getattr(self, f"{axis}s")) for axis in AXES[:count]}

    def _array(self, values: np.ndarray, name: str, units: str) -> xarray.DataArray:
        import xarray

        axes = (*AXES, "resource")[: values.ndim]
        coords: dict[str, Any] = self._places(values.ndim)
        for parameter, column in self._parameters().items():
            if parameter not in (*AXES, "resource", "arm"):
                coords[parameter] = ("setting", column)
        attrs = {"units": units, **self._paired_by()}
        return xarray.DataArray(values, dims=axes, coords=coords, name=name, attrs=attrs)

    def _paired_by(self) -> dict[str, str]:
        """What runs must share to be paired, each in a few letters, where it is known."""
        about, limit = self.about, json.dumps(self.about.constraint, default=repr)
        if len(limit) > 100:
            limit = f"{about.constraint.get('class', '')} {digest(limit.encode())[:16]}"
        parts = about.instances_digest[:16], " ".join(map(str, about.key)), limit
        return {name: x for name, x in zip(PAIRED_BY, parts, strict=True) if x not in ("", "{}")}

    @property
    def regret(self) -> xarray.DataArray:
        """Pseudo-regret: best_rate · (expected clock) − (expected reward), from exact mean totals.

        With money as the clock it is the budgeted regret, with rounds the ordinary one, with
        several ends (:class:`~jaxbandits.TotalBudget`) that of bandits with knapsacks. At the end
        of runs under one constraint, mean regret ranks policies as mean reward does, up to what one
        round may earn, and no policy that keeps the constraint has a mean below 0. If that is not
        guaranteed, a warning says what to rank by instead. In a changing environment the benchmark
        knows the means of every round (:meth:`~jaxbandits.environments.Piecewise.benchmarks`). For
        sampled contexts it is an estimate (:attr:`benchmark_error`), with a warning if its error
        exceeds a tenth of all mean regrets. NaN for lanes that ended as invalid.
        """
        return self._regret("regret", "expected_clock", "expected_reward")

    @property
    def fixed_regret(self) -> xarray.DataArray:
        """Regret against the best fixed arm in hindsight, in changing environments; can be below 0.

        With contexts: against the best mixture that ignores them, whose standard error is
        :attr:`fixed_benchmark_error`, with the warning of :attr:`regret`.

        Raises:
            InputError: the environment does not change (then use :attr:`regret`), or the benchmark
                is not known.
        """
        if "fixed:expected_clock" not in self.ledger:
            only = "only results of changing environments have it"
            raise InputError(f"fixed_regret: {only}; use `regret`")
        return self._regret("fixed_regret", "expected_clock", "expected_reward", "fixed")

    @property
    def benchmark_error(self) -> xarray.DataArray:
        """Standard error of the benchmark of :attr:`regret`, in reward; 0 if exact, NaN if unknown.

        It is unknown for a ``Piecewise`` environment of sampled contexts, which takes the means of
        its segments as exact (off by about 0.001 per request).

        For contexts that are not a table, the benchmark is that of a sample. It has the same error
        in all lanes of an instance: more lanes do not reduce it, no interval over lanes includes
        it, and it cancels in a difference of regrets at one clock. ``Rows`` of contexts are exact.
        """
        return self._chance("moving", "benchmark_error")

    @property
    def fixed_benchmark_error(self) -> xarray.DataArray:
        """Standard error of :attr:`fixed_regret`'s benchmark, like :attr:`benchmark_error`."""
        return self._chance("fixed", "fixed_benchmark_error")

    def _chance(self, benchmark: str, name: str) -> xarray.DataArray:
        exact = np.zeros(self.ledger["rounds"].shape)
        error = ticks.to_units(self.ledger.get(f"{benchmark}_error:expected_clock", exact))
        return self._array(np.where(error < 0, np.nan, error), name, "reward")

    def budget_regret(self, budget: float | np.ndarray) -> xarray.DataArray:
        """best_rate · budget · mark − (expected reward): regret at shares of the budget.

        At the end it is what the budget could have earned minus what it did. Before that the
        benchmark grows linearly, also in a changing environment.

        Args:
            budget: the whole clock, in its units: one number, or ``[instance]``; with several
                resources that of the first.
        """
        if (line := doubt_of(self, "budget_regret")) is not None:
            warnings.warn(line, stacklevel=2)
        whole = self.best_rate * np.asarray(budget, np.float64)
        possible = whole[None, :, None, None] * np.asarray(self.marks)
        return self._short_of(possible, "budget_regret", "expected_reward")

    @property
    def realised_regret(self) -> xarray.DataArray:
        """best_rate · clock − reward, from the outcomes themselves: noisier, and it can fall."""
        return self._regret("realised_regret", "clock", "reward")

    def _regret(
        self, name: str, clock: str, earned: str, benchmark: str = "moving"
    ) -> xarray.DataArray:
        """What could have been earned by this time of the clock, minus what was earned."""
        if (line := doubt_of(self, name)) is not None:
            warnings.warn(line, stacklevel=3)
        if (possible_ticks := self.ledger.get(f"{benchmark}:{clock}")) is not None:
            possible = ticks.to_units(possible_ticks)
        else:
            possible = self.best_rate[None, :, None, None] * ticks.to_units(self.ledger[clock])
        return self._short_of(possible, name, earned)

    def _short_of(self, possible: np.ndarray, name: str, earned: str) -> xarray.DataArray:
        """What could have been earned minus what was: the package's only formula for regret."""
        # what broke after a few rounds would have the least regret of all
        possible = np.where((self.ended == Status.INVALID)[..., None], np.nan, possible)
        return self._array(possible - ticks.to_units(self.ledger[earned]), name, "reward")

    @property
    def reward(self) -> xarray.DataArray:
        """Reward earned."""
        return self._array(ticks.to_units(self.ledger["reward"]), "reward", "reward")

    @property
    def spent(self) -> xarray.DataArray:
        """Money spent (with several resources there is another axis, ``resource``)."""
        return self._array(ticks.to_units(self.ledger["spent"]), "spent", "cost")

    @property
    def violation(self) -> xarray.DataArray:
        """The largest excess of the total cost over c·t so far; exactly 0 if there was none.

        Under :class:`~jaxbandits.Renewing` it is the excess over a period's budget.

        Raises:
            InputError: unless the constraint was :class:`~jaxbandits.AverageCost` or
                :class:`~jaxbandits.Renewing`.
        """
        if "audit:violation" not in self.ledger:
            raise InputError("violation: only the constraints AverageCost and Renewing record it")
        return self._array(ticks.to_units(self.ledger["audit:violation"]), "violation", "cost")

    @property
    def rounds(self) -> xarray.DataArray:
        """Rounds simulated."""
        return self._array(self.ledger["rounds"], "rounds", "rounds")

    @property
    def status(self) -> xarray.DataArray:
        """How each lane ended, as the names of :class:`~jaxbandits.Status`."""
        names = np.array([status.name.lower() for status in Status])
        return self._array(names[self.ended], "status", "")

    @property
    def pulls(self) -> xarray.DataArray:
        """Pulls of every arm over the whole lane, axes ``setting, instance, replicate, arm``.

        Raises:
            InputError: if the environment has no arms to count.
        """
        import xarray

        if "pulls" not in self.final:
            raise InputError("pulls: this environment does not count pulls per arm")
        axes, attrs = (*AXES[:3], "arm"), {"units": "pulls", **self._paired_by()}
        return xarray.DataArray(self.final["pulls"], self._places(), axes, "pulls", attrs)

    def recorded(self, name: str = "pulls") -> xarray.DataArray:
        """What ``record=(name,)`` recorded, axes ``setting, instance, replicate, mark, arm``.

        Raises:
            InputError: if it was not recorded.
        """
        import xarray

        if f"record:{name}" not in self.ledger:
            must = f"it must be in simulate(…, record=({name!r},))"
            raise InputError(f"{name}: not recorded at marks; {must}")
        table, by = self.ledger[f"record:{name}"], self._paired_by()
        return xarray.DataArray(table, self._places(4), (*AXES, "arm")[: table.ndim], name, by)

    def linear(self, values: Any) -> xarray.DataArray:
        """Σ_k n_k g_k at every mark: any metric linear in the pulls, in the unit of ``values``.

        Exact: values are whole ticks (rounded to the nearest), sums are whole numbers.

        Args:
            values: g, ``[K]`` or ``[instance, K]``, of size at most 2⁸.

        Raises:
            InputError: pulls that were not recorded; values of another shape or size.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> result = jb.simulate(
            ...     jb.policies.UCB1(), arms, jb.Horizon(100), key=jax.random.key(0), marks=[0.5, 1], record=("pulls",))
            >>> share = result.linear([1.0, 0.0]) / result.rounds          # of the first arm
            >>> share.values.ravel().tolist()
            [0.54, 0.57]
        """
        pulls = self.recorded("pulls")
        table = np.asarray(values, np.float64)
        shapes = (pulls.shape[-1:], (pulls.shape[1], pulls.shape[-1]))
        if table.shape not in shapes or not (np.abs(table) <= 256).all():
            of_shape = " or ".join(map(str, map(list, shapes)))
            raise bad("values", values, f"numbers of at most 256, of the shape {of_shape}")
        per_arm = np.broadcast_to(np.rint(table * ticks.ONE).astype(np.int64), shapes[1])
        total = (pulls.values * per_arm[None, :, None, None, :]).sum(axis=-1)
        like = pulls[..., 0].drop_vars("arm", errors="ignore")
        return like.copy(data=ticks.to_units(total)).rename("linear")

    def count(self, event: str) -> xarray.DataArray:
        """How often a named event of the environment has occurred, at every mark.

        Raises:
            InputError: if the environment has no such event.
        """
        if f"event:{event}" not in self.ledger:
            events = [name[6:] for name in self.ledger if name.startswith("event:")]
            raise InputError(f"event: {event!r} given; it must be one of {events}")
        return self._array(self.ledger[f"event:{event}"], event, "rounds")

    def to_dataset(self) -> xarray.Dataset:
        """All views in one labelled dataset."""
        import xarray

        names = ("regret", "realised_regret", "reward", "spent", "rounds", "status")
        views = {name: getattr(self, name) for name in names}
        return xarray.Dataset(views, attrs={"about": json.dumps(self._about())})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file of arrays and a JSON manifest, whole or not at all.

        Raises:
            InputError: no file can be written there.
            OSError: the disk is full.
        """
        arrays: dict[str, Any] = {f"ledger/{name}": x for name, x in self.ledger.items()}
        arrays |= {f"final/{name}": x for name, x in self.final.items()}
        labels = {name: list(getattr(self, name)) for name in _LABELS}
        manifest = json.dumps({"format": _FORMAT, "about": self._about(), **labels}, default=repr)
        arrays |= {"ended": self.ended, "best_rate": self.best_rate, "manifest": np.array(manifest)}
        _files.save_arrays("path", _files.path_of("path", path), arrays, compressed=True)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote; untrusted files are safe, nothing in them is executed.

        Raises:
            InputError: if the file is missing, is not such a file, or holds arrays that do not fit
                its labels.
        """
        place = _files.path_of("path", path)
        try:
            arrays = _files.read_arrays(place)
            manifest = json.loads(str(arrays.pop("manifest")))
            if manifest.get("format") != _FORMAT:
                form = quoted(manifest.get("format"))
                raise ValueError(f"it has format {form} and not {_FORMAT}")
            labels = {name: tuple(manifest[name]) for name in _LABELS}
            sizes = tuple(map(len, labels.values()))
            fields: dict[str, Any] = {"ledger": {}, "final": {}, **labels}
            fields["about"] = About.from_json(manifest["about"])
            # Accounts that must be there come first: a file without one is refused by its name.
            for name in (*(f"ledger/{name}" for name in _ACCOUNTS), "ended", "best_rate", *arrays):
                kind, _, rest = name.partition("/")
                shape = {"ledger": sizes, "best_rate": sizes[1:2]}.get(kind, sizes[:3])
                x = arrays[name]
                if x.shape[: len(shape)] != shape:
                    what = f"{name!r} of shape {x.shape}"
                    raise ValueError(f"it holds {what}, which does not fit its labels")
                of, key = (fields[kind], rest) if rest else (fields, kind)
                of[key] = x
            return Result(**fields)
        except KeyError as problem:
            reason = f"it has no {problem.args[0]!r}"
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            if place.is_dir():
                reason = "it is a folder; jb.sweep(spec, folder) opens that of a sweep"
        raise bad("path", str(place), f"a saved result ({reason})")


def pick(result: Result, **places: Sequence[int] | np.ndarray) -> Result:
    """Lanes of some ``settings``, ``instances``, ``replicates`` (positions), in that order."""
    every = {name: range(len(getattr(result, name))) for name in _LABELS[:3]}
    axes = [list(rows) for rows in (every | places).values()]
    parts = {"ledger": result.ledger, "final": result.final}
    accounts = {of: {k: x[np.ix_(*axes)] for k, x in of_it.items()} for of, of_it in parts.items()}
    labels = {name: tuple(getattr(result, name)[i] for i in rows) for name, rows in places.items()}
    ended, best_rate = result.ended[np.ix_(*axes)], result.best_rate[axes[1]]
    return dataclasses.replace(result, **accounts, **labels, ended=ended, best_rate=best_rate)  # type: ignore[arg-type]


def at_ends(results: Sequence[Result], budgets: Sequence[float]) -> Result:
    """The ends of runs with several budgets as one result, with budgets in place of marks."""
    parts = [_with_benchmark(x).ledger for x in results]
    ends = {x: np.concatenate([part[x][:, :, :, -1:] for part in parts], axis=3) for x in parts[0]}
    about = dataclasses.replace(results[-1].about, clock="budget")
    return dataclasses.replace(results[-1], ledger=ends, marks=tuple(budgets), about=about)


def _with_benchmark(result: Result) -> Result:
    """The result with what could have been earned by each mark in its ledger."""
    if "moving:clock" in result.ledger:
        return result
    rate = result.best_rate[None, :, None, None]
    ledger = dict(result.ledger)
    for clock in ("clock", "expected_clock"):
        ledger[f"moving:{clock}"] = ticks.from_units(rate * ticks.to_units(ledger[clock]))
    return dataclasses.replace(result, ledger=ledger)


def join_settings(results: Sequence[Result]) -> Result:
    """Several policies on the same lanes as one result, concatenated along ``setting``."""

    def final(name: str) -> np.ndarray:
        parts = [result.final.get(name) for result in results]
        like = next(part for part in parts if part is not None)
        # NaN, as labelled arrays have where nothing is known
        if any(part is None for part in parts):
            absent = [np.full((*x.ended.shape, *like.shape[3:]), np.nan) for x in results]
            parts = [x if part is None else part for part, x in zip(parts, absent, strict=True)]
        return np.concatenate(parts)  # type: ignore[arg-type]

    best_rate = np.max([result.best_rate for result in results], axis=0)
    if any((result.best_rate < best_rate).any() for result in results):
        # Sets of several sizes: each policy has a benchmark of its own.
        results = [_with_benchmark(result) for result in results]
    first = results[0]
    of = [vars(r.about) for r in results]
    several: Any = {name: tuple(x for about in of for x in about[name]) for name in _BY_SETTING}
    reasons = [r.about.why_scan for r in results if r.about.why_scan]
    why_scan = "; ".join(dict.fromkeys(reasons)) or None
    return dataclasses.replace(
        first,
        ledger={name: np.concatenate([r.ledger[name] for r in results]) for name in first.ledger},
        ended=np.concatenate([r.ended for r in results]),
        final={name: final(name) for name in dict.fromkeys(x for r in results for x in r.final)},
        best_rate=best_rate,
        settings=tuple(name for r in results for name in r.settings),
        about=dataclasses.replace(first.about, **several, why_scan=why_scan),
    )


def _measured_apart(result: Result, possible: np.ndarray | None) -> float:
    """Gap of mean final benchmarks of two settings, over all runs together, if clear; else 0."""
    # Clear: more than what one round may earn and cost.
    ended = ~np.isin(result.ended, (Status.ROUND_CAP, Status.CAPACITY, Status.INVALID))
    if possible is None:
        possible = result.best_rate[:, None, None] * result.ledger["expected_clock"]
    value, kept = ticks.to_units(possible[..., -1]), ended.all(axis=0)
    if len(value) < 2 or kept.sum() < 20:
        return 0.0
    # Of all runs together: the spread of a few of one instance says little. Five standard errors
    # need at least 25 runs that agree.
    apart = (value[1:] - value[:1])[:, kept]
    mean, error = apart.mean(axis=1), apart.std(axis=1, ddof=1) / np.sqrt(kept.sum())
    round_worth = 1 + np.abs(result.best_rate).mean() * (result.about.clock == "spent")
    return float(np.where(np.abs(mean) > round_worth + 5 * error, np.abs(mean), 0).max())


def doubt_of(result: Result, name: str = "regret") -> str | None:
    """Why means of this regret do not rank policies, in one line; None if they do."""
    about = result.about
    benchmark = "fixed" if name == "fixed_regret" else "moving"
    possible = result.ledger.get(f"{benchmark}:expected_clock")
    if benchmark == "moving" and possible is None and np.isnan(result.best_rate).any():
        limit, world = about.constraint.get("class", "this constraint"), about.environment
        most = f"the most that can be earned in {world or 'this world'} under {limit}"
        return f"{name}: {most} is not known; rank by result.reward"
    if benchmark == "moving" and (apart := _measured_apart(result, possible)) > 0:
        measure = "each run is compared with what the mean costs of its own pulls could have earned"
        differs = f"which differs by {apart:.3g} on average between two settings"
        return f"{name}: {measure}, {differs}; rank by result.reward"
    error = result.ledger.get(f"{benchmark}_error:expected_clock")
    if possible is None or error is None:
        return None
    ends = (x[..., -1] for x in (possible, result.ledger["expected_reward"], error))
    possible, reward, error = (ticks.to_units(x) for x in ends)
    regret, error = np.abs((possible - reward).mean(axis=2)).max(axis=0), error.max(axis=(0, 2))
    at = int(np.argmax(error - 0.1 * regret))
    if error[at] <= 0.1 * regret[at]:
        return None
    view = "fixed_benchmark_error" if benchmark == "fixed" else "benchmark_error"
    sampled = f"its benchmark is that of sampled contexts, with a standard error of {error[at]:.3g}"
    place = f"at the end of instance {result.instances[at]}"
    regrets = f"where mean regrets are at most {regret[at]:.3g}"
    see = f"see result.{view} (with Rows of contexts it is exact)"
    return f"{name}: {sampled} {place}, {regrets}; {see}"


# --- Pictures


_ACROSS = {"spent": "share of the budget spent", "rounds": "share of the rounds"}
_MOST_SETTINGS = 20


def _check_few(count: int) -> None:
    must = f"at most {_MOST_SETTINGS}; select some by result.sel(…) or plot.regret(settings=[…])"
    refuse("plot", f"{count} settings", count > _MOST_SETTINGS, must)


class ResultPlots:
    """``result.plot``, for at most 20 settings: matplotlib figures, which ``path`` saves."""

    def __init__(self, result: Any):
        from jaxbandits import _plots  # here: it imports matplotlib

        self._result, self._plots = result, _plots

    def regret(
        self,
        over: str | None = None,
        *,
        settings: Sequence[str] | Mapping[str, str] | None = None,
        title: str | None = None,
        ax: Axes | None = None,
        path: str | os.PathLike[str] | None = None,
        width: float | str | None = None,
    ) -> Figure:
        """Plot mean regret over the clock, with a 95 % interval at each mark.

        Args:
            over: the unit of the interval (:func:`~jaxbandits.statistics.mean`): ``"replicate"``
                for more runs of these instances, or ``"instance"`` for more instances of the
                same kind, as in most papers.
            settings: labels of the settings to plot, in this order, or ``{label: name}`` to rename
                them.
            title: above the plot: ``""`` for none. The default says what the curves are means of,
                and names what is in doubt about their intervals (:mod:`jaxbandits.statistics`) or
                about the benchmark (:attr:`Result.benchmark_error`).
            ax: axes of your own figure to draw into; you set its size and save it.
            path: a file to write as well, ending in ``.pdf``, ``.svg`` or ``.png``.
            width: for print: ``"column"`` (3.25 inches), ``"page"`` (6.75), or inches.
        """
        if over is None:
            raise InputError("over: not given; it must be 'replicate' or 'instance'")
        one_of("over", over, ("replicate", "instance"))
        if ax is not None and (path, width) != (None, None):
            must = "left out where path or width is given: size and save your own figure yourself"
            raise bad("ax", ax, must)
        labels = list(self._result.settings)
        curves = labels if settings is None else list(settings)
        if unknown := [label for label in curves if label not in labels]:
            raise bad("settings", unknown[0], f"one of {', '.join(labels)}")
        _check_few(len(curves))
        rows = [labels.index(label) for label in curves]
        regret = mean(self._result.regret[rows], over=over)
        units = count_of(regret.units, "run" if over == "replicate" else "instance")
        sure = bool(np.isfinite(regret.low).all())
        doubts = [warning.partition(":")[0] for warning in regret.warnings]
        doubts += ["benchmark"] * (doubt_of(self._result) is not None)
        doubtful = f" (in doubt: {', '.join(doubts)})" if doubts else ""
        kind = "" if over == "replicate" else " for further instances"
        known = f"mean of {units}, 95 % intervals{kind}{doubtful}"
        known = known if sure else f"{units}, no interval"
        names = [settings[x] for x in curves] if isinstance(settings, Mapping) else curves
        figure = self._plots.line_chart(
            np.asarray(self._result.marks),
            names if isinstance(settings, Mapping) else self._plots.short_names(names),
            [part.values for part in (regret.value, regret.low, regret.high)],
            title=known if title is None else title,
            across=_ACROSS.get(clock := self._result.about.clock, clock or "share"),
            up="regret (reward)",
            axes=ax,
        )
        return figure if ax is not None else _files.finished(figure, path, width)

    def distribution(
        self, *, path: str | os.PathLike[str] | None = None, width: float | str | None = None
    ) -> Figure:
        """Plot the share of runs with at least a given regret, which shows heavy tails.

        Args:
            path, width: as in :meth:`regret`.

        Raises:
            InputError: there is only one run of each setting, which has no distribution.
        """
        final = self._result.regret.values[..., -1]
        _check_few(len(final))
        if final[0].size < 2:
            raise bad("distribution", "one run of each setting", "of two runs or more")
        figure, axes = self._plots.empty_figure()
        above = 1 - np.arange(final[0].size) / final[0].size
        for number, name in enumerate(self._plots.short_names(self._result.settings)):
            colour, _, dashes = self._plots.nth_look(number)
            look = {"color": colour, "linestyle": dashes, "linewidth": 1.8, "label": name}
            axes.step(np.sort(final[number].ravel()), above, where="pre", **look)
        up = "share of runs with at least this regret"
        axes.set(yscale="log", xlabel="regret at the end (reward)", ylabel=up)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.set_title(f"{count_of(final[0].size, 'run')} of each setting", fontsize=10)
        self._plots.set_key(figure, *axes.get_legend_handles_labels())
        return _files.finished(figure, path, width)
