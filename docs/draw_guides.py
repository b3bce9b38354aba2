"""Draw the pictures of guides: run the code of a page, and keep what it saves and the page shows.

    python docs/draw_guides.py choosing cells

A picture of a page that its code saves under the same name is renewed.  Needs Pillow.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

GUIDES = Path(__file__).resolve().parent / "guide"
IMAGES = GUIDES.parent / "images"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"!\[[^]]*\]\(\.\./images/(\w+\.png)\)")


def draw(name: str) -> list[str]:
    """Run the blocks of a guide in an empty folder, and return the pictures that were renewed."""
    page, here, names = (GUIDES / f"{name}.md").read_text("utf-8"), Path.cwd(), {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for data in Path(os.environ.get("SSNMF_FAST_DATA", "absent")).glob("*"):
            Path(folder, data.name).symlink_to(data)
        try:
            for block in BLOCK.findall(page):
                exec(block, names)
        finally:
            os.chdir(here)
        drawn = [one for one in sorted(set(SHOWN.findall(page))) if Path(folder, one).exists()]
        for one in drawn:
            picture = Image.open(Path(folder, one)).convert("RGB")
            picture.quantize(128).save(IMAGES / one, optimize=True)
    return drawn


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("guides", nargs="+", help="names of pages of docs/guide, without .md")
    sys.path.append(str(GUIDES.parents[1] / "examples" / "downstream" / "src"))
    for name in parser.parse_args().guides:
        print(name, *draw(name))


if __name__ == "__main__":
    main()
