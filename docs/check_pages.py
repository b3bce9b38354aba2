"""Find what does not fit on the pages of a built site: code, tables, formulas, text, pictures.

    python docs/check_pages.py FOLDER

Measures every page in headless Chromium, 1280 and 390 pixels wide.  Without a browser, or without
`playwright`, it counts the columns of code instead, and says so.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import sys
from pathlib import Path

COLUMNS = 79
# What is wrong on the page as it is now, a line each.  A phone may scroll code, tables and
# formulas.  Numbers do not break, and names only where a part of them ends.
MEASURE = """
wide => {
  const found = [], article = document.querySelector("article");
  const told = e => e.tagName.toLowerCase() + " '" + e.textContent.trim().slice(0, 60) + "'";
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  if (!article) return found;
  if (wide && article.clientWidth < 760) found.push(`article of ${article.clientWidth} pixels`);
  const scrolls = [...article.querySelectorAll("pre, .pst-scrollable-table-container, div.math")];
  const within = new Set(scrolls.flatMap(e => [...e.querySelectorAll("*")]));
  const whole = [...document.querySelectorAll(".prev-next-area a"), ...(wide ? scrolls : [])];
  for (const e of whole)
    if (e.scrollWidth > e.clientWidth + 1) found.push("cut: " + told(e));
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  for (let i = 1; i < 5; i++) {
    const [above, below] = [i, i + 1].map(level => article.querySelector("h" + level));
    if (above && below && size(below) >= size(above))
      found.push("heading not smaller than the one above it: " + told(below));
  }
  for (const e of article.querySelectorAll(".citation, .footnote")) {
    const [number, text] = [...e.children].map(child => child.getBoundingClientRect());
    if (text && text.left < number.right - 1) found.push("printed over its number: " + told(e));
  }
  for (const e of wide ? document.querySelectorAll(".bd-sidebar-secondary a") : [])
    if (e.getBoundingClientRect().right > innerWidth) found.push("cut contents: " + told(e));
  const right = article.getBoundingClientRect().right + 1;
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT), range = new Range();
  for (let text; (text = walk.nextNode());) {
    const e = text.parentElement;
    const words = e.closest("h1, h2, h3, dt, code") ? /[A-Za-z]+/g : /[\\d.,]*\\d(e-?\\d+| ?%)?/g;
    for (const word of e.closest("pre, .math") ? [] : text.data.matchAll(words)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const parts = [...range.getClientRects()], width = parts.reduce((sum, p) => sum + p.width, 0);
      if (parts.some(p => p.top > parts[0].bottom) && width < article.clientWidth * 0.7)
        found.push(`broken: ${word[0]} in ` + told(e));
    }
    if (!text.data.trim() || within.has(e) || scrolls.includes(e)) continue;
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect(), seen = e.offsetParent && box.width > 2;
    if (seen && box.right > right) found.push("leaves the article: " + told(e));
  }
  for (const e of article.querySelectorAll("img, span.math svg"))
    if (e.getBoundingClientRect().right > right && !within.has(e))
      found.push("leaves the article: " + (e.src || told(e.closest(".math").parentElement)));
  for (const e of article.querySelectorAll(".math"))
    if (!e.querySelector("mjx-container") || e.querySelector("[data-mml-node=merror]"))
      found.push("formula not set: " + told(e));
  return found;
}
"""


def empty_pictures(site: Path) -> list[str]:
    """Return the pictures of whose tiles, 40 by 40, nine tenths have the color of the corner."""
    import numpy as np
    from matplotlib.image import imread

    found = []
    for path in sorted((site / "_images").glob("*.png")):
        picture = np.atleast_3d(imread(path))
        drawn = (abs(picture - picture[0, 0]) > 0.05).any(2)
        h, w = (side // 40 for side in drawn.shape)
        tiles = drawn[: 40 * h, : 40 * w].reshape(40, h, 40, w).any((1, 3))
        if tiles.mean() <= 0.1:
            found.append(f"{path.name}: {1 - tiles.mean():.0%} of the picture is empty")
    return found


def measured(site: Path, pages: list[Path], browser: str) -> list[str]:
    """Return what does not fit on pages in a browser, a line each."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.route("http*://**", lambda route: route.abort())
        for path in pages:
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(path.as_uri())
            if page.query_selector("article .math"):
                page.evaluate("() => MathJax.startup.promise.then(() => 0)")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                lines = page.evaluate(MEASURE, width == 1280)
                found += [f"{path.relative_to(site)} at {width}: {line}" for line in lines]
        chromium.close()
    return found


def counted(site: Path, pages: list[Path]) -> list[str]:
    """Return the lines of code that have too many columns."""
    found = []
    for path in pages:
        for code in re.findall(r"<pre>(.*?)</pre>", path.read_text("utf-8"), re.DOTALL):
            for line in html.unescape(re.sub(r"<[^>]*>", "", code)).splitlines():
                if len(line) > COLUMNS:
                    found.append(f"{path.relative_to(site)}: {len(line)} columns: {line}")
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    site = parser.parse_args().folder.resolve()
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    found = counted(site, pages) + empty_pictures(site)
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    try:
        import playwright  # noqa: F401
    except ImportError:
        browser = None
    if browser:
        found += measured(site, pages, browser)
    else:
        print("No browser, or no playwright: only the columns of code are counted.")
    for path in pages:
        if "&lt;matplotlib." in path.read_text("utf-8"):
            found.append(f"{path.relative_to(site)}: shows the name of an object of Matplotlib")
    print("\n".join([*found, f"{len(pages)} pages, {len(found)} things that do not fit"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
