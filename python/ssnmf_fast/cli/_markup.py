"""Texts without HTML: entities read as characters, tags and addresses of pages taken out.

The parser of the standard library is no help here: of text that is no HTML, such as quoted mail
with lines that begin with "<", it swallows paragraphs, and needs minutes for a long text of "<a ".
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

KEEP, STRIP = "keep", "strip"

# Without the ampersand, which some collections have lost: " #39;s" and "quot;".  Only those that
# are frequent: "see #12;" is about a number.
_BROKEN_ENTITY = re.compile(
    r"(?<![&\w#])(#(?:3[4689]|60|62|1[456]\d|8[12]\d\d)|quot|apos|amp|nbsp|lt|gt);"
)
_ENTITY_DEPTH = 2  # "&amp;quot;" was escaped twice

_ADDRESS = re.compile(
    r"""\b(?:(?:https?|ftp)://|www\.)[^\s<>"']*[^\s<>"'.,:;!?)\]]""", re.IGNORECASE
)
# Only what HTML knows: <stdio.h>, <Key> and <name@host> are part of a text.
_ELEMENTS = (
    "a|abbr|acronym|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button|"
    "canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|"
    "dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|"
    "noframes|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby|"
    "s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|"
    "tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
# No part reaches beyond the next of its kind, so that the time is linear in the length.
_TAG = re.compile(
    r"<!--(?:(?!<!--).)*?-->"
    r"|<(?P<hidden>script|style)\b[^<>]*>(?:(?!<(?P=hidden)\b).)*?</(?P=hidden)\s*>"
    r"|<[!?][a-z][^<>]*>"
    rf"|</?(?:{_ELEMENTS})(?:\s[^<>]*|/)?>",
    re.IGNORECASE | re.DOTALL,
)


def cleaned(texts: Sequence[str], how: str) -> list[str]:
    """Return texts as they are (KEEP), or without any markup (STRIP)."""
    return list(texts) if how == KEEP else [_stripped(text) for text in texts]


def _unescaped(text: str) -> str:
    """Return a text with the characters for which HTML entities stand, as & for ``&amp;``."""
    if ";" not in text:
        return text
    for _ in range(_ENTITY_DEPTH):
        text = html.unescape(text)
    return html.unescape(_BROKEN_ENTITY.sub(r"&\1;", text))


def _stripped(text: str) -> str:
    """Return a text without entities, tags and addresses; each of the last leaves a space."""
    text = _unescaped(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    # Most texts have none, which this tells ten times as fast.
    return _ADDRESS.sub(" ", text) if "://" in text or "www." in text.lower() else text
