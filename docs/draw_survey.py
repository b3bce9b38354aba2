"""Walk the page start/survey.md: run its commands, renew what it shows of them, draw its pictures.

    python docs/draw_survey.py

A comment `% shows` names the lines of a command's output in the block below it by how they begin
(`Codes+8`: and eight lines more), `% table` the columns of a file, in the number of rows of the
table below it.
Needs Chromium and Pillow.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "start" / "survey.md"
MAKE = DOCS.parent / "examples" / "survey" / "make_survey.py"
PROGRAMS = {"python": [sys.executable], "ssnmf-fast": [sys.executable, "-m", "ssnmf_fast"]}
# A picture: the part of the report, its top and height, in pixels.
PICTURES = {"survey_report": ("", 0, 660), "survey_check": ("check-by-hand", 25, 520)}
STEP = re.compile(
    r"^```console\n(?P<run>.*?)^```$"
    r"|^% shows (?P<lines>[^\n]*)\n\n```text\n.*?^```$"
    r"|^!\[[^\n]*/(?P<picture>\w+)\.png\)$"
    r"|^% table (?P<file>\S+): (?P<columns>[^\n]*)\n\n(?P<rows>(?:\|[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)


def shown(output: str, names: list[str]) -> str:
    """Return the lines of an output that begin with a name, wrapped."""
    lines, found = output.split("\n"), []
    for name in names:
        start, _, more = name.partition("+")
        k = next(k for k, line in enumerate(lines) if line.startswith(start))
        found += [""] if found and not lines[k - 1] else []
        for line in lines[k : k + 1 + int(more or 0)]:
            found += textwrap.wrap(line, 77, subsequent_indent="  ", drop_whitespace=False)
    return "\n".join(line.rstrip() for line in found)


def table(path: Path, columns: list[str], count: int) -> str:
    """Return the first rows of a table; of a column `code=costs`, those with this value."""
    asked = [name.partition("=")[::2] for name in columns]
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[n] == v for n, v in asked if v)]
    names = [name for name, _ in asked]
    lines = [names, ["---"] * len(names), *([row[n] for n in names] for row in rows[:count])]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def draw(folder: Path, name: str) -> None:
    """Draw a part of the report."""
    part, top, height = PICTURES[name]
    page = (folder / "results" / "report.html").read_text("utf-8")
    if part:  # the rest of the page would move it out of the window
        page = page.replace(
            "</head>", f"<style>main > *:not(#{part}) {{display: none}}</style></head>"
        )
    (folder / "page.html").write_text(page, "utf-8")
    browser = shutil.which("chromium") or "google-chrome"
    picture = folder / f"{name}.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--window-size=1280,{top + height + 200}", f"--screenshot={picture}"]
    address = (folder / "page.html").as_uri()
    subprocess.run([browser, *options, address], check=True, capture_output=True)
    image = Image.open(picture).convert("RGB").crop((90, top, 1176, top + height))
    image.quantize(64).save(DOCS / "images" / picture.name, optimize=True)


def main() -> None:
    """Run the commands of the page."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(MAKE, folder)
    output = ""

    def renewed(step: re.Match[str]) -> str:
        nonlocal output
        if step["run"]:
            for line in step["run"].replace("\\\n", " ").splitlines():
                program, *arguments = shlex.split(line)
                command = [*PROGRAMS[program], *arguments]
                environment = {**os.environ, "MPLBACKEND": "Agg"}
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, env=environment
                )
                print(f"$ {line}\n{done.stderr}{done.stdout}")
                if done.returncode:
                    sys.exit(done.returncode)
                output = done.stderr + done.stdout
            return step[0]
        if step["picture"]:
            draw(folder, step["picture"])
            return step[0]
        if step["lines"]:
            text = shown(output, step["lines"].split("; "))
            return f"% shows {step['lines']}\n\n```text\n{text}\n```"
        rows = table(
            folder / step["file"], step["columns"].split(", "), step["rows"].count("\n") - 2
        )
        return f"% table {step['file']}: {step['columns']}\n\n{rows}"

    PAGE.write_text(STEP.sub(renewed, PAGE.read_text("utf-8")), "utf-8")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
