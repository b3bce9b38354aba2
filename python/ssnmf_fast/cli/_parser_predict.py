"""The arguments of ``ssnmf-fast predict``."""

from __future__ import annotations

from typing import Any

from ._arguments import DATA, add_common, add_id, add_reading, add_safe_csv, add_threads, run_by
from ._predictions import KINDS


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
        help="file for the result (.csv, .tsv, .json, .jsonl), or - for standard output",
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
