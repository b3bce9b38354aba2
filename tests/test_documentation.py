"""The documentation holds: Python blocks run, commands parse, examples of docstrings are right.

The blocks of the README, the front page and docs/start run; with ``SSNMF_FAST_PAGES=all``, where
the documentation is built, those of the other pages do too.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import os
import re
import shlex
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from helpers.optional_packages import need_anndata

import ssnmf_fast as sf
from ssnmf_fast.cli import build_parser, main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "generated")
PACKAGE = Path(sf.__file__).parent
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


DATA = re.compile(r'"(\w+\.(?:jsonl\.gz|npz))"')
PATH = re.compile(r"\b(?:python/ssnmf_fast|cpp|cmake|tests)/[\w/.]*\w")


@pytest.mark.parametrize("page", ["contributing", "design"])
def test_the_files_that_a_page_names_exist(page):
    named = set(PATH.findall((DOCS / "developer" / f"{page}.md").read_text(encoding="utf-8")))
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


# Names before the files that have them: "`a` or `b` (`file`)", "`a` of `file`".
OF_FILES = re.compile(
    r"((?:`@?\w+`(?: and| or)?\s+)+)(?:of |in |\()((?:`[\w/]+/[\w.]+`(?:,\s+| and )?)+)"
)


@pytest.mark.parametrize("page", ["contributing", "design"])
def test_the_names_of_a_page_exist(page):
    """Names before a file are words of it; names with an underscore exist in some source."""
    text = (DOCS / "developer" / f"{page}.md").read_text(encoding="utf-8")
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    every = {word for path in sources for word in re.findall(r"\w+", path.read_text("utf-8"))}
    missing = set(re.findall(r"`@?(\w*_\w*)`", text)) - every
    for names, files in OF_FILES.findall(text):
        inside = [ROOT / path for path in re.findall(r"`([^`]+)`", files)]
        found = " ".join(path.read_text("utf-8") for path in inside if path.is_file())
        words = set(re.findall(r"\w+", found)) if found else every
        missing |= set(re.findall(r"`@?(\w+)`", names)) - words
    assert sorted(missing) == []


def test_the_page_of_the_papers_names_what_exists():
    """Functions, classes and parameters of the package, and scripts of the benchmarks."""
    scripts = {path.stem for path in (ROOT / "benchmarks").rglob("*.py")}
    known, modules = set(scripts), ["completion", "linalg", "metrics", "papers", "plotting"]
    for module in [sf, *(importlib.import_module(f"ssnmf_fast.{name}") for name in modules)]:
        for name in module.__all__:
            known.add(name)
            with contextlib.suppress(TypeError, ValueError):
                known.update(inspect.signature(getattr(module, name)).parameters)
    rows = re.findall(
        r"^\| .*$", (DOCS / "evidence" / "papers.md").read_text("utf-8"), re.MULTILINE
    )
    named = {name for row in rows for name in re.findall(r"`(\w+)", row.split(" | ")[1])}
    assert len(named) > 30
    assert sorted(named - known) == []


class Block(NamedTuple):
    """A fenced block: its page, language and text, and the line where the text begins."""

    page: Path
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(page, b[1], b[2], text.count("\n", 0, b.start(2)) + 1) for b in fences]


def stories() -> dict[str, list[Block]]:
    """Return what runs in one namespace: the blocks of a page in docs, each block of the README."""
    told: dict[str, list[Block]] = {}
    for page in [README, *PAGES]:
        name = str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")
        for block in blocks(page):
            if block.language == "python" and page == README:
                name = f"{page.stem}-{block.line}"
            if block.language == "python" or (block.language == "text" and name in told):
                told.setdefault(name, []).append(block)
    return told


STORIES = stories()
EVERY_PAGE = os.environ.get("SSNMF_FAST_PAGES") == "all"
RUN = [name for name in STORIES if EVERY_PAGE or name.startswith(("README", "index", "start/"))]


def assert_shown(printed: str, shown: str) -> None:
    """Words must agree, and numbers to one unit of the last digit shown: other levels round so.

    A small whole number has no such unit to spare: 5 % is the most, .01 for numbers near 0.
    """
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for found, text in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        unit, expected = 10.0 ** Decimal(text).as_tuple().exponent, float(text)
        assert abs(float(found) - expected) <= 1.001 * min(unit, max(0.05 * abs(expected), 0.01)), (
            f"{found} where the page shows {text}"
        )


def import_or_skip(block: Block) -> None:
    """Skip the test if a block imports a package that is not among the tests', and is absent."""
    for name in ("tensorly", "pyttb", "xarray", "ssnmf", "tsnmf"):
        if re.search(rf"^(from|import) {name}\b", block.text, re.MULTILINE):
            pytest.importorskip(name, reason=f"from line {block.line} on: needs {name}")


