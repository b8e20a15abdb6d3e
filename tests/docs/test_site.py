"""The site without Sphinx: every public name has its place and words; links lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import operator
import re
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import jaxbandits as jb
from jaxbandits import tools

HERE = Path(__file__).resolve().parents[2]
DOCS = HERE / "docs"
MADE = ("_build", "api", "auto_gallery")


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = extension("api_pages")
ENTRIES = API.entries()
PAGES = API.pages()

# Handed back or on, never made by users: their example is that of what makes them, named here.
HANDED_BACK = {
    "Answer": "answer_of", "ArmStatistics": "core.arm_statistics.empty",
    "Arms": "policies.IndexPolicy", "Broken": "raised by live.Agent",
    "CensoredFeedback": "environments.CensoredArms", "Comparison": "compare", "ComparisonPlan": "comparison.prepare",
    "ContextValue": "environments.ContextualArms.value_of_context", "Counts": "oracles.play_out",
    "ClearPairs": "statistics.clear_pairs", "Curve": "sweep", "Daily": "comparison.read_arms",
    "Domain": "streams.at", "Ends": "oracles.play_out",
    "Estimate": "statistics.mean", "GradientEstimate": "gradients.exact.estimate",
    "Evidence": "comparison.read_arms", "Exact": "oracles.evaluate", "Feedback": "testing.episode",
    "Instance": "comparison.compare", "InputError": "core.bad", "Interrupted": "raised at Ctrl-C",
    "Ledger": "core.post", "Misuse": "raised by live.Agent",
    "Observation": "testing.episode", "Outcome": "core.post", "PairAction": "environments.CensoredArms",
    "Result": "simulate",
    "RevealedSpec": "environments.RevealConsumption", "Role": "core.streams.policy_words",
    "Settled": "raised by live.Agent", "Status": "simulate", "Step": "testing.episode",
    "StorageError": "raised by sweep", "Subject": "testing.check_policy", "SweepResult": "sweep",
    "AsLogged": "replay", "RuleValue": "off_policy",
    "Ticket": "live.Agent", "Total": "core.ticks", "Trajectory": "rollout", "Tuned": "tune",
    "UnfinishedError": "raised by sweep", "View": "testing.episode",
}  # fmt: skip
# Bases to derive from: their example is a page that derives from them, or a class of this package.
DERIVED_FROM = {
    "AddressedArms": "add-an-environment.md",
    "Constraint": "Horizon",
    "Detector": "policies.CUSUM",
    "Environment": "add-an-environment.md",
    "Explore": "policies.Bonus",
    "IndexPolicy": "add-a-policy.md",
    "MixturePolicy": "policies.OnePhase",
    "Policy": "add-a-policy.md",
    "RandomisedPolicy": "policies.SoftElim",
    "Spec": "environments.FiniteSpec",
    "ZoomingPolicy": "policies.BZoom",
}
# Shown in the example of another one, whose docstring calls them.
SHOWN_BY = {
    **dict.fromkeys(("EpsilonFirstLP", "KnapsackOracle", "ThompsonLP", "UCBBwK"), "policies.PrimalDualBwK"),
    "ContextualOracle": "policies.ContextualPacer", "Restarting": "policies.Windowed",
    "evaluate": "oracles.play_out",
}  # fmt: skip


def text_of(thing: Any) -> str:
    """Its docstring and those of its own public methods."""
    parts = [inspect.getdoc(thing) or ""]
    if isinstance(thing, type):
        for name, member in vars(thing).items():
            if not name.startswith("_"):
                parts.append(inspect.getdoc(getattr(thing, name, member)) or "")
    return "\n".join(parts)


def test_every_public_name_is_described_on_exactly_one_page() -> None:
    described = Counter(
        re.findall(
            r"^\.\. (?:auto|py:)(?:class|exception|function|data):: (\S+)",
            "\n".join(PAGES.values()),
            re.M,
        )
    )
    assert {entry.path for entry in ENTRIES} <= set(described)
    assert set(described.values()) == {1}
    names = {(room, name) for room, has in API.rooms().items() for name in has}
    assert len(names) > 250
    for room, name in names:
        thing = getattr(importlib.import_module(room), name)
        if isinstance(thing, ModuleType):
            assert thing.__name__ in PAGES, (room, name)
        else:
            path = next(
                entry.path
                for entry in ENTRIES
                if entry.path.split(".")[-1] == name and room in entry.rooms
            )
            assert re.search(rf"(^   |`)~{re.escape(path)}(`|$)", PAGES[room], re.M), (room, name)


def test_nothing_private_is_described() -> None:
    for page, text in PAGES.items():
        paths = [page, *re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", text, re.M)]
        assert not [path for path in paths if re.search(r"(^|\.)_", path)]


@pytest.mark.parametrize("room", sorted(PAGES))
def test_public_names_say_what_they_are(room: str) -> None:
    assert (importlib.import_module(room).__doc__ or "").strip(), room
    things = [(entry.path, entry.thing) for entry in ENTRIES if entry.page == room]
    if room in API.modules():
        file = importlib.import_module(room)
        things += [(f"{room}.{name}", getattr(file, name)) for name in API.members(room)]
    for path, thing in things:
        if API.is_called(thing):
            docstring = (inspect.getdoc(thing) or "").strip()
            signature = f"{thing.__name__}(" if isinstance(thing, type) else "\0"
            assert docstring and not docstring.startswith(signature), (
                f"{path}: no docstring of its own"
            )
        else:
            assert API.data_doc(next(entry for entry in ENTRIES if entry.path == path)), (
                f"{path}: no text below it"
            )


def test_what_users_make_or_call_has_an_example() -> None:
    without = {
        entry.path.split(".")[-1]
        for entry in ENTRIES
        if API.is_called(entry.thing) and ">>>" not in text_of(entry.thing)
    }
    apps_show_them = {*tools.__all__}
    assert (
        without - HANDED_BACK.keys() - DERIVED_FROM.keys() - SHOWN_BY.keys() - apps_show_them
        == set()
    )
    for name, shown_by in SHOWN_BY.items():
        assert re.search(rf">>> .*\.{name}\b", text_of(operator.attrgetter(shown_by)(jb))), name
    for name, example in DERIVED_FROM.items():
        if example.endswith(".md"):
            assert re.search(
                rf"^\.\.\. class \w+\(jb\.(\w+\.)?{name}\):",
                (DOCS / example).read_text(encoding="utf-8"),
                re.M,
            )
        else:
            derived = operator.attrgetter(example)(jb)
            assert name in {base.__name__ for base in derived.__mro__} and ">>>" in text_of(
                derived
            ), (
                name,
                example,
            )


def anchors(page: Path) -> set[str]:
    """Headings as they are linked to: in small letters, spaces as hyphens, signs left out."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def written_pages() -> list[Path]:
    return [p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in MADE] + [
        HERE / "README.md"
    ]


