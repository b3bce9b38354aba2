"""Characters that stand in a text as HTML writes them."""

from __future__ import annotations

import html
import re

# Without the ampersand, which some collections have lost: " #39;s" and "quot;".  Only those that
# are frequent: "see #12;" is about a number.
_BROKEN = re.compile(
    r"(?<![&\w#])(#(?:3[4689]|60|62|1[456]\d|8[12]\d\d)|quot|apos|amp|nbsp|lt|gt);"
)
_DEPTH = 2  # "&amp;quot;" was escaped twice


def unescaped(text: str) -> str:
    """Return a text with the characters for which HTML entities stand, as & for ``&amp;``."""
    if ";" not in text:
        return text
    for _ in range(_DEPTH):
        text = html.unescape(text)
    return html.unescape(_BROKEN.sub(r"&\1;", text))
