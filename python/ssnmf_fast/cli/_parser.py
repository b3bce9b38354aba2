"""The arguments of every subcommand."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from .._version import __version__
from ..completion._methods import METHODS
from ._models import DIVERGENCE, FROBENIUS, MODELS
from ._option_types import fraction, natural, positive, positive_number, separator, weight

_LOSSES = (FROBENIUS, DIVERGENCE)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        line = f"{self.prog.split()[0]}: error: {message}; see {self.prog} --help"
        print(line, file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    parser = _Parser(
        prog="ssnmf-fast",
        description="Semi-supervised nonnegative matrix factorisation: topics that know labels.",
    )
    parser.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_complete(commands)
    config = commands.add_parser("show-config", help="print versions, compiler, levels, threads")
    config.set_defaults(run=_show_config)
    return parser


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="fit real data, compare with LinearSVC, draw pictures and a report"
    )
    parser.add_argument(
        "--data",
        choices=("digits", "20newsgroups"),
        default="digits",
        help="digits come with scikit-learn; 20newsgroups is read from the folder "
        "$SSNMF_FAST_DATA (default ../shared/data), else downloaded (default: digits)",
    )
    parser.add_argument("--out", metavar="DIR", default="ssnmf-fast-demo", help=_DEFAULT)
    parser.add_argument("--seed", type=natural, default=0, help=_DEFAULT)
    _add_threads(parser)
    parser.set_defaults(run=_demo)


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="fit a text table or a matrix; write model, tables and a report",
        description="Learn topics from DATA, steered by the labels of some samples.",
        epilog=_models_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument(
        "--labels",
        metavar="LABELS",
        help="column of the table, or a text file with one label per line; empty = unlabelled; in "
        ".jsonl also lists of labels",
    )
    parser.add_argument(
        "--label-separator",
        type=separator,
        metavar="TEXT",
        help=f"what stands between the labels of a sample that has several, as ';' in a;b "
        f"({_users('label_separator')})",
    )
    parser.add_argument(
        "--rank", type=positive, help="number of topics (ts-nmf: one for each label unless given)"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    _add_model(parser.add_argument_group("model"))
    _add_text(parser.add_argument_group("text"))
    parser.add_argument(
        "--features", metavar="FILE", help="names of the features of a matrix, one per line"
    )
    parser.add_argument("--terms", type=positive, default=10, help=f"terms a topic; {_DEFAULT}")
    parser.set_defaults(run=_fit)


def _add_model(group: Any) -> None:
    group.add_argument(
        "--model",
        choices=tuple(MODELS),
        metavar="MODEL",
        help="one of the models below (default: dd, or nmf without --labels)",
    )
    group.add_argument("--reconstruction", choices=_LOSSES, help="loss of the data, over --model")
    group.add_argument("--supervision", choices=_LOSSES, help="loss of the labels, over --model")
    group.add_argument(
        "--supervision-weight",
        type=weight("balanced"),
        metavar="NUMBER",
        help="weight of the labels' loss; balanced: both losses count the same at the start "
        f"(default: balanced, for nmf-alpha less; {_users('supervision_weight')})",
    )
    group.add_argument("--max-iter", type=natural, help="default: 100; Bayesian models 200")
    group.add_argument(
        "--tol",
        type=fraction,
        metavar="NUMBER",
        help="stop when the objective falls by less per iteration, relative to its first value "
        "(default: 1e-4; Bayesian models 1e-5)",
    )
    group.add_argument("--seed", type=natural, default=0, help=_DEFAULT)
    _add_threads(group)
    group.add_argument(
        "--test-size",
        type=fraction,
        help="share of the labelled samples held out for the score, 0 for none (default: 0.2)",
    )
    _add_special(group)


def _add_special(group: Any) -> None:
    """Add the options of single models."""
    group.add_argument(
        "--free-topics",
        type=natural,
        metavar="NUMBER",
        help=f"topics beyond those that labels name (default: 0; {_users('free_topics')})",
    )
    group.add_argument(
        "--labelled-weight",
        type=weight("inverse-rate"),
        metavar="NUMBER",
        help="weight of a labelled sample beside 1 for others; inverse-rate: samples divided by "
        f"labelled ones (default: inverse-rate; {_users('labelled_weight')})",
    )
    group.add_argument(
        "--svm-c",
        type=positive_number,
        metavar="NUMBER",
        help="penalty of the support vector machines on margin violations (default: 1; "
        f"{_users('svm_c')})",
    )
    group.add_argument(
        "--a-s",
        type=positive_number,
        metavar="NUMBER",
        help="shape of the prior of topics' weights in samples; below 1 for few topics a sample "
        f"(default: 1; {_users('a_s')})",
    )
    group.add_argument(
        "--a-lambda",
        type=positive_number,
        metavar="NUMBER",
        help="shape of the prior of the rates that a class gives topics: steers how few topics "
        f"a class uses ({_users('a_lambda')})",
    )


def _users(option: str) -> str:
    """Return the models that take an option."""
    return ", ".join(name for name, model in MODELS.items() if option in model.options)


def _models_text() -> str:
    """Return one line for each model."""
    width = max(map(len, MODELS))
    lines = [f"  {name:<{width}}  {model.about}" for name, model in MODELS.items()]
    return "\n".join(["models:", *lines])


def _add_text(group: Any) -> None:
    group.add_argument("--text", metavar="COLUMN", help="column with the text (default: text)")
    group.add_argument("--max-features", type=positive, default=5000, help=_DEFAULT)
    group.add_argument(
        "--min-df", type=positive, default=2, help=f"documents that a term must be in; {_DEFAULT}"
    )
    group.add_argument(
        "--max-df", type=fraction, default=0.7, help=f"largest share of documents; {_DEFAULT}"
    )
    group.add_argument(
        "--stop-words", default="english", help=f"english, none, or a file of words; {_DEFAULT}"
    )


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict labels or topics of new data with a fitted model",
        description="Classifiers predict labels; the other models give the weights of the topics.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder of `fit`, or its model.npz")
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument("--out", metavar="FILE", required=True, help=".csv file for the result")
    parser.add_argument("--text", metavar="COLUMN", help="column with the text, if named otherwise")
    _add_threads(parser)
    parser.set_defaults(run=_predict)


def _add_complete(commands: Any) -> None:
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
            f"--{name}", metavar="COLUMN", help=f"default: {name}, else the column in its place"
        )
    group.add_argument("--top", type=positive, help="items recommended to a user (default: 10)")
    _add_completion(parser.add_argument_group("model"))
    parser.set_defaults(run=_complete)


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
        help="shrink the model as far as held-out entries ask for; for ratings along with means "
        "of users and items (default for ratings)",
    )
    group.add_argument("--rank", type=positive, help="default: chosen from the data")
    group.add_argument("--method", choices=METHODS, default="auto", help=_DEFAULT)
    group.add_argument("--max-iter", type=positive, help="default: by the method")
    group.add_argument("--seed", type=natural, default=0, help=_DEFAULT)
    _add_threads(group)
    group.add_argument(
        "--test-size",
        type=fraction,
        default=0.1,
        help=f"share of the entries held out to tell the error, 0 for none; {_DEFAULT}",
    )


def _add_threads(parser: Any) -> None:
    parser.add_argument(
        "--threads", type=positive, help="number of threads (default: what the machine grants)"
    )


_DEFAULT = "default: %(default)s"
_HOLES = (
    "table of ratings (.csv, .tsv, .jsonl), one on a line; or matrix (.npz, .npy, .mtx): NaN is "
    "missing in a dense one, what is not stored in a sparse one; .gz too"
)
_DATA = "table with a text column (.csv, .tsv, .jsonl) or matrix (.npz, .npy, .mtx); .gz too"


def _demo(arguments: argparse.Namespace) -> None:
    from ._demo import run

    run(arguments)


def _fit(arguments: argparse.Namespace) -> None:
    from ._fit import run

    run(arguments)


def _predict(arguments: argparse.Namespace) -> None:
    from ._predict import run

    run(arguments)


def _complete(arguments: argparse.Namespace) -> None:
    from ._complete import run

    run(arguments)


def _show_config(arguments: argparse.Namespace) -> None:
    from .._config import show_config

    show_config()
