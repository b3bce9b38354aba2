"""Arguments that several subcommands share."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..completion._methods import METHODS
from ._option_types import (
    delimiter,
    encoding,
    fraction,
    natural,
    ngram_range,
    positive,
    token_pattern,
)
from ._predictions import KINDS
from ._ratings import DUPLICATES
from ._source import TABLES
from ._text import TOKENS

DEFAULT = "default: %(default)s"
DATA = (
    "table with a text column (.csv, .tsv, .jsonl) or matrix (.npz, .npy, .mtx); .gz too; - for a "
    "table from standard input"
)


def run_by(parser: Any, module: str, name: str = "run") -> None:
    """Have a function of a module run a subcommand; the module is imported only then."""

    def run(options: Any) -> Any:
        return getattr(import_module(f".{module}", __package__), name)(options)

    parser.set_defaults(run=run)


def add_reading(parser: Any) -> None:
    """Add the options of reading tables."""
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
    """Add the options of printing."""
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


def add_predict(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "predict",
        help="predict labels or topics of new data with a fitted model",
        description="Models that were fitted with labels predict labels and their probabilities; "
        "the others give the weights of the topics; those of `complete` predict ratings.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="folder of `fit` or `complete`, or its model.npz"
    )
    parser.add_argument(
        "data", metavar="DATA", help=f"{DATA}; of users and items for a model of `complete`"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        help="file for the result (.csv or .jsonl), or - for standard output",
    )
    parser.add_argument(
        "--out-format",
        choices=KINDS,
        help="format, if not that of the ending of --out (default for -: csv)",
    )
    add_safe_csv(parser)
    parser.add_argument("--text", metavar="COLUMN", help="column with the text, if named otherwise")
    for name in ("user", "item"):
        parser.add_argument(
            f"--{name}",
            metavar="COLUMN",
            help=f"{name}s, for a model of `complete` (default: {name}, else the column in its "
            "place)",
        )
    add_id(parser)
    add_threads(parser)
    add_reading(parser)
    add_common(parser)
    run_by(parser, "_predict")


_HOLES = (
    "table of ratings (.csv, .tsv, .jsonl), one on a line, empty for one to predict; or matrix "
    "(.npz, .npy, .mtx): NaN is missing in a dense one, what is not stored in a sparse one; .gz "
    "too; - for a table from standard input"
)


def add_complete(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "complete",
        help="complete a table of ratings or a matrix with missing entries",
        description="Find the missing values of DATA by a matrix of low rank.",
    )
    parser.add_argument("data", metavar="DATA", help=_HOLES)
    parser.add_argument(
        "--out",
        metavar="PATH",
        required=True,
        help="ratings: folder for the results; matrix: file for the completed one (.npy, .npz with "
        "array X, .csv); beyond 2e8 entries an .npz file for its factors",
    )
    group = parser.add_argument_group("ratings")
    for name in ("user", "item", "rating"):
        group.add_argument(
            f"--{name}",
            metavar="COLUMN",
            help=f"default: {name}, or of three columns the one in its place",
        )
    group.add_argument(
        "--duplicates",
        choices=DUPLICATES,
        help="several ratings of an item by one user: an error, or use their mean, the first or "
        "the last (default: error)",
    )
    group.add_argument("--top", type=positive, help="items recommended to a user (default: 10)")
    add_safe_csv(group)
    _add_completion(parser.add_argument_group("model"))
    add_reading(parser)
    add_common(parser)
    run_by(parser, "_complete")


def _add_completion(group: Any) -> None:
    exactness = group.add_mutually_exclusive_group()
    exactness.add_argument(
        "--exact",
        action="store_true",
        help="the data are of low rank but for rounding: fit them exactly (default for a matrix)",
    )
    exactness.add_argument(
        "--noisy",
        action="store_true",
        help="choose the shrinkage on held-out entries; for ratings, fit means of users and items "
        "too (default for ratings)",
    )
    group.add_argument("--rank", type=positive, help="default: chosen from the data")
    group.add_argument("--method", choices=METHODS, default="auto", help=DEFAULT)
    group.add_argument("--max-iter", type=positive, help="default: by the method")
    group.add_argument(
        "--clip",
        action="store_true",
        help="keep predictions within the range of the values of DATA, also those of `predict`",
    )
    group.add_argument("--seed", type=natural, default=0, help=DEFAULT)
    add_threads(group)
    group.add_argument(
        "--test-size",
        type=fraction,
        default=0.1,
        help=f"share of the entries held out to estimate the error, 0 for none; {DEFAULT}",
    )
