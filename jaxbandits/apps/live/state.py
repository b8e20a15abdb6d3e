"""What a log says: terms, arms, requests, money and what the policy learnt; moved by the events of the log alone.

An agent and a replay let events happen by the same code. :meth:`State.decide` checks an event, decides what is to be
decided, and gives it as the log will have it; the agent writes that; :meth:`State.apply` lets it happen.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.apps.live import log as logs
from jaxbandits.apps.live.budgets import Account, Arm, Budget, Pace, Traffic
from jaxbandits.apps.live.errors import Misuse, Settled
from jaxbandits.apps.live.step import in_first_places
from jaxbandits.constraints import Allowance
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import MOST_INT, InputError, bad, number, positive_number, shown
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Feedback, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, select_tree, walk
from jaxbandits.core.settings import Settings
from jaxbandits.core.specs import FiniteSpec

_LOGGER = logging.getLogger("jaxbandits.apps.live")
_LEAST = 4  # capacity
_MOST_COST = 1 << 20  # units: what is above that is no cost
_MOST = (1 << 55) - 1  # what a total holds
_AT_ONCE = 4096  # outcomes that another policy is taught in one call


@dataclasses.dataclass
class Request:
    """A request that may still be answered."""

    id: int
    arm: int
    held: int  # ticks, charged until its cost is known
    time: float  # when it was decided; the period of that time pays


@jit
def select(policy: Policy, learnt: Pytree, words: jax.Array, view: View, open: jax.Array) -> tuple[Pytree, jax.Array]:
    """The policy's state after a decision, and the arm."""
    return policy.select_while_open(learnt, streams.typed(words), view, open)


@jit
def _update(policy: Policy, learnt: Pytree, words: jax.Array, there: jax.Array, arrived: jax.Array) -> Pytree:
    """What is known after one outcome: round, arm, reward, cost. The simulator's ``wrappers.learn`` does the same."""
    round, arm, reward, cost = arrived
    seen = Observation(View(round + 1, None, there), arm, Feedback(reward, cost), jnp.bool_(False))
    return policy.update(learnt, streams.typed(words), seen)


@jit
def _update_all(policy: Policy, learnt: Pytree, words: jax.Array, there: jax.Array, arrived: jax.Array) -> Pytree:
    def one(before: Pytree, arrival: jax.Array) -> tuple[Pytree, None]:
        return select_tree(arrival[0] > 0, _update(policy, before, words, there, arrival), before), None

    return jax.lax.scan(one, learnt, arrived)[0]