def absent_data(block: Block, folder: Path) -> bool:
    """Link the data that a block reads from $SSNMF_FAST_DATA to a folder; whether any is absent.

    What the page itself saves, in this block or before, is no such data.
    """
    saved = {
        name for line in block.text.splitlines() if "save" in line for name in DATA.findall(line)
    }
    read = {name for name in DATA.findall(block.text) if not (folder / name).exists()} - saved
    data = Path(os.environ.get("SSNMF_FAST_DATA", ".")).resolve()
    present = [name for name in read if (data / name).exists()]
    for name in present:
        (folder / name).symlink_to(data / name)
    return len(present) < len(read)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_python_blocks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blocks run in their order; one of text shows what the block above it prints."""
    if any("import anndata\n" in block.text for block in STORIES[name]):
        need_anndata()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(ROOT / "examples" / "downstream" / "src")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in STORIES[name]:
        import_or_skip(block)
        if absent_data(block, tmp_path):
            pytest.skip(f"from line {block.line} on: data are not in SSNMF_FAST_DATA")
        if block.language == "text":
            assert_shown(printed, block.text)
            continue
        # The empty lines make a traceback name the line of the page.
        code = "\n" * (block.line - 1) + block.text
        exec(compile(code, str(block.page), "exec"), namespace)
        printed = capsys.readouterr().out


def test_shown_output_is_compared() -> None:
    assert_shown("error 0.5012 of 3 fits\n", "error 0.50 of 3 fits")
    for wrong in (
        "error 0.60 of 3 fits",
        "error 0.52 of 3 fits",
        "error 0.50 of 4 fits",
        "loss 0.50 of 3 fits",
        "0.50",
    ):
        with pytest.raises(AssertionError):
            assert_shown("error 0.5012 of 3 fits\n", wrong)
    with pytest.raises(AssertionError):
        assert_shown("4e-05", "8e-05")


def test_code_has_79_columns() -> None:
    """Where no browser measures it, columns tell whether code fits on its page."""
    gallery = sorted((ROOT / "examples" / "gallery").glob("*/*.py"))
    lines = [
        (b.page, line) for p in [README, *PAGES] for b in blocks(p) for line in b.text.split("\n")
    ]
    lines += [(page, line) for page in gallery for line in page.read_text("utf-8").split("\n")]
    for page in PACKAGE.rglob("*.py"):
        code = re.findall(r"^ *((?:>>>|\.\.\.) .*)$", page.read_text("utf-8"), re.MULTILINE)
        lines += [(page, line) for line in code]
    assert [f"{page.name}: {line}" for page, line in lines if len(line) > 79] == []


def test_no_text_of_a_page_is_a_comment() -> None:
    """Markdown of the site leaves a line out that begins with %."""
    lines = [(page, line) for page in PAGES for line in page.read_text("utf-8").splitlines()]
    comment = re.compile(r"\s*%(?! (?:table|shows) )")
    assert [f"{page.name}: {line}" for page, line in lines if comment.match(line)] == []


def test_readme_and_front_page_agree() -> None:
    """The first sentence, and the numbers."""

    def promised(page: Path) -> list[str]:
        text = re.sub(r"\]\(.*?\)", "]", page.read_text(encoding="utf-8"))
        first = re.search(r"Fast \*\*.*?missing\.", text, re.DOTALL)
        numbers = re.findall(r"^- \*\*\[\d.*?(?=^- |\n\n)", text, re.MULTILINE | re.DOTALL)
        return [" ".join(part.split()) for part in [first[0] if first else "", *numbers]]

    assert promised(README) == promised(DOCS / "index.md")
    assert len(promised(README)) == 7


def test_readme_links_lead_to_files() -> None:
    """They are absolute, for the page of the package on PyPI."""
    targets = re.findall(r"\]\(([^)]*)\)", README.read_text(encoding="utf-8"))
    places = r"https://(?:github|raw\.githubusercontent)\.com/ssnmf-fast/ssnmf-fast/(?:blob/)?main/"
    paths = [re.sub(places, "", target).partition("#")[0] for target in targets]
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    assert all(re.match(places, target) for target in targets)


def command_lines() -> list[str]:
    """Return every `ssnmf-fast` command in the fenced blocks of shell commands."""
    shell = [b for p in [README, *PAGES] for b in blocks(p) if b.language in ("bash", "console")]
    lines = [line for block in shell for line in block.text.replace("\\\n", " ").splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part.startswith("ssnmf-fast ")]


@pytest.mark.parametrize("line", command_lines())
def test_command_parses(line: str) -> None:
    arguments = build_parser().parse_args(shlex.split(line, comments=True)[1:])
    assert callable(arguments.run)


@pytest.mark.parametrize("page", [README, DOCS / "guide" / "command.md"], ids=lambda p: p.stem)
def test_options_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options in the running text, and in synopses, are some command's."""
    known: set[str] = set()
    for command in ("demo", "fit", "suggest", "predict", "choose-rank", "complete", "recommend"):
        assert main([command, "--help"]) == 0
        known |= set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    text = page.read_text(encoding="utf-8")
    synopses = "\n".join(re.findall(r"^ {4}ssnmf-fast .*$", text, re.MULTILINE))
    named = set(re.findall(r"`(--[a-z][a-z-]*)", text))
    named |= set(re.findall(r"--[a-z][a-z-]*", synopses))
    assert named
    assert named <= known


