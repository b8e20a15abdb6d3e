"""An agent's numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxbandits.apps.live.agent import Agent
from jaxbandits.core import InputError

# Counters of Prometheus
_GROWS = ("requests", "turned_away", "cancelled", "late", "pulls", "lost", "failed", "above")


def prometheus(agent: Agent, registry: Any = None) -> None:
    """Let Prometheus read :meth:`Agent.statistics`: ``jaxbandits_requests_total``,
    ``jaxbandits_arm_cost{arm="…"}``, …

    What only grows is a counter (``…_total``), all else a gauge.

    Args:
        agent: an agent; ``Agent.load(file)`` in a process that serves nothing.
        registry: of ``prometheus_client``; default its own.

    Raises:
        InputError: ``prometheus_client`` is not installed.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> agent = jb.live.Agent(jb.policies.OmegaUCB(), arms={"a": 1.0}, reward_bound=1.0, key=jax.random.key(0))
        >>> jb.live.prometheus(agent)                               # doctest: +SKIP
        >>> prometheus_client.start_http_server(8000)               # doctest: +SKIP
    """
    try:
        from prometheus_client import REGISTRY
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError:
        raise InputError("prometheus: it is not installed: pip install '.[prometheus]'") from None

    class Collector:
        def describe(self) -> list[Any]:
            return []  # so that the agent is not read before Prometheus asks

        def collect(self) -> Iterator[Any]:
            numbers = agent.statistics()
            kinds = ("arm", numbers.pop("arms")), ("budget", numbers.pop("budgets"))
            for kind, rows in (*kinds, ("", {"": numbers})):
                for field in next(iter(rows.values()), ()):
                    family_type = CounterMetricFamily if field in _GROWS else GaugeMetricFamily
                    name = "_".join(filter(None, ("jaxbandits", kind, field)))
                    about = f"see {field} of Agent.statistics"
                    family = family_type(name, about, labels=[kind] * bool(kind))
                    for row_name, row in rows.items():
                        if row[field] is not None:
                            family.add_metric([row_name] * bool(kind), float(row[field]))
                    yield family

    (REGISTRY if registry is None else registry).register(Collector())
