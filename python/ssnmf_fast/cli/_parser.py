"""The arguments of every subcommand."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from .._config import show_config
from .._version import __version__
from ._arguments import (
    DATA,
    DEFAULT,
    add_common,
    add_complete,
    add_debug,
    add_id,
    add_predict,
    add_reading,
    add_safe_csv,
    add_text,
    add_threads,
    run_by,
)
from ._models import MODELS
from ._option_types import (
    fraction,
    frequency,
    image_shape,
    loss,
    natural,
    positive,
    positive_number,
    rounds,
    separator,
    texts,
    weight,
)

# Options of single models: the type of their number, and what it is.
_SPECIAL: dict[str, tuple[Any, str]] = {
    "--free-topics": (natural, "topics in addition to those of the labels (default: 0; {users})"),
    "--labeled-weight": (
        weight("inverse-rate"),
        "weight of a labeled sample beside 1 for others; inverse-rate: samples divided by "
        "labeled ones (default: inverse-rate; {users})",
    ),
    "--svm-c": (
        positive_number,
        "penalty of the support vector machines on margin violations (default: 1; {users})",
    ),
    "--s-shape": (
        positive_number,
        "shape of the prior of topics' weights in samples; below 1 for few topics a sample "
        "(default: 1; {users})",
    ),
    "--rate-shape": (
        positive_number,
        "shape of the prior of the rates that a class gives topics: controls how few topics "
        "a class uses ({users})",
    ),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        line = f"{self.prog.split()[0]}: error: {message}; see {self.prog} --help"
        print(line, file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    parser = _Parser(
        prog="ssnmf-fast",
        description="Semi-supervised nonnegative matrix factorization: topics that know labels.",
    )
    parser.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_fit(commands)
    add_predict(commands)
    add_complete(commands)
    config = commands.add_parser("show-config", help="print versions, compiler, levels, threads")
    add_debug(config)
    config.set_defaults(run=lambda _: show_config())
    return parser


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="fit handwritten digits, compare with LinearSVC, draw pictures and a report"
    )
    parser.add_argument("--out", metavar="DIR", default="ssnmf-fast-demo", help=DEFAULT)
    parser.add_argument("--seed", type=natural, default=0, help=DEFAULT)
    add_threads(parser)
    add_debug(parser)
    run_by(parser, "_fit", "run_demo")


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="fit a text table or a matrix; write model, tables and a report",
        description="Learn topics from DATA, steered by the labels of some samples.\n"
        "With --labels and nothing else, every setting is chosen by validation; the accuracy\n"
        "to expect is printed beside that of LinearSVC.",
        epilog=_models_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument(
        "--labels",
        metavar="LABELS",
        help="column of the table, or a text file with one label per line; empty = unlabeled; in "
        ".jsonl also lists of labels",
    )
    parser.add_argument(
        "--label-separator",
        type=separator,
        metavar="TEXT",
        help=f"separator of several labels of a sample, such as ';' in a;b "
        f"({_users('label_separator')})",
    )
    parser.add_argument(
        "--unlabeled",
        type=texts,
        action="extend",
        metavar="TEXT",
        help="labels that mean that a sample has none, such as NA,unknown; may be repeated",
    )
    parser.add_argument(
        "--image-shape",
        type=image_shape,
        metavar="HxW",
        help="height and width of the images that rows of a matrix are, as 28x28: draws topics",
    )
    parser.add_argument(
        "--rank",
        type=positive,
        help="number of topics; needed without --labels (default: ssnmf chooses 1 or 3 for each "
        "class, ts-nmf takes one for each label)",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    _add_model(parser.add_argument_group("model"))
    add_id(parser)
    add_reading(parser)
    add_text(parser.add_argument_group("text"))
    parser.add_argument(
        "--features", metavar="FILE", help="names of the features of a matrix, one per line"
    )
    parser.add_argument("--terms", type=positive, default=10, help=f"terms a topic; {DEFAULT}")
    add_safe_csv(parser)
    add_common(parser)
    run_by(parser, "_fit")


def _add_model(group: Any) -> None:
    group.add_argument(
        "--model",
        choices=tuple(MODELS),
        metavar="MODEL",
        help="one of the models below (default: ssnmf, or nmf without --labels)",
    )
    group.add_argument(
        "--loss",
        type=loss,
        metavar="LOSS",
        help="loss of the data: frobenius, kullback-leibler, itakura-saito, or the beta of a "
        "beta-divergence, from 0 to 2 (default: kullback-leibler for ssnmf and nmf-alpha, else "
        f"frobenius; {_users('loss')})",
    )
    group.add_argument(
        "--supervision-loss",
        type=loss,
        metavar="LOSS",
        help="loss of the labels, one of the same "
        f"(default: kullback-leibler; {_users('supervision_loss')})",
    )
    group.add_argument(
        "--supervision-weight",
        type=weight("balanced", "auto", infinite=True),
        metavar="NUMBER",
        help="weight of the labels' loss; balanced: both losses count the same at the start; inf: "
        "labeled samples have the topics of their classes only; auto: inf, or balanced if there "
        "are fewer topics than classes, for nmf-alpha a small number (default: auto; "
        f"{_users('supervision_weight')})",
    )
    group.add_argument(
        "--self-training",
        type=rounds,
        metavar="ROUNDS",
        help="rounds in which the most certain predictions become labels of small weight, or auto "
        f"(default: auto; {_users('self_training')})",
    )
    group.add_argument(
        "--readout",
        choices=("auto", "logistic", "refit", "joint"),
        help="how to predict: logistic regression on the topics of a sample and on its features, "
        "the matrix B fitted again without labels, or the B of the factorization "
        f"(default: auto, which is logistic; {_users('readout')})",
    )
    group.add_argument("--max-iter", type=natural, help="most iterations (default: 200)")
    group.add_argument(
        "--tol",
        type=fraction,
        metavar="NUMBER",
        help="stop when the objective falls by less per iteration, relative to its first value "
        "(default: 1e-4; Bayesian models 1e-5)",
    )
    group.add_argument("--seed", type=natural, default=0, help=DEFAULT)
    add_threads(group)
    group.add_argument(
        "--test-size",
        type=fraction,
        help="share of the labeled samples held out for the score, 0 for none (default: 0 where "
        "the fit validates, as ssnmf does, else 0.2)",
    )
    _add_special(group)


def _add_special(group: Any) -> None:
    """Add the options of single models."""
    group.add_argument(
        "--time",
        metavar="COLUMN",
        help="column of the table with the dates (2004-12-26, 20041226, ...), or a text file with "
        f"one date per line ({_users('time')})",
    )
    group.add_argument(
        "--freq",
        type=frequency,
        metavar="LENGTH",
        help="slices of time: day, week, month, quarter, year, or their number "
        f"(default: month; {_users('freq')})",
    )
    group.add_argument(
        "--method",
        choices=("tensor", "nmf"),
        help="how topics are found: from terms and time together, or from the texts alone "
        f"(default: tensor; {_users('method')})",
    )
    group.add_argument(
        "--documents-per-slice",
        type=positive,
        metavar="NUMBER",
        help="texts that are drawn from every slice of time for the tensor "
        f"(default: the median; {_users('documents_per_slice')})",
    )
    for option, (kind, text) in _SPECIAL.items():
        users = _users(option[2:].replace("-", "_"))
        group.add_argument(option, type=kind, metavar="NUMBER", help=text.format(users=users))


def _users(option: str) -> str:
    """Return the models that take an option."""
    return ", ".join(name for name, model in MODELS.items() if option in model.options)


def _models_text() -> str:
    """Return one line for each model."""
    width = max(map(len, MODELS))
    lines = [f"  {name:<{width}}  {model.about}" for name, model in MODELS.items()]
    return "\n".join(["models:", *lines])