def test_scripts_exist() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in [README, *PAGES])
    scripts = set(re.findall(r"python ((?:benchmarks|examples)/\S+?\.py)", text))
    assert scripts
    assert [script for script in sorted(scripts) if not (ROOT / script).is_file()] == []
    benchmarks = {path.stem for path in (ROOT / "benchmarks").rglob("*.py")}
    named = set(re.findall(r"benchmarks/run\.py (\w+)", text))
    assert named <= benchmarks
    smoke = (ROOT / "benchmarks" / "smoke.py").read_text(encoding="utf-8")
    assert named <= {"cluster", *re.findall(r'^    "(\w+)": "', smoke, re.MULTILINE)}


def modules_with_examples() -> list[str]:
    paths = [p for p in PACKAGE.rglob("*.py") if ">>> " in p.read_text(encoding="utf-8")]
    parts = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in sorted(paths)]
    return [".".join(names) for names in parts]


def rooms() -> list[str]:
    return sorted({".".join(name.split(".")[:2]) for name in modules_with_examples()})


@pytest.mark.slow
@pytest.mark.parametrize("room", rooms())
def test_docstring_examples(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if room.endswith(".dask"):
        pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    if room.endswith(".anndata"):
        need_anndata()
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for name in modules_with_examples():
        if f"{name}.".startswith(f"{room}."):
            result = doctest.testmod(importlib.import_module(name), optionflags=flags)
            assert result.attempted, name
            assert not result.failed, name


@pytest.mark.parametrize(
    "module",
    [sf, sf.io, sf.metrics, sf.metrics.ranking, sf.papers, sf.plotting, sf.trees, sf.weights],
    ids=lambda m: m.__name__,
)
def test_functions_and_estimators_have_examples(module: ModuleType) -> None:
    public = {name: getattr(module, name) for name in module.__all__}
    shown = {
        name: thing
        for name, thing in public.items()
        if callable(thing) and (hasattr(thing, "fit") or not isinstance(thing, type))
    }
    assert shown
    assert [name for name, thing in shown.items() if ">>> " not in (thing.__doc__ or "")] == []
