"""The arguments of ``ssnmf-fast choose-rank``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from .._config import show_config
from .._data.times import FREQUENCIES
from .._version import __version__
from ..completion._methods import METHODS
from ._models import MODELS
from ._options import Parser, add, runner
from ._predictions import KINDS
from ._ratings import DUPLICATES, ROLES
from ._read import TABLES

CRITERIA = ("held-out", "bound", "stability")
_FIRST = {
    "--ranks RANKS=2:20": "numbers of topics to try, as 5,10,20 or 2:30:2 (from 2 to 30 by twos)",
    f"--criterion {'|'.join(CRITERIA)}=held-out": "how ranks are compared: predictions of held-out "
    "entries, the bound of a Bayesian model, or how well many starts agree",
    "--loss LOSS": "loss of the data: frobenius, kullback-leibler, itakura-saito, or the beta of a "
    "beta-divergence, from 0 to 2 (default: frobenius; not for bound)",
    "--out DIR": "folder for the results (default: the name of DATA with -ranks)",
}
_HOW = {
    "--rule near-best|best=near-best": "the smallest rank within one standard error of the best "
    "(for stability the largest that is nearly as stable), or the best; not for bound",
    "--splits COUNT=5": "number of times that entries are held out; not for bound, stability",
    "--starts COUNT": "starts of every rank in every split (default: 3, for stability 20)",
    "--held-out SHARE=0.1": "share of the entries that are held out; not for bound, stability",
    "--only-nonzeros": "hold out no zeros: for data whose zeros stand for what is not known",
    "--max-iter COUNT": "most iterations of a fit (default: 500, for bound 200)",
    "--tol FRACTION": "stop a fit when the objective falls by less per iteration, relative to its "
    "first value (default: 1e-6 for frobenius, else 1e-5)",
}


def add_choose_rank(commands: Any, data: str, text: Mapping[str, str]) -> Any:
    """Add the subcommand; return its parser, for what it has in common with others."""
    parser = commands.add_parser(
        "choose-rank",
        help="choose the number of topics by what models predict",
        description="Fit models with several numbers of topics, and see which is best: unless\n"
        "--criterion is given, how well those of parts of DATA predict the rest. A curve is in\n"
        "report.html.\n\n"
        "  ssnmf-fast choose-rank posts.csv --text body --ranks 2:30:2",
        usage="ssnmf-fast choose-rank DATA [--ranks RANKS] [--criterion CRITERION] [--loss LOSS]\n"
        "                              [--text COLUMN] [--out DIR] [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=data)
    add(parser.add_argument_group("used most"), {**_FIRST, **text})
    add(parser.add_argument_group("choice"), _HOW)
    parser.set_defaults(run=runner("_choose_rank"))
    return parser


_DATA = (
    "table with a text column (.csv, .tsv, .jsonl) or matrix (.npz, .npy, .mtx); .gz too; - for a "
    "table from standard input"
)
_HOLES = (
    "table of ratings (.csv, .tsv, .jsonl), one on a line, empty for one to predict; or matrix "
    "(.npz, .npy, .mtx): NaN is missing in a dense one, what is not stored in a sparse one; .gz "
    "too; - for a table from standard input"
)

# Options by their usage, each with its help; `add` tells how they are written.
_SEED = {"--seed INTEGER=0": "seed of the random numbers"}
_THREADS = {"--threads COUNT": "number of threads (default: all available cores)"}
_DEBUG = {"--debug": "show where in the code errors arise"}
_ID = {
    "--id COLUMN": "column of DATA to write next to every prediction (default: id, if there is one)"
}
_SAFE_CSV = {
    "--safe-csv": "put an apostrophe before cells of text that begin with = + - or @ (not before "
    "numbers): a spreadsheet program would run them as formulas",
}
_READING = {
    f"--format {'|'.join(kind[1:] for kind in TABLES)}": "kind of table (default: by the ending of "
    "DATA; csv for standard input)",
    "--encoding ENCODING=utf-8": "of DATA and of every other text file that is read",
    "--delimiter CHARACTER": "between the cells of a line, as ';' or tab (default: comma for .csv, "
    "tab for .tsv)",
}
_PRINTING = {
    "--json": "print a summary as JSON on standard output, and nothing else there",
    "--quiet": "print nothing but errors",
    **_DEBUG,
}

# Those that most users need; the help shows them first.
_FIT_FIRST = {
    "--text COLUMN": "column with the text (default: text)",
    "--labels LABELS": "column of the table, or a text file with one label per line; empty = "
    "unlabeled; in .jsonl also lists of labels",
    "--seeds FILE": "words of each topic, in place of labels or beside them: .json or .yaml, as "
    '{{"space": ["orbit", "nasa"], "sport": {{"game": 2, "team": 1}}}} ({users})',
    "--rank COUNT": "number of topics, which most models need (few-labels has 1 or 3 for each "
    "class; default of ts-nmf and seeded: one for each label or list of seeds)",
    f"--model {'|'.join(MODELS)}": "one of the models below (default: few-labels, seeded with "
    "--seeds, or nmf without --labels)",
    "--out DIR": "folder for the results (default: the name of DATA with -ssnmf-fast)",
}
_LABELS = {
    "--label-separator TEXT": "separator of several labels of a sample, such as ';' in a;b "
    "({users})",
    "--unlabeled|--unlabelled TEXT,...": (  # codespell:ignore unlabelled
        "labels that mean that a sample has none, such as NA,unknown; may be repeated"
    ),
    "--more-labels FILE...": "table of `suggest` whose labels are filled in; may be repeated",
}
_FIT = {
    "--image-shape HxW": "height and width of the images that rows of a matrix are, as 28x28: "
    "draws topics",
    **_ID,
    "--features FILE": "names of the features of a matrix, one per line",
    "--terms COUNT=10": "number of terms of each topic",
    **_SAFE_CSV,
}
_MODEL = {
    "--loss LOSS": "loss of the data: frobenius, kullback-leibler, itakura-saito, or the beta of a "
    "beta-divergence, from 0 to 2 (default: kullback-leibler for few-labels, ssnmf, seeded and "
    "nmf-alpha, else frobenius; {users})",
    "--supervision-loss LOSS": "loss of the labels, one of the same (default: kullback-leibler; "
    "{users})",
    "--supervision-weight balanced|auto|WEIGHT": "weight of the labels' loss; balanced: both "
    "losses count the same at the start; inf, for ssnmf: labeled samples have the topics of their "
    "classes only; auto, for nmf-alpha: a small number (default: balanced for ssnmf, auto for "
    "nmf-alpha; {users})",
    "--self-training auto|INTEGER": "rounds in which the most certain predictions become labels of "
    "small weight (default: auto; {users})",
    "--readout logistic|refit|joint": "how to predict: logistic regression on the topics of a "
    "sample and on its features, the matrix B fitted again without labels, or the B of the "
    "factorization (default: logistic; {users})",
    "--max-iter INTEGER": "most iterations (default: 200)",
    "--tol FRACTION": "stop when the objective falls by less per iteration, relative to its first "
    "value (default: 1e-4; Bayesian models 1e-5)",
    **_SEED,
    **_THREADS,
    "--dtype float32|float64": "numbers that the fit works with; float32 is faster for large data "
    "(default: float32 for text, for a matrix that of its numbers)",
    "--test-size FRACTION": "share of the labeled samples held out for the score, 0 for none "
    "(default: 0 for few-labels, which validates, else 0.2)",
    "--time COLUMN": "column of the table with the dates (2004-12-26, 20041226, ...), or a text "
    "file with one date per line ({users})",
    f"--freq {'|'.join(FREQUENCIES)}|SLICES": "slices of time: how long they are, also in "
    "multiples as '2 weeks' or '6 hours', or how many (default: month; {users})",
    "--method tied|tensor|sums|nmf": "how topics are found: with the same shares in all "
    "texts of a slice of time, from a tensor, from the sums of the texts of each slice, "
    "or from the texts alone (default: tied; {users})",
    "--documents-per-slice COUNT": "for how many texts a slice of time counts at most, or how many "
    "are drawn for the tensor (default: the median; {users})",
    "--free-topics INTEGER": "topics in addition to those with names (default: 0; {users})",
    "--labeled-weight inverse-rate|NUMBER": "weight of a labeled sample beside 1 for others; "
    "inverse-rate: samples divided by labeled ones (default: inverse-rate; {users})",
    "--svm-c POSITIVE": "penalty of the support vector machines on margin violations (default: 1; "
    "{users})",
    "--s-shape POSITIVE": "shape of the prior of topics' weights in samples; below 1 for few "
    "topics a sample (default: 1; {users})",
    "--rate-shape POSITIVE": "shape of the prior of the rates that a class gives topics: controls "
    "how few topics a class uses ({users})",
}
_TEXT = {
    "--max-features COUNT=5000": "most terms, of which the most frequent ones are taken",
    "--min-df COUNT=2": "least number of documents of a term",
    "--max-df FRACTION=0.7": "largest share of documents of a term",
    "--stop-words LIST=english": "words to leave out: english, none, a file with one on a line in "
    "place of the English ones, or english,FILE for both",
    "--ngram LOW,HIGH=1": "words in a term: 1,2 for single words and pairs; one number, as 2, for "
    "pairs alone",
    "--token-pattern REGEX": "regular expression of a word (default: two or more letters, digits "
    "or underscores, with their combining marks)",
    "--keep-markup": "keep HTML tags, entities such as &quot; and addresses of web pages, instead "
    "of removing tags and addresses, and replacing entities by their characters",
}
_TABLE = {
    f"--out-format {'|'.join(KINDS)}": "format, if not that of the ending of --out (default for -: "
    "csv)",
    **_SAFE_CSV,
}
_SUGGEST = {
    **{usage: _FIT_FIRST[usage] for usage in ("--text COLUMN", "--labels LABELS")},
    "--count|-n COUNT=20": "number of samples to label next",
    "--out FILE": "table to fill in (.csv or .jsonl), or - for standard output (default: the name "
    "of DATA with -to-label.csv)",
}
_PREDICT = {
    **_TABLE,
    "--explain": "add the three terms that speak most for each prediction",
    "--text COLUMN": "column with the text, if named otherwise",
    **{
        f"--{name} COLUMN": f"{name}s, for a model of `complete` (default: {name}, else the column "
        "in its place)"
        for name in ROLES[:2]
    },
    **_ID,
    **_THREADS,
}
_RATINGS = {
    **{
        f"--{name} COLUMN": f"default: {name}, or of three columns the one in its place"
        for name in ROLES
    },
    f"--duplicates {'|'.join(DUPLICATES)}": "several ratings of an item by one user: an error, or "
    "use their mean, the first or the last (default: error)",
    "--top COUNT": "items recommended to a user (default: 10)",
    **_SAFE_CSV,
}
_EXACTNESS = {
    "--exact": "the data are of low rank but for rounding: fit them exactly (default for a matrix)",
    "--noisy": "choose the shrinkage on held-out entries, and fit means of users and items, or of "
    "rows and columns, too (default for ratings)",
}
_COMPLETION = {
    "--rank COUNT": "default: chosen from the data",
    f"--method {'|'.join(METHODS)}=auto": "algorithm",
    "--max-iter COUNT": "most iterations (default: by the method)",
    "--clip": "keep predictions within the range of the values of DATA, also those of `predict`",
    **_SEED,
    **_THREADS,
    "--test-size FRACTION=0.1": "share of the entries held out to estimate the error, 0 for none",
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    parser = Parser(
        prog="ssnmf-fast",
        description="Semi-supervised nonnegative matrix factorization: topics that know labels.",
    )
    parser.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo", help="fit handwritten digits, compare with LinearSVC, draw pictures and a report"
    )
    add(demo, {"--out DIR=ssnmf-fast-demo": "folder for the results"} | _SEED | _THREADS | _DEBUG)
    demo.set_defaults(run=runner("_fit", "run_demo"))

    width = max(map(len, MODELS))
    about = (f"\n  {name:<{width}}  {model.about}" for name, model in MODELS.items())
    fit = commands.add_parser(
        "fit",
        help="fit a text table or a matrix; write model, tables and a report",
        description="Learn topics from DATA, steered by the labels of some samples.\n"
        "With --labels and nothing else, several classifiers are weighted by cross-validation,\n"
        "and the expected accuracy is printed, with that of LinearSVC; both need three labels a\n"
        "class.\n\n"
        "  ssnmf-fast fit posts.csv --text body --labels topic",
        usage="ssnmf-fast fit DATA [--text COLUMN] [--labels LABELS] [--rank COUNT] "
        "[--model MODEL] [--out DIR]\n                      [option ...]",
        epilog="models:" + "".join(about),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fit.add_argument("data", metavar="DATA", help=_DATA)
    add(fit.add_argument_group("used most"), _FIT_FIRST)
    add(fit.add_argument_group("data and results"), _LABELS | _FIT)
    add(fit.add_argument_group("model"), _MODEL)
    add(fit.add_argument_group("text"), _TEXT)
    _add_common(fit)
    fit.set_defaults(run=runner("_fit"))

    predict = commands.add_parser(
        "predict",
        help="predict labels or topics of new data with a fitted model",
        description="Models that were fitted with labels predict labels and their probabilities; "
        "the others give the weights of the topics; those of `complete` predict ratings.",
    )
    predict.add_argument(
        "model", metavar="MODEL", help="folder of `fit` or `complete`, or its model.npz"
    )
    predict.add_argument(
        "data", metavar="DATA", help=f"{_DATA}; of users and items for a model of `complete`"
    )
    add(predict, {"--out FILE=-": "file for the result (.csv or .jsonl), or - for standard output"})
    add(predict, _PREDICT)
    _add_common(predict)
    predict.set_defaults(run=runner("_predict"))

    verify = commands.add_parser(
        "verify",
        help="check a model against its receipt and the data of its fit",
        description="Compare DATA and the model with what the fit had, and compute the objective "
        "anew, and how near to an optimum it is. The exit code is 1 if anything differs.",
    )
    verify.add_argument("model", metavar="MODEL", help="folder of `fit`, or its model.npz")
    verify.add_argument("data", metavar="DATA", help=_DATA)
    add(verify, {usage: _FIT_FIRST[usage] for usage in ("--text COLUMN", "--labels LABELS")})
    add(verify, _LABELS | _THREADS)
    _add_common(verify)
    verify.set_defaults(run=runner("_verify"))

    suggest = commands.add_parser(
        "suggest",
        help="choose the samples that are worth labeling next, and write a table to fill in",
        description="Fit the default model to the labeled samples of DATA, and write the unlabeled "
        "ones\nthat would teach it most, with an empty column of labels. Fill it in, and fit:\n\n"
        "  ssnmf-fast suggest posts.csv --text body --labels topic --out todo.csv\n"
        "  ssnmf-fast fit posts.csv --text body --labels topic --more-labels todo.csv",
        usage="ssnmf-fast suggest DATA --labels LABELS [--text COLUMN] [-n COUNT] [--out FILE]\n"
        "                          [--more-labels FILE] [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    suggest.add_argument("data", metavar="DATA", help=_DATA)
    add(suggest.add_argument_group("used most"), _SUGGEST)
    more = _LABELS | _ID | _TABLE | _SEED | _THREADS
    add(suggest.add_argument_group("data and results"), more)
    add(suggest.add_argument_group("text"), _TEXT)
    _add_common(suggest)
    suggest.set_defaults(run=runner("_suggest"))

    ranks = add_choose_rank(commands, _DATA, {"--text COLUMN": _FIT_FIRST["--text COLUMN"]})
    add(ranks.add_argument_group("fits"), _SEED | _THREADS)
    add(ranks.add_argument_group("text"), _TEXT)
    _add_common(ranks)

    complete = commands.add_parser(
        "complete",
        help="complete a table of ratings or a matrix with missing entries",
        description="Find the missing values of DATA by a matrix of low rank.\n\n"
        "  ssnmf-fast complete ratings.csv --user user --item film --rating stars",
        usage="ssnmf-fast complete DATA [--user COLUMN] [--item COLUMN] [--rating COLUMN] "
        "[--rank COUNT]\n                           [--out PATH] [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    complete.add_argument("data", metavar="DATA", help=_HOLES)
    result = (
        "ratings: folder for the results; matrix: file for the completed one (.npy, .npz with "
        "array X, .csv); beyond 2e8 entries an .npz file for its factors (default: the name of "
        "DATA with -ssnmf-fast, or with -completed.npz)"
    )
    add(complete, {"--out PATH": result})
    add(complete.add_argument_group("ratings"), _RATINGS)
    model = complete.add_argument_group("model")
    add(model.add_mutually_exclusive_group(), _EXACTNESS)
    add(model, _COMPLETION)
    _add_common(complete)
    complete.set_defaults(run=runner("_complete"))

    config = commands.add_parser("show-config", help="print versions, compiler, levels, threads")
    add(config, _DEBUG)
    config.set_defaults(run=lambda _: show_config())
    return parser


def _add_common(parser: Any) -> None:
    """Add the options of reading and printing."""
    add(parser.add_argument_group("reading"), _READING)
    add(parser.add_argument_group("output"), _PRINTING)
