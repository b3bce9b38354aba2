"""The arguments of ``ssnmf-fast``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from .. import FewLabelsClassifier, SSNMFClassifier
from .._config import show_config
from .._version import __version__
from ..completion._methods import METHODS
from . import _values as v
from ._models import MODELS, users_of
from ._outputs import KINDS
from ._ratings import DUPLICATES, ROLES
from ._read import TABLES

Add = Callable[..., None]

_DATA = (
    "table (.csv, .tsv, .jsonl) with a text column, or matrix (.npz, .npy, .mtx), samples by "
    "features; .gz too; - for a table from standard input"
)
_HOLES = (
    "table of ratings (.csv, .tsv, .jsonl), one on a line, empty for one to predict; or matrix "
    "(.npz, .npy, .mtx): missing entries are NaN in a dense one, those not stored in a sparse one; "
    ".gz too; - for a table from standard input"
)
_LOSSES = "frobenius, kullback-leibler, itakura-saito, or the beta of a beta-divergence from 0 to 2"
_TOL = "stop when the objective falls by less per iteration, relative to its first value"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        line = f"{self.prog.split()[0]}: error: {message}; see {self.prog} --help"
        print(line, file=sys.stderr)
        raise SystemExit(2)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        hidden = any(action.default is one for one in (None, False, argparse.SUPPRESS))
        plain = hidden or not action.option_strings
        return action.help if plain else f"{action.help} (default: %(default)s)"


def _run(module: str, name: str = "run") -> Callable[[argparse.Namespace], Any]:
    """Return a function that runs a subcommand; its module is imported only then."""
    return lambda options: getattr(import_module(f".{module}", __package__), name)(options)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    about = "Semi-supervised nonnegative matrix factorization: topics that know labels."
    parser = Parser(prog="ssnmf-fast", description=about)
    parser.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, help: str, synopsis: str = "", **more: Any) -> Any:
        usage = f"ssnmf-fast {name} {synopsis} [option ...]" if synopsis else None
        new = commands.add_parser(name, help=help, usage=usage, formatter_class=_Formatter, **more)
        new.set_defaults(run=run)
        return new

    demo = command(
        "demo",
        _run("_fit", "run_demo"),
        "fit handwritten digits, compare with LinearSVC, draw pictures and a report",
    )
    width = max(map(len, MODELS))
    models = (f"\n  {name:<{width}}  {model.about}" for name, model in MODELS.items())
    fit = command(
        "fit",
        _run("_fit"),
        "fit a text table or a matrix; write model, tables and a report",
        "DATA [--text COLUMN] [--labels LABELS] [--rank COUNT] [--model MODEL] [--out DIR]\n"
        "                     ",
        description="Learn topics from DATA, guided by the labels of some samples.\n"
        "With --labels and nothing else, several classifiers are weighted by cross-validation,\n"
        "and the expected accuracy is printed, with that of LinearSVC; both need three labels a\n"
        "class.\n\n"
        "  ssnmf-fast fit posts.csv --text body --labels topic",
        epilog="models:" + "".join(models),
    )
    _add_fit(fit)
    # Others read data, and fit, as `fit` does.
    defaults = vars(fit.parse_args(["data"]))
    digits = ["digits", "--labels", "digits", "--image-shape", "8x8", "--test-size", "0.5"]
    digits += ["--model", "ssnmf", "--rank", "50", "--supervision-weight", "inf"]
    demo.set_defaults(**vars(fit.parse_args(digits)) | {"run": demo.get_default("run")})
    add = _adder(demo)
    add("--out", v.DIR, "folder for the results", default="ssnmf-fast-demo")
    _add_computing(add)
    add("--debug", v.ON, "show where in the code errors arise")

    predict = command(
        "predict",
        _run("_predict"),
        "predict labels or topics of new data with a fitted model",
        description="Models that were fitted with labels predict labels and their probabilities;\n"
        "the others give the weights of the topics; those of `complete` predict ratings.",
    )
    model = "folder of `fit` or `complete`, or its model.npz"
    predict.add_argument("model", metavar="MODEL", help=model)
    add = _adder(predict, data=f"{_DATA}; of users and items for a model of `complete`")
    out = "file for the result (.csv or .jsonl), or - for standard output"
    add("--out", v.FILE, out, default="-")
    _add_out_format(add)
    add("--explain", v.ON, "add the three terms that support each prediction most")
    add("--text", v.COLUMN, "column with the text, if named otherwise")
    for role in ROLES[:2]:
        by = f"(default: {role}, else the column in its place)"
        add(f"--{role}", v.COLUMN, f"{role}s, for a model of `complete` {by}")
    _add_id(add)
    _add_computing(add, seed=False)
    _add_common(predict)

    verify = command(
        "verify",
        _run("_predict", "run_verify"),
        "check a model against its receipt and the data of its fit",
        description="Compare DATA and the model with those of the fit, and compute the objective "
        "anew,\nand how near to an optimum it is. The exit code is 1 if anything differs.",
    )
    verify.add_argument("model", metavar="MODEL", help="folder of `fit`, or its model.npz")
    add = _adder(verify, data=_DATA)
    _add_text_and_labels(add)
    _add_label_options(add)
    _add_computing(add, seed=False)
    _add_common(verify)

    suggest = command(
        "suggest",
        _run("_fit", "run_suggest"),
        "choose the samples that are worth labeling next, and write a table to fill in",
        "DATA --labels LABELS [--text COLUMN] [-n COUNT] [--out FILE] [--more-labels FILE]\n"
        "                         ",
        description="Fit the default model to the labeled samples of DATA, and write the unlabeled "
        "ones\nthat would teach it most, with an empty column of labels. Fill it in, and fit:\n\n"
        "  ssnmf-fast suggest posts.csv --text body --labels topic --out todo.csv\n"
        "  ssnmf-fast fit posts.csv --text body --labels topic --more-labels todo.csv",
    )
    suggest.set_defaults(**defaults | {"run": suggest.get_default("run")})
    add = _adder(suggest, "used most", data=_DATA)
    _add_text_and_labels(add)
    add("--count -n", v.COUNT, "number of samples to label next", default=20)
    out = "table to fill in (.csv or .jsonl), or - for standard output"
    add("--out", v.FILE, f"{out} (default: the name of DATA with -to-label.csv)")
    add = _adder(suggest, "data and results")
    _add_label_options(add)
    _add_id(add)
    _add_out_format(add)
    _add_computing(add)
    _add_vectorizer(suggest)
    _add_common(suggest)

    ranks = command(
        "choose-rank",
        _run("_ranks"),
        "choose the number of topics by what models predict",
        "DATA [--ranks RANKS] [--criterion CRITERION] [--loss LOSS]\n"
        "                              [--text COLUMN] [--out DIR]",
        description="Fit models with several numbers of topics, and see which is best: unless\n"
        "--criterion is given, how well those of parts of DATA predict the rest. A curve is in\n"
        "report.html.\n\n"
        "  ssnmf-fast choose-rank posts.csv --text body --ranks 2:30:2",
    )
    ranks.set_defaults(**defaults | {"run": ranks.get_default("run")})
    _add_choose_rank(ranks)

    complete = command(
        "complete",
        _run("_complete"),
        "complete a table of ratings or a matrix with missing entries",
        "DATA [--user COLUMN] [--item COLUMN] [--rating COLUMN] [--rank COUNT]\n"
        "                           [--out PATH]",
        description="Find the missing values of DATA by a matrix of low rank.\n\n"
        "  ssnmf-fast complete ratings.csv --user user --item film --rating stars",
    )
    _add_complete(complete)
    config = command(
        "show-config", lambda _: show_config(), "print versions, compiler, levels, threads"
    )
    _adder(config)("--debug", v.ON, "show where in the code errors arise")
    return parser


def _adder(parser: Any, group: str | None = None, *, data: str | None = None) -> Add:
    """Return `add_argument` of a parser or a group of its options: names, value and help."""
    if data is not None:
        parser.add_argument("data", metavar="DATA", help=data)
    target = parser if group is None else parser.add_argument_group(group)

    def add(names: str, kind: v.Kind, help: str, **more: Any) -> None:
        target.add_argument(*names.split(), help=help, **kind, **more)

    return add


def _add_fit(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser, "used most", data=_DATA)
    _add_text_and_labels(add)
    example = '{"space": ["orbit", "nasa"], "sport": {"game": 2, "team": 1}}'
    add("--seeds", v.FILE, f"words of each topic, in .json or .yaml, as {example} (for seeded)")
    rank = "(few-labels: 1 or 3 for each class; ts-nmf and seeded: one for each label or seeds)"
    add("--rank", v.COUNT, f"number of topics, which most models need {rank}")
    default = "(default: few-labels, seeded with --seeds, or nmf without --labels)"
    add("--model", v.word(*MODELS), f"one of the models below {default}")
    add("--out", v.DIR, "folder for the results (default: the name of DATA with -ssnmf-fast)")

    add = _adder(parser, "data and results")
    _add_label_options(add)
    add("--image-shape", v.IMAGE_SHAPE, "height and width of the images in the rows of a matrix")
    _add_id(add)
    add("--features", v.FILE, "names of the features of a matrix, one per line")
    add("--terms", v.COUNT, "number of terms of each topic", default=10)
    _add_safe_csv(add)

    few, ssnmf, add = FewLabelsClassifier(), SSNMFClassifier(), _adder(parser, "model")

    def own(name: str, kind: v.Kind, help: str, default: str) -> None:
        users = users_of(name[2:].replace("-", "_"))
        add(name, kind, f"{help} (default: {default}; for {users})")

    default = f"{ssnmf.loss} for few-labels, ssnmf, seeded and nmf-alpha, else frobenius"
    own("--loss", v.LOSS, f"loss of the data: {_LOSSES}", default)
    labels = "loss of the labels, one of the same"
    own("--supervision-loss", v.LOSS, labels, f"{ssnmf.supervision_loss}")
    own(
        "--supervision-weight",
        v.WEIGHT,
        "weight of the labels' loss; balanced: both losses count the same at the start; inf, for "
        "ssnmf: labeled samples have the topics of their classes only; auto, for nmf-alpha: small",
        f"{ssnmf.supervision_weight} for ssnmf, auto for nmf-alpha",
    )
    rounds = "rounds in which the most certain predictions become labels of small weight"
    own("--self-training", v.integer("auto"), rounds, str(few.self_training))
    own(
        "--readout",
        v.word("logistic", "refit", "joint"),
        "how to predict: logistic regression on the topics of a sample and on its features, the "
        "matrix B fitted again without labels, or the B of the factorization",
        str(ssnmf.readout),
    )
    add("--max-iter", v.integer(), f"most iterations (default: {ssnmf.max_iter})")
    add("--tol", v.FRACTION, f"{_TOL} (default: 1e-4; Bayesian models 1e-5)")
    _add_computing(add)
    dtype = "numbers that the fit works with (default: float32 for text, else that of the matrix)"
    add("--dtype", v.word("float32", "float64"), dtype)
    test_size = "share of the labeled samples held out for the score, 0 for none"
    default = "(default: 0 for few-labels, which validates, else 0.2)"
    add("--test-size", v.FRACTION, f"{test_size} {default}")
    dates = "column with the dates (2004-12-26, 20041226, ...), or a file with one date per line"
    own("--time", v.COLUMN, dates, "none")
    slices = "length of the slices of time, also as '2 weeks' or '6 hours', or how many there are"
    own("--freq", v.SLICES, slices, "month")
    own(
        "--method",
        v.word("tied", "tensor", "sums", "nmf"),
        "how topics are found: with the same shares in all texts of a slice of time, from a "
        "tensor, from the sums of the texts of each slice, or from the texts alone",
        "tied",
    )
    texts = "for how many texts a slice counts at most, or how many are drawn for the tensor"
    own("--documents-per-slice", v.COUNT, texts, "the median")
    own("--free-topics", v.integer(), "topics in addition to those with names", "0")
    inverse = "inverse-rate: samples divided by labeled ones"
    weight = f"weight of a labeled sample, where others have 1; {inverse}"
    own("--labeled-weight", v.LABELED_WEIGHT, weight, "inverse-rate")
    own("--svm-c", v.POSITIVE, "penalty of the support vector machines on margin violations", "1")
    s_shape = "shape of the prior of topics' weights in samples; below 1 for few topics a sample"
    own("--s-shape", v.POSITIVE, s_shape, "1")
    rates = "shape of the prior of the rates of topics by class: below 1 for few topics a class"
    own("--rate-shape", v.POSITIVE, rates, "auto")
    _add_vectorizer(parser)
    _add_common(parser)


def _add_choose_rank(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser, "used most", data=_DATA)
    ranks = "numbers of topics to try, as 5,10,20 or 2:30:2 (from 2 to 30 by twos)"
    add("--ranks", v.RANKS, ranks, default="2:20")
    add(
        "--criterion",
        v.word("held-out", "bound", "stability"),
        "how ranks are compared: by predictions of held-out entries, the bound of a Bayesian "
        "model, or how well many starts agree",
        default="held-out",
    )
    add("--loss", v.LOSS, f"loss of the data: {_LOSSES} (default: frobenius; not for bound)")
    add("--text", v.COLUMN, "column with the text (default: text)")
    add("--out", v.DIR, "folder for the results (default: the name of DATA with -ranks)")
    add = _adder(parser, "choice")
    add(
        "--rule",
        v.word("near-best", "best"),
        "the smallest rank within one standard error of the best (for stability the largest that "
        "is nearly as stable), or the best; not for bound",
        default="near-best",
    )
    splits = "number of times that entries are held out; not for bound, stability"
    add("--splits", v.COUNT, splits, default=5)
    add("--starts", v.COUNT, "starts of every rank in every split (default: 3, for stability 20)")
    fraction = "share of the entries that are held out; not for bound, stability"
    add("--validation-fraction", v.SHARE, fraction, default=0.1)
    add("--only-nonzeros", v.ON, "hold out no zeros: for data whose zeros are unknown values")
    add("--max-iter", v.COUNT, "most iterations of a fit (default: 500, for bound 200)")
    add("--tol", v.FRACTION, f"{_TOL} (default: 1e-6 for frobenius, else 1e-5)")
    _add_computing(_adder(parser, "fits"))
    _add_vectorizer(parser)
    _add_common(parser)


def _add_complete(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser, data=_HOLES)
    add(
        "--out",
        v.PATH,
        "ratings: folder for the results; matrix: file for the completed one (.npy, .npz with "
        "array X, .csv); beyond 2e8 entries an .npz file for its factors (default: the name of "
        "DATA with -ssnmf-fast, or with -completed.npz)",
    )
    add = _adder(parser, "ratings")
    for role in ROLES:
        add(f"--{role}", v.COLUMN, f"default: {role}, or of three columns the one in its place")
    several = "several ratings of an item by one user: an error, or use mean, first or last"
    add("--duplicates", v.word(*DUPLICATES), f"{several} (default: {DUPLICATES[0]})")
    add("--top", v.COUNT, "items recommended to a user (default: 10)")
    _add_safe_csv(add)
    group = parser.add_argument_group("model")
    add = _adder(group.add_mutually_exclusive_group())
    add("--exact", v.ON, "fit data of low rank exactly, but for rounding (default for a matrix)")
    means = "fit means of users and items, or of rows and columns, too (default for ratings)"
    add("--noisy", v.ON, f"choose the shrinkage on held-out entries, and {means}")
    add = _adder(group)
    add("--rank", v.COUNT, "rank of the matrix (default: chosen from the data)")
    add("--method", v.word(*METHODS), "algorithm", default="auto")
    add("--max-iter", v.COUNT, "most iterations (default: by the method)")
    add("--clip", v.ON, "keep predictions, also those of `predict`, in the range of the values")
    _add_computing(add)
    test_size = "share of the entries held out to estimate the error, 0 for none"
    add("--test-size", v.FRACTION, test_size, default=0.1)
    _add_common(parser)


def _add_text_and_labels(add: Add) -> None:
    add("--text", v.COLUMN, "column with the text (default: text)")
    labels = "column with the labels, or a file with one per line; empty = unlabeled; in .jsonl"
    add("--labels", v.LABELS, f"{labels} also lists of labels")


def _add_label_options(add: Add) -> None:
    several = "separator of several labels of a sample, such as ';' in a;b"
    add("--label-separator", v.TEXT, f"{several} (for {users_of('label_separator')})")
    none = "labels that mean that a sample has none, such as NA,unknown; may be repeated"
    add("--unlabeled --unlabelled", v.TEXTS, none)  # codespell:ignore unlabelled
    add("--more-labels", v.FILES, "table of `suggest` whose labels are filled in; may be repeated")


def _add_id(add: Add) -> None:
    add("--id", v.COLUMN, "column of DATA to write next to predictions (default: id, if it exists)")


def _add_safe_csv(add: Add) -> None:
    formulas = "(not before numbers): a spreadsheet program would run them as formulas"
    add("--safe-csv", v.ON, f"put an apostrophe before text that begins with = + - or @ {formulas}")


def _add_out_format(add: Add) -> None:
    add("--out-format", v.word(*KINDS), "format (default: the ending of --out; csv for -)")
    _add_safe_csv(add)


def _add_computing(add: Add, *, seed: bool = True) -> None:
    if seed:
        add("--seed", v.integer(), "seed of the random numbers", default=0)
    add("--threads", v.COUNT, "number of threads (default: all available cores)")


def _add_vectorizer(parser: argparse.ArgumentParser) -> None:
    add = _adder(parser, "text")
    add("--max-features", v.COUNT, "most terms; the most frequent ones are used", default=5000)
    add("--min-df", v.COUNT, "least number of documents of a term", default=2)
    add("--max-df", v.FRACTION, "largest share of documents of a term", default=0.7)
    words = "words to leave out: english, none, a file with one on a line, or english,FILE for both"
    add("--stop-words", v.LIST, words, default="english")
    ngram = "words in a term: 1,2 for single words and pairs; one number, as 2, for pairs alone"
    add("--ngram", v.NGRAM, ngram, default="1")
    pattern = "two or more letters, digits or underscores, with their combining marks"
    add("--token-pattern", v.REGEX, f"regular expression of a word (default: {pattern})")
    markup = "keep HTML tags, entities such as &quot; and addresses of web pages as they are"
    add("--keep-markup", v.ON, markup)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add, kinds = _adder(parser, "reading"), (kind[1:] for kind in TABLES)
    add("--format", v.word(*kinds), "kind of table (default: the ending of DATA; csv for -)")
    encoding = "encoding of DATA and of every other text file that is read"
    add("--encoding", v.ENCODING, encoding, default="utf-8")
    delimiter = "character between cells, as ';' or tab (default: comma for .csv, tab for .tsv)"
    add("--delimiter", v.DELIMITER, delimiter)
    add = _adder(parser, "output")
    add("--json", v.ON, "print a summary as JSON on standard output, and nothing else there")
    add("--quiet", v.ON, "print nothing but errors")
    add("--debug", v.ON, "show where in the code errors arise")
