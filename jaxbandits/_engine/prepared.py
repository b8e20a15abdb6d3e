"""The user's constraint, checked and with one row per instance."""

from __future__ import annotations

import jax
import numpy as np

from jaxbandits.core.errors import InputError
from jaxbandits.core.protocol import Constraint, Environment
from jaxbandits.core.pytrees import check_range, leaf_fields
from jaxbandits.core.user_methods import called


def prepare(constraint: Constraint, environment: Environment) -> Constraint:
    """The constraint with leaves ``[instance, …]``.

    Raises:
        InputError: a field outside the range that it declares; leaves that are not one row per instance.
    """
    kind, instances = type(constraint).__name__, environment.instances
    for field in leaf_fields(constraint):
        if {"above", "at_least", "at_most"} & set(field.metadata):
            check_range(f"{kind}.{field.name}", getattr(constraint, field.name), field.metadata)
    prepared = called(constraint, "prepare", lambda: constraint.prepare(environment))
    for path, leaf in jax.tree_util.tree_leaves_with_path(prepared):
        if np.shape(leaf)[:1] != (instances,):
            name = getattr(path[0], "name", path[0])
            raise InputError(
                f"{kind}.prepare: {name} has shape {np.shape(leaf)}; it must have one row for "
                f"each of {instances} instances"
            )
    return prepared
