"""The API reference: one page for each public room, from what the rooms say in ``__all__``.

A name may be public in several rooms. It is described once, under its shortest path: on the root's
page if the root has it, else on the page of the deepest room that has it. The tables of the other
rooms point there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_origin

import jaxbandits

ROOT = "jaxbandits"
FLOOR = "jaxbandits.core"  # hands on what users meet under other names too


class Entry(NamedTuple):
    """A public name that is no module."""

    path: str  # the one it is described under
    page: str  # the room whose page does
    rooms: tuple[str, ...]  # that have it
    thing: Any


def rooms() -> dict[str, list[str]]:
    """Every public room, that is what has an ``__all__``, with what it says is meant."""
    found = {ROOT: list(jaxbandits.__all__)}
    for module in pkgutil.walk_packages(jaxbandits.__path__, f"{ROOT}."):
        if not re.search(r"\._", module.name) and hasattr(
            room := importlib.import_module(module.name), "__all__"
        ):
            found[module.name] = list(room.__all__)
    return found


def modules() -> list[str]:
    """Public files: modules that a room hands on and that are no rooms themselves."""
    public = rooms()
    found = {
        thing.__name__
        for room, names in public.items()
        for name in names
        if isinstance(thing := getattr(importlib.import_module(room), name), ModuleType)
    }
    return sorted(found - public.keys())


def entries() -> list[Entry]:
    """All public names but modules, each once."""
    where: dict[tuple[str, int], list[str]] = {}
    things: dict[tuple[str, int], Any] = {}
    for room, names in rooms().items():
        for name in names:
            thing = getattr(importlib.import_module(room), name)
            if not isinstance(thing, ModuleType):
                where.setdefault((name, id(thing)), []).append(room)
                things[name, id(thing)] = thing
    found = []
    for at, having in where.items():
        short = min(having, key=lambda room: (room.count("."), room == FLOOR, room))
        deep = max(having, key=lambda room: (room != FLOOR, room.count("."), room))
        found.append(
            Entry(f"{short}.{at[0]}", ROOT if short == ROOT else deep, tuple(having), things[at])
        )
    return sorted(found, key=lambda entry: (not isinstance(entry.thing, type), entry.path.lower()))


def is_called(thing: Any) -> bool:
    """A class or function, no alias of a type."""
    return callable(thing) and get_origin(thing) is None


def members(module: str) -> list[str]:
    """What a public file describes on its own page: its public functions, classes, and none of
    another file's.
    """
    file = importlib.import_module(module)
    elsewhere = {id(entry.thing) for entry in entries()}
    return [
        name
        for name, thing in vars(file).items()
        if not name.startswith("_")
        and getattr(thing, "__module__", None) == module
        and is_called(thing)
        and id(thing) not in elsewhere
    ]


def directive(entry: Entry) -> list[str]:
    """What autodoc is told of one name."""
    if isinstance(entry.thing, type):
        kind = "exception" if issubclass(entry.thing, BaseException) else "class"
        return [f".. auto{kind}:: {entry.path}", "   :members:", "   :show-inheritance:", ""]
    if is_called(entry.thing):
        return [f".. autofunction:: {entry.path}", ""]
    said = [f"   {line}" for line in inspect.cleandoc(data_doc(entry)).split("\n")]
    return [f".. py:data:: {entry.path}", "", *said, ""]


def data_doc(entry: Entry) -> str:
    """The text that stands below a constant or an alias, in whichever file of the package sets it."""
    name = entry.path.rsplit(".", 1)[1]
    for room in (*entry.rooms, ROOT):
        folder = Path(str(importlib.import_module(room).__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            lines = ast.parse(file.read_text(encoding="utf-8")).body
            for line, after in itertools.pairwise(lines):
                target = (
                    getattr(line, "target", None) or (getattr(line, "targets", None) or [None])[0]
                )
                if (
                    isinstance(target, ast.Name)
                    and target.id == name
                    and isinstance(after, ast.Expr)
                ):
                    return str(ast.literal_eval(after.value))
    return ""


def heading(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


MOST_IN_ONE_TABLE = 20


def table(things: dict[str, Any]) -> list[str]:
    """Names with the whole first paragraph of what they are."""
    if not things:
        return []
    rows = []
    for path, thing in things.items():
        said = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
        rows += [f"   * - :py:obj:`~{path}`", f"     - {said.rstrip(':')}"]
    return [".. list-table::", "   :widths: 30 70", "", *rows, ""]


def tables(things: dict[str, Any]) -> list[str]:
    """One table; of many names one for each topic, which is a file that says what it holds."""
    if len(things) <= MOST_IN_ONE_TABLE:
        return table(things)
    topics: dict[str, dict[str, Any]] = {}
    for path, thing in things.items():
        topics.setdefault(getattr(thing, "__module__", ""), {})[path] = thing
    lines = []
    for name in sorted(topics):
        said = (inspect.getdoc(importlib.import_module(name)) or "").split("\n\n")[0]
        title = re.sub(r"\s*\(.*", "", " ".join(said.split())).rstrip(".")
        lines += [f".. rubric:: {title}", "", *table(topics[name])]
    return lines


def room_page(room: str, every: list[Entry], files: list[str]) -> str:
    """One room: what it is, a table of all that it hands on, then what is described here."""
    module = importlib.import_module(room)
    inside = [entry for entry in every if room in entry.rooms]
    handed = {
        getattr(module, name).__name__
        for name in rooms()[room]
        if isinstance(getattr(module, name), ModuleType)
    }
    lines = [*heading(room), f".. automodule:: {room}", "   :no-members:", ""]
    if handed:
        links = ", ".join(
            f":doc:`{name} </api/{name}>`"
            for name in sorted(handed)
            if name in files or name in rooms()
        )
        lines += [f"Rooms and files in it: {links}.", ""]
    lines += tables({entry.path: entry.thing for entry in inside if is_called(entry.thing)})
    data = [f":py:data:`~{entry.path}`" for entry in inside if not is_called(entry.thing)]
    lines += [f"Constants and types: {', '.join(data)}.", ""] if data else []
    for entry in inside:
        if entry.page == room:
            lines += directive(entry)
    return "\n".join(lines)


def file_page(module: str) -> str:
    """One public file: what it is, and what it describes."""
    lines = [*heading(module), f".. automodule:: {module}", "   :no-members:", ""]
    every, names = entries(), members(module)
    here = {x.path: x.thing for x in every if getattr(x.thing, "__module__", None) == module}
    file = importlib.import_module(module)
    lines += table(here | {f"{module}.{name}": getattr(file, name) for name in names})
    for name in names:
        thing = getattr(importlib.import_module(module), name)
        lines += directive(Entry(f"{module}.{name}", module, (module,), thing))
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Text of every page by its name, in reStructuredText."""
    every, files = entries(), modules()
    made = {room: room_page(room, every, files) for room in rooms()}
    return made | {name: file_page(name) for name in files}


def write(folder: Path) -> None:
    """Pages that changed, and none that is no more."""
    folder.mkdir(exist_ok=True)
    made = pages()
    for old in folder.glob("jaxbandits*.rst"):
        if old.stem not in made:
            old.unlink()
    for name, text in made.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    import inventories

    source = Path(app.srcdir)
    write(source / "api")
    inventories.write(source / "_build" / "inventories")
    app.connect("autodoc-skip-member", without_noise)
    app.connect("autodoc-process-bases", public_bases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def without_noise(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Fields of named tuples say no more than that they are fields; the signature has them."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def public_bases(app: Any, name: str, thing: Any, options: Any, bases: list[Any]) -> None:
    """The nearest ones that are not private."""
    first = [getattr(base, "__mro__", (base,)) for base in bases]
    shown = [
        next(kind for kind in kinds if not getattr(kind, "__name__", "").startswith("_"))
        for kinds in first
    ]
    bases[:] = list(dict.fromkeys(shown))
