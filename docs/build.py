"""Build the documentation; warnings, links that lead nowhere, and hidden arguments are errors.

    python docs/build.py FOLDER

The gallery runs its examples, which takes a minute.
"""

from __future__ import annotations

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent


class Page(HTMLParser):
    """The anchors of a page, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        self.links |= {value for name in ("href", "src") if (value := given.get(name))}


def broken_links(site: Path) -> list[str]:
    """Return the links between files of a site that lead nowhere, a line each."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    broken = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            wrong = not target.exists()
            if not wrong and parts.fragment and target in pages:
                wrong = unquote(parts.fragment) not in pages[target].anchors
            if wrong:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def hidden_arguments(site: Path) -> list[str]:
    """Return the signatures that do not name their arguments, a line each."""
    found = []
    for path in sorted((site / "api/generated").glob("*.html")):
        for signature in re.findall(r'<dt class="sig .*?</dt>', path.read_text("utf-8"), re.DOTALL):
            words = re.sub(r"<[^>]*>|\s", "", signature)
            if "*args" in words or "**kwargs" in words:
                found.append(f"{path.relative_to(site)}: {words}")
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    from sphinx.cmd.build import main as build

    site = arguments.folder.resolve()
    status = build(["-q", "-W", "--keep-going", "-j", "2", "-b", "html", str(DOCS), str(site)])
    broken = [] if status else broken_links(site)
    found = [f"This link leads nowhere: {line}" for line in broken]
    found += [f"This does not name its arguments: {line}" for line in hidden_arguments(site)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if status or found else 0


if __name__ == "__main__":
    sys.exit(main())
