"""The few names of other projects that docstrings mention, as inventories: so that no build asks
the network.
"""

from __future__ import annotations

import zlib
from pathlib import Path

# project -> name, kind, page; an inventory's "$" stands for the name
NAMES = {
    "python": [
        ("pathlib.Path", "py:class", "library/pathlib.html#$"),
        ("os.PathLike", "py:class", "library/os.html#$"),
        ("time.time", "py:function", "library/time.html#$"),
        ("typing.Any", "py:data", "library/typing.html#$"),
        ("typing.NamedTuple", "py:class", "library/typing.html#$"),
        ("collections.abc.Callable", "py:class", "library/collections.abc.html#$"),
        ("collections.abc.Mapping", "py:class", "library/collections.abc.html#$"),
        ("collections.abc.Sequence", "py:class", "library/collections.abc.html#$"),
        ("enum.IntEnum", "py:class", "library/enum.html#$"),
        ("KeyboardInterrupt", "py:exception", "library/exceptions.html#$"),
        ("ValueError", "py:exception", "library/exceptions.html#$"),
        ("OSError", "py:exception", "library/exceptions.html#$"),
    ]
    + [
        (name, "py:class", f"library/{page}.html#$")
        for name, page in {
            "bool": "functions",
            "bytes": "stdtypes",
            "dict": "stdtypes",
            "float": "functions",
            "int": "functions",
            "list": "stdtypes",
            "object": "functions",
            "str": "stdtypes",
            "tuple": "stdtypes",
        }.items()
    ],
    "numpy": [("numpy.ndarray", "py:class", "reference/generated/$.html#$")],
    "jax": [
        ("jax.Array", "py:class", "_autosummary/$.html#$"),
        ("jax.grad", "py:function", "_autosummary/$.html#$"),
        ("jax.vmap", "py:function", "_autosummary/$.html#$"),
        ("jax.jit", "py:function", "_autosummary/$.html#$"),
    ],
    "xarray": [
        ("xarray.DataArray", "py:class", "generated/$.html#$"),
        ("xarray.Dataset", "py:class", "generated/$.html#$"),
    ],
    "matplotlib": [("matplotlib.figure.Figure", "py:class", "api/figure_api.html#$")],
}


def inventory(project: str) -> bytes:
    """In the form of Sphinx, version 2: four lines, then lines of names, compressed."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    lines = "".join(f"{name} {kind} 1 {page} -\n" for name, kind, page in NAMES[project])
    return (
        f"{head}# The remainder of this file is compressed using zlib.\n".encode()
        + zlib.compress(lines.encode())
    )


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for project in NAMES:
        (folder / f"{project}.inv").write_bytes(inventory(project))