@pytest.mark.parametrize("page", written_pages(), ids=lambda path: path.name)
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text):
        file, _, place = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not place or place in anchors(target), link


def test_every_page_is_in_the_contents() -> None:
    """A page that no toctree names cannot be found."""
    listed = set()
    for page in (DOCS / "index.md", DOCS / "reference.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in block.split("\n"):
                if line and not line.startswith(":"):
                    listed |= {str(p.relative_to(DOCS)) for p in DOCS.glob(f"{line}.md")}
    pages = {
        str(p.relative_to(DOCS))
        for p in written_pages()
        if DOCS in p.parents and p.parent.name != "gallery"
    }
    assert pages - listed == {"index.md"}


def test_pictures_have_words() -> None:
    for page in written_pages():
        for words in re.findall(r"!\[([^\]]*)\]\(", page.read_text(encoding="utf-8")):
            assert words.strip(), page.name


def test_readme_on_a_package_index() -> None:
    """At most 90 lines; every link is absolute there, and the address before them is written once."""
    hook = pytest.importorskip(
        "hatchling.metadata.plugin.interface"
    ) and importlib.util.spec_from_file_location("hatch_build", HERE / "hatch_build.py")
    assert hook is not None and hook.loader is not None
    module = importlib.util.module_from_spec(hook)
    hook.loader.exec_module(module)
    metadata: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    base = metadata["urls"]["Repository"] + "/"
    module.CustomMetadataHook(str(HERE), {}).update(metadata)
    text = metadata["readme"]["text"]
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10 and all(link.startswith("https://") for link in links)
    assert text.count("](" + base + "docs/images/") >= 1
    source = (HERE / "README.md").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 90 and base not in source


def test_inventories_can_be_read() -> None:
    """In the form that Sphinx reads: names of others are found without a network."""
    import zlib

    module = extension("inventories")
    for project, names in module.NAMES.items():
        head, _, rest = module.inventory(project).partition(b"zlib.\n")
        lines = zlib.decompress(rest).decode().splitlines()
        assert head.startswith(b"# Sphinx inventory version 2\n") and len(lines) == len(names)
        assert all(re.fullmatch(r"\S+ py:\w+ 1 \S+ -", line) for line in lines)