class State:
    """The state that the first line of a segment holds; events move it.

    Money is whole ticks: 2⁻²⁴ of ``base``, the unit that the log began with. The policy is told of larger ticks where
    the unit was made larger since: costs and bounds rounded up, what is left rounded down.

    Args:
        policy: None, or one whose state is another than that of the line: nothing is decided or learnt then.
        line: the first line.
        history: a log, from whose outcomes another policy may learn.

    Raises:
        InputError: terms that no agent can have.
    """

    def __init__(self, policy: Policy | None, line: dict[str, Any], history: Path | None = None):
        state, terms = line["state"], line["terms"]
        self.terms, self.told, self.history = terms, line["told"], history
        self.segment, self.events = line["segment"], line["events"]
        self.unit, self.base, self.start = terms["unit"], terms["base"], terms["start"]
        self.reward_bound, self.words = terms["reward_bound"], np.array(terms["key"], np.uint32)
        self._shift = round(math.log2(self.unit / self.base))
        self.policy, leaves = policy, () if policy is None else walk(policy)
        self._per_arm = next((leaf.path for leaf in leaves if leaf.metadata.get("core", 0)), None)
        self.round, now = state["round"], state["now"]
        self.now = -math.inf if now is None else now  # of the last event that has a time
        self.arms = [Arm(**{**arm, "seen": dict(arm["seen"])}) for arm in state["arms"]]
        self.places = {arm.name: k for k, arm in enumerate(self.arms)}  # a name keeps its place for ever
        self.requests, self.lost = ({x[0]: Request(*x) for x in state[kind]} for kind in ("requests", "lost"))
        budgets = [Budget(**budget) for budget in terms["budgets"]]
        for budget in budgets:
            budget.check(self.unit, [*self.places])
        if len(names := {budget.name for budget in budgets}) < len(budgets):
            raise bad("budgets", sorted(names), "of different names")
        self.accounts = [Account(budget, self.start, self.base) for budget in budgets]
        for account, plain in zip(self.accounts, state["accounts"], strict=False):
            account.take(plain)
        self.pace: Pace | None = None
        if terms["traffic"] is not None:
            traffic = Traffic(**terms["traffic"])
            traffic.check(budgets)
            self.pace = Pace(traffic, self.start, state["pace"])
        if (hold := terms["hold"]) != "bound" and (isinstance(hold, str) or not 0 < number("hold", hold) < 1):
            raise bad("hold", hold, "'bound', or a quantile above 0 and below 1")
        if terms["lost"] not in ("bound", "mean"):
            raise bad("lost", terms["lost"], "'bound' or 'mean'")
        self.counts = Counter(dict(state["counts"]))
        self.learnt: Pytree = None  # the policy's state: all that has arrived
        self.waiting = np.zeros(0, np.int32)  # open requests of each arm, up to the capacity
        self._lay_out()
        if self.policy is not None and state["learnt"] is not None:
            try:
                self.learnt = jax.tree.map(jnp.asarray, logs.unpacked(state["learnt"], self.learnt))
            except ValueError:  # the state of another version of it
                self.policy = None

    @classmethod
    def new(cls, policy: Policy, terms: dict[str, Any], arms: Mapping[str, float]) -> State:
        """Nothing has happened."""
        state = dict.fromkeys(("requests", "lost", "accounts", "counts"), ()) | dict.fromkeys(("now", "pace", "learnt"))
        bounds = [vars(Arm(name, math.ceil(bound / terms["base"] * ticks.ONE))) for name, bound in arms.items()]
        told = {"arms": dict(arms), **terms}
        line = {"terms": terms, "told": told, "segment": 1, "events": 1, "state": state | {"round": 0, "arms": bounds}}
        return cls(policy, line)

    def line(self) -> dict[str, Any]:
        """The first line of a segment."""
        from jaxbandits import __version__

        by = {"jaxbandits": __version__, "jax": jax.__version__}
        head = {"do": "begin", "format": logs.FORMAT, "by": by, "segment": self.segment}
        return head | {"events": self.events, "terms": self.terms, "told": self.told, "state": self._plain()}

    def _plain(self) -> dict[str, Any]:
        """The state as plain JSON."""
        return {
            "round": self.round,
            "now": self.now if math.isfinite(self.now) else None,
            "arms": [vars(arm) | {"seen": sorted(arm.seen.items())} for arm in self.arms],
            "requests": [list(vars(request).values()) for request in self.requests.values()],
            "lost": [list(vars(request).values()) for request in self.lost.values()],
            "accounts": [account.plain() for account in self.accounts],
            "pace": None if self.pace is None else self.pace.at,
            "counts": sorted((name, count) for name, count in self.counts.items() if count),
            "learnt": logs.packed(self.learnt),
        }

    def digest(self) -> str:
        """A hash of the whole state."""
        return hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode()).hexdigest()

    # --- events ------------------------------------------------------------------------------------------------

    def decide(self, event: dict[str, Any], check: bool = False) -> tuple[dict[str, Any], Pytree]:
        """An event as a log has it, and the policy's state after it; what cannot be raises :class:`InputError`.

        What a log says was decided counts; ``check``: and would be decided again.
        """
        match event["do"]:
            case "choose":
                return self._choose(event, check)
            case "learn":
                return self._learn(event)
            case "cancel":
                self.find(event["id"])
            case "add_arm":
                self.joins(event["name"], event["bound"])
            case "remove_arm":
                self.place(event["name"])
        return event, self.learnt

    def apply(self, event: dict[str, Any], learnt: Pytree) -> None:
        """Let happen what was decided."""
        self.learnt = learnt
        self.events += 1
        match event["do"]:
            case "choose":
                self.round, self.now = event["id"], event["t"]
                for account in self.accounts:
                    account.decided(self.now)
                if self.pace is not None:
                    self.pace.decided(self.now)
                if event["arm"] is None:
                    self.counts["turned_away"] += 1
                else:
                    request = Request(self.round, self.places[event["arm"]], event["held"], self.now)
                    self.requests[self.round] = request
                    self.waiting[request.arm] += 1
                    self._charge(request, request.held)
            case "learn":
                self.counts["late"] += event["id"] in self.lost
                reward, paid = event["reward"], self.ticks("cost", event["cost"])
                k = self._settle(event["id"], paid)
                self.arms[k].learn(None if reward is None else self._reward_ticks(reward), paid)
                if not isinstance(self.terms["hold"], str):
                    self._hold(k)
            case "cancel":
                self._settle(event["id"], 0)
                self.counts["cancelled"] += 1
            case "expire":
                for id in event["ids"]:
                    self._give_up(id)
                for id in event["forget"]:
                    del self.lost[id]
            case "add_arm":
                if event["name"] not in self.places:
                    self.places[event["name"]] = len(self.arms)
                    self.arms.append(Arm(event["name"], 0))
                arm = self.arms[self.places[event["name"]]]
                arm.active, arm.bound = True, self.ticks("bound", event["bound"])
                self._lay_out()
            case "remove_arm":
                self.arms[self.place(event["name"])].active = False
                self._lay_out()
            case "clock":
                self.now = event["t"]

    def replay(self, event: dict[str, Any], line: int, check: bool = False) -> None:
        """Let happen again what this line of a log says."""
        try:
            self.apply(*self.decide(event, check))
        except (InputError, KeyError) as problem:
            raise InputError(f"log: line {line} says {problem}") from None

    def _choose(self, event: dict[str, Any], check: bool) -> tuple[dict[str, Any], Pytree]:
        round, learnt, arm, asked = self.round + 1, self.learnt, -1, self.decision(event)
        if round >= MOST_INT:
            raise InputError(f"agent: {self.round:,} decisions made; it must be fewer: a new one goes on")
        if asked is not None and self.policy is not None:
            learnt, chosen = select(self.policy, *asked)
            arm = int(chosen)
        name = self.arms[arm].name if 0 <= arm < len(self.arms) else None
        if "id" not in event:
            held = {} if name is None else {"held": int(self.held[arm])}
            return {**event, "id": round, "arm": name, **held}, learnt
        if event["id"] != round or (check and event["arm"] != name):
            told = shown(name) if event["id"] == round else f"request {round}"
            raise InputError(
                f"{shown(event['arm'])} for request {event['id']}, and {told} comes out; it must be played by the "
                "version that wrote it, on the same kind of processor"
            )
        return event, learnt

    def decision(self, event: dict[str, Any]) -> tuple[Pytree, np.ndarray, View, np.ndarray] | None:
        """What the policy is asked with in this event; None: no arm can be paid, and it is not asked."""
        now, left = event["t"], np.array([min(x.left(event["t"]), _MOST) for x in self.accounts], np.int64)
        there = self.there & ~np.any(self.pays & (self.held > left[:, None]), axis=0)
        if "among" in event:
            asked = np.zeros_like(there)
            asked[[self.place(name) for name in event["among"]]] = True
            there &= asked
        if not there.any():
            return None
        view = View(np.int32(self.round + 1), self._allowance(now, self.bound, self.pays), there)  # type: ignore[arg-type]
        return self.learnt, self.words, view, self.waiting.copy()

    def _allowance(self, now: float, bound: np.ndarray, pays: np.ndarray) -> Allowance | None:
        """What the policy is told of money; None: there are no budgets."""
        if not self.accounts:
            return None
        money = ([x.left(now) for x in self.accounts], [x.granted(now) for x in self.accounts])
        rows = [[min(x >> self._shift, _MOST) for x in row] for row in (*money, [x.amount for x in self.accounts])]
        whole, part = ticks.split(np.array(rows, np.int64))
        granted, amount = (ticks.Total(whole[row], part[row]) for row in (1, 2))
        ahead, total = (None, None) if self.pace is None else self.pace.ahead(self.accounts, now)
        carries = np.array([x.budget.carry_over for x in self.accounts], bool)
        return Allowance(whole[0], part[0], granted, amount, None, ahead, total, carries, bound, pays)  # type: ignore[arg-type]

    def _learn(self, event: dict[str, Any]) -> tuple[dict[str, Any], Pytree]:
        reward, cost, learnt = event["reward"], event["cost"], self.learnt
        self.ticks("cost", cost, self.unit * _MOST_COST)
        arm = self.arms[self.find(event["id"]).arm].name
        event = {"do": "learn", "id": event["id"], "arm": arm, "reward": reward, "cost": cost}
        if reward is not None and self.policy is not None:
            learnt = _update(self.policy, learnt, self.words, self.there, np.array(self._arrival(event), np.int32))
        return event | {"reward": None if reward is None else float(reward), "cost": float(cost)}, learnt

    # --- requests ----------------------------------------------------------------------------------------------

    def find(self, id: Any) -> Request:
        """A request that may be answered."""
        whole = isinstance(id, int) and not isinstance(id, bool)
        request = (self.requests.get(id) or self.lost.get(id)) if whole else None
        if request is None:
            known = whole and 1 <= id <= self.round
            why = "it was settled, or given up and forgotten" if known else "it was never given, or is no ticket"
            raise (Settled if known else Misuse)(str(bad("ticket", id, f"one that is open; {why}")))
        return request

    def _settle(self, id: int, paid: int) -> int:
        """A request is over: what it did not cost returns to the period in which it was decided. Gives its arm."""
        if (request := self.lost.pop(id, None)) is None:
            request = self.requests.pop(id)
            self.waiting[request.arm] -= 1
        self._charge(request, paid - request.held)
        return request.arm

    def _give_up(self, id: int) -> None:
        """A request is waited for no longer, and charged as ``lost``."""
        request = self.lost[id] = self.requests.pop(id)
        self.waiting[request.arm] -= 1
        arm, held = self.arms[request.arm], request.held
        arm.lost += 1
        if self.terms["lost"] == "mean" and arm.pulls:
            request.held = arm.mean_cost()
        elif self.terms["hold"] != "bound":
            request.held = max(held, arm.bound)
        self._charge(request, request.held - held)

    def _charge(self, request: Request, amount: int) -> None:
        for account, pays in zip(self.accounts, self.pays, strict=True):
            if pays[request.arm]:
                account.charge(request.time, amount)

    # --- arms --------------------------------------------------------------------------------------------------

    def place(self, name: Any) -> int:
        """The place of an arm that is there."""
        place = self.places.get(name) if isinstance(name, str) else None
        if place is None or not self.arms[place].active:
            there = ", ".join(arm.name for arm in self.arms if arm.active)
            raise bad("arm", name, f"one of {there or 'none'}")
        return place

    def joins(self, name: Any, bound: Any) -> int:
        """The bound in ticks of an arm that can join."""
        _check_name(name)
        if name in self.places:
            if self.arms[self.places[name]].active:
                raise bad("name", name, "the name of an arm that is not there")
        elif self._per_arm:
            raise InputError(f"arms: one more given; {self._per_arm} has one value for each of {len(self.arms)} arms")
        return self.ticks("bound", bound, self.unit)

    def room(self, arms: int) -> int:
        """The capacity for so many arms: few sizes, so that few programs are compiled."""
        return arms if self._per_arm else max(_LEAST, 1 << (arms - 1).bit_length())

    def _lay_out(self) -> None:
        """The tables of arms as compiled functions read them."""
        room = self.room(len(self.arms))
        if room > self.waiting.size:
            if self.policy is not None:
                self.policy.check(FiniteSpec(room))
                wide = self.policy.init(FiniteSpec(room))
                wide = wide if self.learnt is None else jax.tree.map(in_first_places, wide, self.learnt)
                self.learnt = jax.tree.map(jnp.asarray, wide)
            self.waiting = np.zeros(room, np.int32)
            for request in self.requests.values():
                self.waiting[request.arm] += 1
        n, budgets = len(self.arms), [account.budget for account in self.accounts]
        self.there, self.pays = np.zeros(room, bool), np.zeros((len(budgets), room), bool)
        self.there[:n] = [arm.active for arm in self.arms]
        for pays, budget in zip(self.pays, budgets, strict=True):
            pays[:n] = [budget.arms is None or arm.name in budget.arms for arm in self.arms]
        self.held = np.full(room, ticks.ONE << self._shift, np.int64)  # what a request to each arm holds
        self.bound = np.full(room, ticks.ONE, np.int32)  # the same in the policy's ticks
        for k in range(n):
            self._hold(k)

    def _hold(self, k: int) -> None:
        self.held[k] = self.arms[k].held(self.terms["hold"], ticks.ONE << self._shift)
        self.bound[k] = self._seen(int(self.held[k]))

    def compile(self, room: int) -> None:
        """Compile all that serving so many arms needs: no request must wait for it."""
        if self.policy is None:
            return
        self.policy.check(FiniteSpec(room))
        began, there = time.perf_counter(), np.ones(room, bool)
        learnt = jax.tree.map(jnp.asarray, self.policy.init(FiniteSpec(room)))
        money = self._allowance(self.start, np.ones(room, np.int32), np.ones((len(self.accounts), room), bool))
        view = View(np.int32(1), money, there)  # type: ignore[arg-type]
        select(self.policy, learnt, self.words, view, np.zeros(room, np.int32))
        _update(self.policy, learnt, self.words, there, np.array([1, 0, 0, 0], np.int32))
        _LOGGER.info("compiled for %d arms in %.1f s", room, time.perf_counter() - began)

    # --- other terms -------------------------------------------------------------------------------------------

    def changed(self, now: float, policy: Policy | None, given: Mapping[str, Any]) -> State:
        """The state under other terms and ``bounds``, as JSON has them; this one stays as it is."""
        arms = {arm.name: self.money(arm.bound) for arm in self.arms}
        unit = unit_of(arms, given.get("unit", self.unit))
        if not self.unit <= unit <= self.base * 2**30:
            raise bad("unit", given["unit"], f"at least {self.unit:g}, as it is, and at most {self.base * 2**30:g}")
        line, policy = json.loads(json.dumps(self.line())), policy or self.policy
        plain, before = line["state"], (self.terms["kind"], self.unit)
        for name, bound in given.get("bounds", {}).items():
            plain["arms"][self.place(name)]["bound"] = self.ticks(f"bounds[{name!r}]", bound, unit)
        line["terms"] |= {name: x for name, x in given.items() if name != "bounds"} | {"unit": unit}
        plain["now"] = now = max(now, self.now)
        if taught := self.policy is None or (line["terms"]["kind"], unit) != before:
            plain["learnt"] = None
        if "traffic" in given:
            plain["pace"] = None
        if "budgets" in given:
            plain["accounts"] = []
        state = State(policy, line, self.history)
        if "budgets" in given:
            self._hand_over(state, now)
        if taught:
            state._teach()
        state.compile(state.waiting.size)
        return state

    def _hand_over(self, state: State, now: float) -> None:
        """Give what was charged to the budgets of the same name, or to one that is another one in its name only."""

        def held(pays: np.ndarray) -> list[tuple[float, int]]:
            return [(x.time, x.held) for x in (*self.requests.values(), *self.lost.values()) if pays[x.arm]]

        old = {x.budget.name: (x, held(pays)) for x, pays in zip(self.accounts, self.pays, strict=True)}
        new = {x.budget.name for x in state.accounts}
        for account, pays in zip(state.accounts, state.pays, strict=True):
            budget, name = account.budget, account.budget.name
            if name not in old:
                alike = (x for x in old if x not in new and dataclasses.replace(old[x][0].budget, name=name) == budget)
                name = next(alike, name)
            before, was_held = old.pop(name, (None, []))
            account.follow(before, was_held, held(pays), now)
        if old:
            _LOGGER.warning("budgets %s are no more: what they were charged is forgotten", sorted(old))

    def _teach(self) -> None:
        """A policy that knows nothing learns all outcomes that the log still has."""
        parts = () if self.history is None else logs.segments(self.history, "learn")
        events = (event for _, lines in parts for event in lines if event["do"] == "learn")
        arrivals = (self._arrival(event) for event in events if event["reward"] is not None)
        rows = np.fromiter((x for arrival in arrivals for x in arrival), np.int32).reshape(-1, 4)
        for arrived in np.pad(rows, ((0, -len(rows) % _AT_ONCE), (0, 0))).reshape(-1, _AT_ONCE, 4):
            self.learnt = _update_all(self.policy, self.learnt, self.words, self.there, arrived)
        known = sum(arm.rewarded for arm in self.arms)
        level = logging.WARNING if len(rows) < known else logging.INFO
        _LOGGER.log(level, "%s was taught %d of %d outcomes", self.terms["policy"], len(rows), known)

    def _arrival(self, event: dict[str, Any]) -> tuple[int, int, int, int]:
        """What the policy is told of an outcome: its round, arm, reward and cost."""
        paid = self._seen(self.ticks("cost", event["cost"]))
        return event["id"], self.places[event["arm"]], self._reward_ticks(event["reward"]), paid

    # --- money -------------------------------------------------------------------------------------------------

    def money(self, amount: int) -> float:
        """Ticks as money."""
        return amount * self.base / ticks.ONE

    def by_period(self, account: Account, amounts: Mapping[int, int]) -> dict[float, float]:
        """Money by the time at which a period began."""
        return {account.periods.begin(period): self.money(amount) for period, amount in sorted(amounts.items())}

    def ticks(self, name: str, value: Any, most: float = math.inf) -> int:
        """Money as ticks, rounded up."""
        given = number(name, value)
        if not 0 <= given <= most:
            raise bad(name, value, f"from 0 to {most:g}")
        return math.ceil(given / self.base * ticks.ONE)

    def _seen(self, amount: int) -> int:
        """What the policy is told of a cost: in its own ticks, rounded up, at most a unit."""
        return min(-(-amount >> self._shift), ticks.ONE)

    def _reward_ticks(self, reward: Any) -> int:
        given, most = number("reward", reward), self.reward_bound
        if not 0 <= given <= most:
            raise bad("reward", reward, f"from 0 to {most:g}")
        whole = round(given / most * ticks.ONE)
        if given and not whole:
            raise bad("reward", reward, f"0, or at least {most / 2 / ticks.ONE:.3g}, half a tick")
        return whole


