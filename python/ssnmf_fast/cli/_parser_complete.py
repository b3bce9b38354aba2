"""The arguments of ``ssnmf-fast complete``."""

from __future__ import annotations

from typing import Any

from ..completion._options import METHODS
from ._arguments import DEFAULT, add_common, add_reading, add_safe_csv, add_threads, run_by
from ._option_types import fraction, natural, positive
from ._ratings import DUPLICATES

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
