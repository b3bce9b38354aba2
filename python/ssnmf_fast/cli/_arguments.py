"""Arguments that several subcommands share."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._option_types import (
    delimiter,
    encoding,
    fraction,
    ngram_range,
    positive,
    token_pattern,
)
from ._source import TABLES
from ._text import TOKENS

DEFAULT = "default: %(default)s"
DATA = (
    "table with a text column (.csv, .tsv, .jsonl) or matrix (.npz, .npy, .mtx); .gz too; - for a "
    "table from standard input"
)


def run_by(parser: Any, module: str) -> None:
    """Have `run` of a module run a subcommand; the module is imported only then."""
    parser.set_defaults(run=lambda options: import_module(f".{module}", __package__).run(options))


def add_reading(parser: Any) -> None:
    """Add what says how tables are read."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--format",
        choices=[kind[1:] for kind in TABLES],
        help="kind of table (default: by the ending of DATA; csv for standard input)",
    )
    group.add_argument(
        "--encoding",
        type=encoding,
        default="utf-8",
        metavar="NAME",
        help=f"of DATA and of every other text file that is read; {DEFAULT}",
    )
    group.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="CHARACTER",
        help="between the cells of a line, as ';' or tab (default: comma for .csv, tab for .tsv)",
    )


def add_id(parser: Any) -> None:
    """Add the column that names the samples."""
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        help="column of DATA to write next to every prediction (default: id, if there is one)",
    )


def add_text(group: Any) -> None:
    """Add what turns texts into numbers."""
    group.add_argument("--text", metavar="COLUMN", help="column with the text (default: text)")
    group.add_argument("--max-features", type=positive, default=5000, help=DEFAULT)
    group.add_argument(
        "--min-df", type=positive, default=2, help=f"least number of documents of a term; {DEFAULT}"
    )
    group.add_argument(
        "--max-df", type=fraction, default=0.7, help=f"largest share of documents; {DEFAULT}"
    )
    group.add_argument(
        "--stop-words",
        default="english",
        metavar="LIST",
        help="words to leave out: english, none, a file with one on a line in place of the English "
        f"ones, or english,FILE for both; {DEFAULT}",
    )
    group.add_argument(
        "--ngram",
        type=ngram_range,
        default=(1, 1),
        metavar="LOW,HIGH",
        help="words in a term: 1,2 for single words and pairs; one number, as 2, for pairs alone "
        "(default: 1)",
    )
    group.add_argument(
        "--token-pattern",
        type=token_pattern,
        default=TOKENS,
        metavar="REGEX",
        help="regular expression of a word (default: two or more letters, digits or underscores)",
    )
    group.add_argument(
        "--keep-markup",
        action="store_true",
        help="keep HTML tags, entities such as &quot; and addresses of web pages, instead of "
        "removing tags and addresses, and replacing entities by their characters",
    )


def add_common(parser: Any) -> None:
    """Add what says how much is printed."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json",
        action="store_true",
        help="print a summary as JSON on standard output, and nothing else there",
    )
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
    add_debug(group)


def add_debug(parser: Any) -> None:
    """Add the switch for those who look for a bug."""
    parser.add_argument("--debug", action="store_true", help="show where in the code errors arise")


def add_safe_csv(parser: Any) -> None:
    """Add the switch for tables that are opened in a spreadsheet program."""
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="put an apostrophe before cells of text that begin with = + - or @ (not before "
        "numbers): a spreadsheet program would run them as formulas",
    )


def add_threads(parser: Any) -> None:
    """Add the number of threads."""
    parser.add_argument(
        "--threads", type=positive, help="number of threads (default: all available cores)"
    )
