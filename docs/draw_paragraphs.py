"""Print random paragraphs of pages and docstrings, to read them as a stranger would.

    python docs/draw_paragraphs.py [--count 30] [--seed COMMIT]

The seed is the hash of the commit, unless another is given.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHORTEST = 80  # characters; shorter paragraphs are titles and entries of lists
NOT_PROSE = re.compile(r"[#|>:!]|```|-{3}|\[.*\]: |\S+ : |\{")


def texts() -> Iterator[tuple[Path, str]]:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield page, re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for source in sorted((ROOT / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                yield source, ast.get_docstring(node) or ""


def paragraphs() -> list[str]:
    found = []
    for path, text in texts():
        for part in re.split(r"\n\s*\n", text):
            part = part.strip()
            if len(part) >= SHORTEST and not NOT_PROSE.match(part) and ">>>" not in part:
                found.append(f"{path.relative_to(ROOT)}\n{part}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", help="default: the hash of the commit")
    given = parser.parse_args()
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    seed = given.seed or subprocess.check_output(command, text=True).strip()
    print("\n\n".join(random.Random(seed).sample(paragraphs(), given.count)))


if __name__ == "__main__":
    main()
