"""What a policy is, as plain JSON: so that what was learnt by one is not taken for what another one learnt."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jax
import numpy as np

from jaxbandits.core.errors import InputError, shown
from jaxbandits.core.protocol import Policy


def versions() -> dict[str, str]:
    """What made a file."""
    from jaxbandits import __version__

    return {"jaxbandits": __version__, "jax": jax.__version__}


def identity_of(policy: Policy) -> dict[str, Any]:
    """Class, parameters as float32 or int32 plays them, and static fields, nested policies included.

    Example:
        >>> import jaxbandits as jb
        >>> identity_of(jb.policies.OmegaUCB(rho=0.3))
        {'class': 'OmegaUCB', 'rho': 0.3}
    """
    found: dict[str, Any] = {"class": type(policy).__qualname__}
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            found[field.name] = identity_of(value)  # type: ignore[arg-type]
        elif field.metadata.get("static"):
            text = repr(value)
            found[field.name] = getattr(value, "__qualname__", type(value).__qualname__) if " at 0x" in text else text
        elif value is not None:
            found[field.name] = _plain(value, field.metadata.get("integer", False))
    return found


def _plain(value: Any, integer: bool) -> Any:
    array = np.asarray(value, np.int32 if integer else np.float32)
    return [_plain(x, integer) for x in array] if array.ndim else json.loads(str(array))


def text_of(identity: Any) -> str:
    """An identity as its class is written: ``OmegaUCB(rho=0.25)``."""
    if not isinstance(identity, dict):
        return shown(identity)
    fields = ", ".join(f"{name}={_shown(x)}" for name, x in identity.items() if name != "class")
    return f"{identity.get('class')}({fields})"


def _shown(value: Any) -> str:
    return text_of(value) if isinstance(value, dict) else str(value)


def refuse_other(argument: str, given: Any, found: Any) -> None:
    """Raise :class:`InputError` unless the policy that is ``given`` is the one that a file was ``found`` to be of."""
    mine = None if given is None else identity_of(given)
    if mine == found:
        return
    if found is None:
        raise InputError(
            f"{argument}: {text_of(mine)} given; the file does not say whose state it holds: save(policy=…)"
        )
    told = "None" if mine is None else text_of(mine)
    raise InputError(f"{argument}: {told} given; it must be {text_of(found)}, whose state the file holds")
