"""One instance's tables as a lane sees them, read lazily."""

from __future__ import annotations

from typing import Any

import jax

from jaxbandits.core.pytrees import T


class Row:
    """One instance's slice of a table, read lazily: ``row[arm]`` gathers one number and never the whole slice."""

    def __init__(self, table: jax.Array, instance: jax.Array):
        self._table, self._instance = table, instance

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the slice."""
        return self._table.shape[1:]

    def __getitem__(self, index: Any) -> jax.Array:
        index = index if isinstance(index, tuple) else (index,)
        return self._table.at[(self._instance, *index)].get(mode="promise_in_bounds")


def at_instance(environment: T, instance: jax.Array) -> T:
    """The environment as one instance sees it."""
    return jax.tree.map(lambda table: Row(table, instance), environment)