# --- terms


def of_one_setting(policy: Any) -> Policy:
    """The policy, its leaves float32 or int32 of one setting."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    chosen = Settings.of(policy, 1)
    if chosen.count != 1:
        raise bad("policy", policy, "one setting: one value of each parameter")
    return jax.tree.map(lambda x: jnp.asarray(x[0, 0]), chosen.policy)


def unit_of(arms: Any, unit: Any) -> float:
    """The money of one unit of cost, a power of two, so that bounds and costs become ticks exactly."""
    if not isinstance(arms, Mapping) or not arms:
        raise bad("arms", arms, "a bound for each name, such as {'small': 0.01, 'large': 0.2}")
    for name, bound in arms.items():
        _check_name(name)
        if not 0 <= number(f"arms[{name!r}]", bound) < math.inf:
            raise bad(f"arms[{name!r}]", bound, "a finite number of at least 0")
    largest = max(float(bound) for bound in arms.values())
    power = 2.0 ** math.ceil(math.log2((largest or 1.0) if unit is None else positive_number("unit", unit)))
    if largest > power:
        raise bad("unit", unit, "at least the largest bound")
    return power


def terms_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Terms as JSON has them, of those that are given."""
    for budget in given.get("budgets", ()):
        if not isinstance(budget, Budget):
            raise bad("budgets", budget, "a list of jb.live.Budget")
    if not isinstance(given.get("traffic"), (Traffic, type(None))):
        raise bad("traffic", given["traffic"], "a jb.live.Traffic")
    kind = {"kind": logs.written(given["policy"], values=False)} if "policy" in given else {}
    return json.loads(json.dumps(dict(given) | kind, default=_plain))


def _plain(x: Any) -> Any:
    if isinstance(x, Policy):
        return logs.written(x)
    if isinstance(x, (Budget, Traffic)):
        return dataclasses.asdict(x)
    return x.tolist() if hasattr(x, "tolist") else float(x)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise bad("arms", name, "names, as text")
