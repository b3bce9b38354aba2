"""Find phrases that read as translated in pages, docstrings and messages: a step of the linters.

Run it as `python docs/check_prose.py`.  Add a pattern only if it has almost no false positives, and
keep the list below 60.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "benchmarks").glob("*.md"))]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "generated")
PAGES += sorted((ROOT / "python").rglob("*.j2"))
SOURCES = sorted((ROOT / "python").rglob("*.py"))
CODE = re.compile(  # blocks, formulas, inline code, statements of templates
    r"^ *```.*?^ *```$|^\$\$.*?\$\$$|``.+?``|`[^`\n]*`|\{%.*?%\}", re.MULTILINE | re.DOTALL
)

# A pattern, without regard to case unless it says (?-i:...), and what to write instead.
INSTEAD = {
    r"\bbesides?\b": "next to, with, compared with, in addition to; also",
    r"\bshall\b": "will, should, must",
    r"\bso (?:many|much|few)\b(?! (?:that|as)\b)": "this many, that number of",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|worse|higher|lower|larger|smaller|"
    r"better|greater|different)": "is not a",
    r"\bha(?:s|ve) not (?:the|a|an|any|all)\b": "lacks, does not have",
    r"\b(?:is|are) of (?:an?|the (?!order)|these|those|dtype|\d+|tensors|matrices|this|one|"
    r"another)\b": "belongs to, has, comes from, is available for",
    r"\btold\b(?! apart)": "given, determined by",
    r"\b(?:no|too much|more) say\b": "is ignored, has no effect, dominates",
    r"\bwhos?o?ever\b": "anyone who, all who",
    r"(?-i:(?:^|[.;:] )Who \w+s\b)": "if you ..., users who ...",
    r"(?-i:(?:^|[.;:|] )Of (?:every|each|several|what|which|one|more|an?)\b)": "usual word order",
    r"\b(?:there(?:in|by|of|to)|whence|thence|whereby|wherein|unawares)\b": "in it, by this",
    r"\bgive[sn]? up\b|\bgave up\b": "stop, drop",
    r"\blet alone\b": "not to mention; two sentences",
    r"\bas many as\b(?! \d)": "the same number as, up to",
    r"\b(?:samples?|class|pixels?|rows?|topics?|words?|labels?|documents?|texts?) of which\b|"
    r"\bof (?:whom|whose)\b|\bto whose\b|\bof which (?:labels|it)\b": "two sentences, whose",
    r"\b(?:stand|stands|stood) (?!for\b|in for\b|out\b|still\b|alone\b)": "is, comes, appears",
    r"\bsa(?:y|ys|id) so\b": "reports this, states it",
    r"\bmend(?:s|ed|ing)?\b": "fix, correct",
    r"\bspeaks? (?:for|against|of)\b": "supports, contradicts, mentions",
    r"\b(?:message|option|page|guide|README|changelog|print|label|word|weight|table|rating|column|"
    r"file|seed|name|rule)s? (?:says?|tells?)\b": "describes, shows, gives, means",
    r"\bwarned of\b": "a warning is issued",
    r"\ban own\b|\bown ones?\b": "its own ..., one of its own",
    r"\bwhat else\b": "the other ...",
    r"\b(?:all|nothing) what\b": "everything that, nothing that",
    r"\b(?:other|same|nearest|named|first|last|new|frequent|next|true|given|stored|observed|"
    r"missing|hidden|free|typical) ones\b": "repeat the noun",
    r"\b(?:once more|anew|afresh)\b": "again",
    r"\bknows? (?:of|nothing|no)\b": "does not use, has no",
    r"\bha(?:s|ve) no use for\b": "does not use",
    r"\b(?:documents?|texts?|labels?|images?|words?|entries|values?|samples?|starts?|terms?|"
    r"seconds?|bytes?|MB|times|lines?) a (?:sample|topic|document|text|row|column|class|slice|"
    r"cell|start|user|item|line|month|label|word|component|block|step|call|worker|thread|process|"
    r"level|fit|task|core)\b": "per, for each",
    r"\b(?:do|does|did) no (?!harm\b)": "does not ... any",
    r"\bwhere (?:it is one|they are ones|there (?:is|are) (?:one|some|any|none))\b": "if any",
    r"[;,] else\b|(?-i:\. Else\b)": "otherwise, or",
    r"\bat the (?:most|least)\b": "at most, at least",
    r"\b(?:is|are|has|have) but\b": "only",
    r"\b(?:till|amongst|whilst|upon|oft|ere|seldom)\b": "until, among, while, on, rarely",
    r"\b(?:but|save) for\b|\bn(?:one|othing) but\b": "except (for), only",
    r", as (?:by|from)\b": "for example with, as returned by",
    r"\bset(?:s|ting)? out\b": "start",
    r"\bgo(?:es)? on (?:with|by|from|to|in)\b": "continue",
    r"\bthe wish (?:to|for|of)\b": "you want",
    r"\bwhat (?:is|was|are|were) (?:said|meant|wanted|asked|told|had)\b": "name the thing",
    r"\bknown of\b": "known about",
    r"\bin th(?:at|is) of\b": "repeat the noun",
    r"\bas ever\b|\bby far too\b|\bwithout end\b": "as usual, far too, forever",
    r"\b(?:to|can) be had\b": "available",
    r"\bfrom \d\S* (?:\w+ )?on\b": "for ... and above, after",
    r"\bin brackets\b": "in parentheses",
    r"\bnext to nothing\b": "almost nothing, negligible",
    r"\bthe same of\b": "the same for",
    r"\bin truth\b|\blearnt\b": "actually, learned",
    r"\bfor want of\b|\bin want of\b": "for lack of, without",
}


class Text(NamedTuple):
    """A page or a string: its file, its first line, and its lines."""

    path: Path
    line: int
    lines: list[str]

    def found(self) -> Iterator[str]:
        """Phrases that run over the end of a line are found, too."""
        lines = [line.strip() for line in self.lines]
        begins = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
        text = " ".join(lines)
        for pattern, instead in PATTERNS:
            for match in pattern.finditer(text):
                line = self.line + bisect.bisect(begins, match.start()) - 1
                yield f"{self.path.relative_to(ROOT)}:{line}: {match[0]!r}: write {instead}"


PATTERNS = [(re.compile(pattern, re.IGNORECASE), better) for pattern, better in INSTEAD.items()]


def without_code(text: str) -> list[str]:
    return CODE.sub(lambda code: re.sub(r"[^\n]", "#", code[0]), text).split("\n")


def strings(path: Path) -> Iterator[Text]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(path, node.lineno, without_code(node.value))


def main() -> int:
    """Print what is found, and what to write instead; return 1 if anything is."""
    texts = [Text(page, 1, without_code(page.read_text("utf-8"))) for page in PAGES]
    texts += [text for path in SOURCES for text in strings(path)]
    if len(INSTEAD) > 60 or len(texts) <= 1000:
        raise SystemExit(f"{len(INSTEAD)} patterns, {len(texts)} texts: expected at most 60, many")
    found = [line for text in texts for line in text.found()]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
