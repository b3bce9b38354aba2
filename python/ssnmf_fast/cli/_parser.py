"""The arguments of ``ssnmf-fast``."""

from __future__ import annotations

import math
import re
import sys
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from .. import NMF
from .._config import show_config
from .._data.times import FREQUENCIES, Length
from .._solver.losses import loss_named
from .._version import __version__
from ..completion._methods import METHODS
from ..selection._rank import MOST_RANKS
from ._labels import SEEDS_EXAMPLE
from ._models import MODELS, users_of
from ._outputs import KINDS
from ._read import TABLES, UsageError

Read = Callable[[str], Any]
_LEAST, _MOST = sys.float_info.min, sys.float_info.max


class _ImageShape(tuple[int, int]):
    """Height and width, which are printed as given."""

    def __str__(self) -> str:
        return "x".join(map(str, self))


def _number(kind: Read, low: float, high: float = math.inf) -> Read:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _read_loss(text: str) -> str | float:
    loss = float(text) if text[:1].isdigit() else text
    try:
        loss_named(loss, "the loss")
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from None
    return loss


def _read_image_shape(text: str) -> _ImageShape:
    height, width = map(_number(int, 1), text.lower().split("x"))
    return _ImageShape((height, width))


def _read_ngram_range(text: str) -> tuple[int, int]:
    numbers = [*map(_number(int, 1), text.split(","))]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise ValueError
    return numbers[0], numbers[-1]


def _read_ranks(text: str) -> tuple[int, ...]:
    """Read ranks: single ones, and LOW:HIGH or LOW:HIGH:STEP with both ends."""
    ranks: set[int] = set()
    for part in text.split(","):
        low, *others = map(_number(int, 1), part.split(":"))
        high, step = [*others, low][0], [*others, 1, 1][1]
        if len(others) > 2 or high < low:
            raise ValueError
        some = range(low, high + 1, step)
        if len(some) + len(ranks) > MOST_RANKS:
            wrong = f"must be at most {MOST_RANKS} numbers of topics, like 5:100:5; got {text!r}"
            raise ArgumentTypeError(wrong)
        ranks.update(some)
    return tuple(sorted(ranks))


def _read_shares(text: str) -> dict[str, float]:
    pairs = re.findall(r"(.+?)=([^=,]+)(?:,|$)", text)  # names may contain both signs
    shares = {name.strip(): _number(float, 0, _MOST)(number) for name, number in pairs}
    if len(shares) < len(pairs) or ",".join(map("=".join, pairs)) != text:
        raise ValueError
    return shares


def _read_token_pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"not a regular expression: {text!r} ({error})") from error
    if pattern.groups > 1 or pattern.fullmatch(""):
        wrong = "must have at most one group other than (?:...), and must not match empty text"
        raise ArgumentTypeError(f"{wrong}; got {text!r}")
    return text


def _read_character(text: str) -> str:
    return str(re.findall(r'\A[^"\r\n]\Z', "\t" if text in ("tab", "\\t") else text)[0])


_READ: dict[str, tuple[str, Read]] = {  # by metavar: the expected text, and its reader
    "CHARACTER": ("one character, or tab", _read_character),
    "COUNT": ("a whole number of at least 1", _number(int, 1)),
    "ENCODING": (
        "an encoding such as utf-8, utf-16, latin-1 or cp1252",
        lambda text: (text, "".encode(text))[0],
    ),
    "FRACTION": ("a number from 0 to 1", _number(float, 0, 1)),
    "HxW": ("height and width as in 28x28", _read_image_shape),
    "INTEGER": ("a whole number of at least 0", _number(int, 0)),
    "LOSS": ("the name of a loss, or a number from 0 to 2", _read_loss),
    "LOW,HIGH": ("numbers of words such as 1,2, the larger last, or one number", _read_ngram_range),
    "NUMBER": ("a number of at least 0", _number(float, 0, _MOST)),
    "POSITIVE": ("a number above 0", _number(float, _LEAST, _MOST)),
    "RANKS": ("numbers of topics such as 5,10,20 or 2:30:2 (2, 4, ..., 30)", _read_ranks),
    "REGEX": ("a regular expression", _read_token_pattern),
    "SHARE": ("a number above 0 and below 1", _number(float, _LEAST, 1 - 2**-53)),
    "SHARES": ("the share of every class, such as yes=0.3,no=0.7", _read_shares),
    "SLICES": (
        "a multiple such as '2 weeks', or a number of slices of at least 2",
        lambda text: text if Length.of(text) else _number(int, 2)(text),
    ),
    "TEXT": ("at least one character", lambda text: re.findall(r"(?s)\A.+\Z", text)[0]),
    "WEIGHT": ("a number of at least 0, or inf", _number(float, 0)),
}
_LISTS: dict[str, dict[str, Any]] = {  # extended by repeated options
    "COLUMN...": {"metavar": "COLUMN", "action": "append"},
    "FILE...": {"metavar": "FILE", "action": "append"},
    "LABELS...": {"metavar": "LABELS", "action": "append"},
    "TEXT,...": {
        "metavar": "TEXT,...",
        "action": "extend",
        "type": lambda text: [part.strip() for part in text.split(",") if part.strip()],
    },
}


def kind_of(declared: str) -> dict[str, Any]:
    """Return arguments of `add_argument` for words or a metavar, separated by |, or for none."""
    *words, metavar = declared.split("|")
    if declared in ("", "no"):  # "no": there is also --no-...
        return {"action": BooleanOptionalAction if declared else "store_true"}
    if metavar.islower():
        return {"choices": [*words, metavar]}
    if metavar not in _READ:
        return _LISTS.get(metavar, {"metavar": metavar})
    expected, read = _READ[metavar]

    def parse(text: str) -> object:
        try:
            return text if text in words else read(text)
        except (ValueError, LookupError) as error:
            needed = ", ".join([*words, f"or {expected}"]) if words else expected
            raise ArgumentTypeError(f"must be {needed}; got {text!r}") from error

    return {"type": parse, "metavar": declared}


# Commands: help, description and options, separated by ---.  Options: names, kind of value as in
# `kind_of`, default after =, and help, which continues on indented lines; [TITLE] begins a group,
# and * stands for the models that take an option.
_DATA = """
DATA: table (.csv, .tsv, .jsonl) with a text column, or matrix (.npz, .npy, .mtx), samples by
    features; .gz too; - for a table from standard input"""
_TEXT_AND_LABELS = """
--text COLUMN: column with the text (default: text)
--labels LABELS...: column with the labels, or a file with one per line; empty = unlabeled; in
    .jsonl also lists; code1,code2 or repeated: columns with several labels of a sample"""
_LABELS = """
--label-separator TEXT: separator of several labels of a sample, such as ';' in a;b (for *)
--unlabeled TEXT,...: labels that mean "no label", such as NA,unknown; repeatable
--more-labels FILE...: table from `suggest` with labels filled in; repeatable"""
_ID = """
--id COLUMN: column of DATA to write next to predictions (default: id, if it exists)"""
_SAFE_CSV = """
--safe-csv: put an apostrophe before text that begins with = + - or @ (not before numbers), which a
    spreadsheet program would run as a formula"""
_OUT_FORMAT = f"""
--out-format {"|".join(KINDS)}: format (default: the ending of --out; csv for -)"""
_THREADS = """
--threads COUNT: number of threads (default: all available cores)"""
_COMPUTING = f"""
--seed INTEGER=0: seed of the random numbers{_THREADS}"""
_DEBUG = """
--debug: show where in the code an error occurs"""
_VECTORIZER = """
[text]
--max-features COUNT=5000: maximum number of terms (the most frequent)
--min-df COUNT=2: minimum number of documents with a term
--max-df FRACTION=0.7: maximum share of documents with a term
--stop-words LIST=english: words to leave out: english, another language such as german or de, none,
    a file with one word per line, or several of these, such as english,FILE
--ngram LOW,HIGH=1: words in a term: 1,2 for single words and pairs; 2 for pairs only
--token-pattern REGEX: regular expression of a word (default: two or more letters, digits or
    underscores, with their combining marks)
--keep-markup: keep HTML tags, entities such as &quot; and web addresses"""
_COMMON = f"""
[reading]
--format {"|".join(kind[1:] for kind in TABLES)}: kind of table (default: the ending of DATA; csv
    for -)
--encoding ENCODING=utf-8: encoding of DATA and of all other text files
--delimiter CHARACTER: character between cells, such as ';' (default: comma; tab for .tsv)
--quoting csv|none: whether quotation marks enclose cells, or are part of texts (default: csv, if
    they join no lines that look like rows)
[output]
--json: print only a summary, as JSON, on standard output
--quiet: print only errors{_DEBUG}"""

_LOSSES = "frobenius, kullback-leibler, itakura-saito, or the beta of a beta-divergence from 0 to 2"
_CHOOSE = [name for name, model in MODELS.items() if model.chooses_rank]
_TOL = "stop when the objective decreases by less per iteration, relative to its initial value"
_DEMO = f"""fit handwritten digits, compare with LinearSVC, draw pictures and a report
---
---
--out DIR=ssnmf-fast-demo: folder for the results{_COMPUTING}{_DEBUG}"""
_FIT = f"""fit a text table or a matrix; write model, tables and a report
---
Learn topics from DATA, guided by the labels of some samples.
With --labels and nothing else, several classifiers are weighted by cross-validation,
and the expected accuracy is printed, with that of LinearSVC.

  ssnmf-fast fit posts.csv --text body --labels topic
---{_DATA}
[used most]{_TEXT_AND_LABELS}
--seeds FILE: words of each topic, in JSON, such as {SEEDS_EXAMPLE} (for *)
--rank auto|COUNT: number of topics, required by most models (few-labels: 1 per class; ts-nmf: one
    per label; seeded: one per topic of --seeds; {", ".join(_CHOOSE)}: auto for texts)
--model {"|".join(MODELS)}: one of the models below (default: few-labels, seeded with --seeds, or
    nmf without --labels)
--out DIR: folder for the results (default: the name of DATA with -ssnmf-fast)
[data and results]{_LABELS}
--image-shape HxW: height and width of the images in the rows of a matrix{_ID}
--features FILE: names of the features of a matrix, one per line
--target-accuracy SHARE: accuracy of predictions that need no check, such as 0.9: marks the others
--by COLUMN...: also write the shares of the codes by a column, such as region; repeatable
--terms COUNT=10: number of terms of each topic{_SAFE_CSV}
[model]
--loss LOSS: loss of the data: {_LOSSES} (default: kullback-leibler for few-labels, ssnmf, seeded
    and nmf-alpha, frobenius for others; for *)
--supervision-loss LOSS: loss of the labels, one of the same (default: kullback-leibler; for *)
--supervision-weight balanced|auto|WEIGHT: weight of the loss of the labels; balanced: both losses
    are equal at the start; inf, for ssnmf: labeled samples have only the topics of their classes;
    auto, for nmf-alpha: small (default: balanced for ssnmf, auto for nmf-alpha)
--self-training auto|INTEGER: rounds in which the most certain predictions become labels of small
    weight (default: auto; for *)
--class-prior labels|SHARES: known shares of the classes among all samples, such as yes=0.3,no=0.7,
    or labels, if these are a random sample (default: estimated; for *)
--readout logistic|refit|joint: how to predict: logistic regression on topics and features of a
    sample, the matrix B fitted again without labels, or the B of the factorization (default:
    logistic; for *)
--max-iter INTEGER: maximum number of iterations (default: {NMF().max_iter})
--tol FRACTION: {_TOL} (default: 1e-4; Bayesian models 1e-5){_COMPUTING}
--dtype float32|float64: precision of the fit (default: float32 for text, that of a matrix)
--test-size FRACTION: share of the labeled samples held out for the score, 0 for none (default: 0
    for few-labels, which validates, 0.2 for others)
--time COLUMN: column with the dates (2004-12-26, 20041226, ...), or a file with one date per line
--time-format FORMAT: format of the dates for Python's strptime, such as %%d.%%m.%%y
--freq {"|".join(FREQUENCIES)}|SLICES: length of the slices of time, also '2 weeks' or '6 hours',
    or their number (default: 10 to 50 slices by the span of the dates)
--method auto|neighbors|tied|nmf|tensor: how to find topics: from texts and their neighbors in the
    slice of time, with the same shares in all texts of a slice, from texts alone, or from a tensor
    (default: auto, which takes neighbors or tied; for *)
--documents-per-slice COUNT: number of texts that a slice counts for at most, or that are drawn for
    the tensor (default: the median; for *)
--free-topics INTEGER: topics in addition to those with names (default: 0; for *)
--labeled-weight inverse-rate|NUMBER: weight of a labeled sample (1 for others); inverse-rate:
    number of samples divided by that of labeled samples (default: inverse-rate; for *)
--svm-c POSITIVE: penalty of the support vector machines on margin violations (default: 1; for *)
--s-shape POSITIVE: shape of the prior of the weights of topics in samples; below 1 for few topics
    per sample (default: 1; for *)
--rate-shape POSITIVE: shape of the prior of the rates of topics by class; below 1 for few topics
    per class (default: auto; for *){_VECTORIZER}{_COMMON}"""
_PREDICT = f"""predict labels or topics of new data with a fitted model
---
Models of `fit` predict labels and their probabilities if they were fitted with labels,
and weights of topics otherwise; models of `complete` predict ratings; models of
`recommend` list items for new users.
---
MODEL: folder of `fit`, `complete` or `recommend`, or its model.npz{_DATA}; users and items for the
    last two
--out FILE=-: file for the result (.csv or .jsonl), or - for standard output{_OUT_FORMAT}{_SAFE_CSV}
--explain: add the three terms that support each prediction most
--text COLUMN: column with the text, if its name differs from that of the fit
--user COLUMN: users, for pairs of users and items (default: user, or the first column)
--item COLUMN: items, for pairs of users and items (default: item, or the second column)
--value COLUMN: values of the pairs of new users, for a model of `recommend` (default: as there)
--n,-n COUNT: items for each new user, for a model of `recommend` (default: 10){_ID}
{_THREADS}{_COMMON}"""
_VERIFY = f"""check a model against its receipt and the data of its fit
---
Compare DATA and the model with those of the fit, and compute the objective and the
distance from an optimum again. The exit code is 1 if anything differs.
---
MODEL: folder of `fit`, or its model.npz{_DATA}{_TEXT_AND_LABELS}{_LABELS}{_THREADS}{_COMMON}"""
_SUGGEST = f"""choose the samples that are worth labeling next, and write a table to fill in
---
Fit the default model to the labeled samples of DATA, and write the unlabeled samples
that would improve it most, with an empty column of labels. Fill it in, and fit:

  ssnmf-fast suggest posts.csv --text body --labels topic --out todo.csv
  ssnmf-fast fit posts.csv --text body --labels topic --more-labels todo.csv
---{_DATA}
[used most]{_TEXT_AND_LABELS}
--count,-n COUNT=20: number of samples to label next
--out FILE: table to fill in (.csv or .jsonl), or - for standard output (default: the name of DATA
    with -to-label.csv)
[data and results]{_LABELS}{_ID}{_OUT_FORMAT}{_SAFE_CSV}{_COMPUTING}{_VECTORIZER}{_COMMON}"""
_CHOOSE_RANK = f"""choose the number of topics by predictions of held-out data
---
Fit models with several numbers of topics to parts of DATA, and compare how well they
predict the rest (for texts, hidden words). The curve is in report.html.

  ssnmf-fast choose-rank posts.csv --text body
---{_DATA}
[used most]
--ranks RANKS: numbers of topics to try, such as 5,10,20 or 2:30:2 (2, 4, ..., 30) (default: 2:20,
    for words 16 from 1 to 64)
--criterion words|held-out|bound|stability: how ranks are compared: by predictions of hidden words
    or of held-out entries, the bound of a Bayesian model, or how well many starts agree (default:
    words for texts, held-out for a matrix)
--loss LOSS: loss of the data: {_LOSSES} (default: frobenius; not for bound, words)
--text COLUMN: column with the text (default: text)
--out DIR: folder for the results (default: the name of DATA with -ranks)
[choice]
--rule near-best|best=near-best: the smallest rank within one standard error of the best (for
    stability the largest that is nearly as stable), or the best; not for bound, words
--splits COUNT: number of random splits (default: 5, for words 2); not for bound, stability
--starts COUNT: starts of every rank in every split (default: 3, for stability 20); not for words
--validation-fraction SHARE=0.1: share of the entries that are held out; not for bound, stability
--only-nonzeros: do not hold out zeros, if they are unknown values; not for words
--max-iter COUNT: maximum number of iterations (default: 500, for bound 200); not for words
--tol FRACTION: {_TOL} (default: 1e-6 for frobenius, 1e-5 for others); not for words
[fits]{_COMPUTING}{_VECTORIZER}{_COMMON}"""
_COMPLETE = f"""complete a table of ratings or a matrix with missing entries
---
Predict missing values of DATA by a low-rank matrix, such as how users would rate items.

  ssnmf-fast complete ratings.csv --user user --item film --rating stars
---
DATA: table of ratings (.csv, .tsv, .jsonl), one per line, empty to predict it; or matrix (.npz,
    .npy, .mtx), in which missing entries are NaN if dense, and not stored if sparse; .gz too; - for
    a table from standard input
--out PATH: ratings: folder for the results; matrix: file for the completed matrix (.npy, .npz with
    array X, .csv), above 2e8 entries an .npz file for its factors (default: the name of DATA with
    -ssnmf-fast, or with -completed.npz)
[ratings]
--user COLUMN: users (default: user, or the first of three columns)
--item COLUMN: items (default: item, or the second of three columns)
--rating COLUMN: ratings (default: rating, or the third of three columns)
--duplicates error|mean|first|last: several ratings of an item by one user: an error, or use mean,
    first or last (default: error)
--top COUNT: highest predictions per user, of unrated items (default: 10){_SAFE_CSV}
[model]
--exact: fit low-rank data exactly, up to rounding (default for a matrix)
--noisy: choose the shrinkage on held-out entries, and fit means of users and items, or of rows and
    columns, too (default for ratings)
--rank COUNT: rank of the matrix (default: chosen from the data)
--method {"|".join(METHODS)}=auto: algorithm
--max-iter COUNT: maximum number of iterations (default: depends on the method)
--clip no: keep predictions within the range of the values (default for ratings){_COMPUTING}
--test-size FRACTION=0.1: share of the entries held out for the error, 0 for none{_COMMON}"""
_RECOMMEND = f"""recommend items to users, from pairs of users and items
---
Learn from DATA what users like. Settings are compared, also with the list of popular
items, on a hidden tenth of the pairs.

  ssnmf-fast recommend ratings.csv --user user --item film --value stars
---
DATA: table (.csv, .tsv, .jsonl), a user and an item per line; .gz too; - for standard input
--out DIR: folder for the results (default: the name of DATA with -ssnmf-fast)
[data and results]
--user COLUMN: users (default: user, or the first of two or three columns)
--item COLUMN: items (default: item, or the second of two or three columns)
--value COLUMN: values, if any (default: value, rating, or the third of three columns)
--users TEXT,...: users who get lists, or a file with one user per line (default: all)
--n,-n COUNT=10: items for each user{_SAFE_CSV}
[model]
--rank auto|COUNT=auto: number of components; auto: at most 128, or 256 if that is better
--values auto|graded|counts|ones=auto: ratings (low ones: not liked), counts, or pairs alone
--nonnegative: nonnegative components, which are topics: groups of items
--neighbors no: half of each score from similar items, for up to 20,000 items
    (default){_COMPUTING}{_COMMON}"""

_REPORT = f"""write the page of a folder of results again
---
---
FOLDER: folder of `fit`, `choose-rank`, `complete` or `recommend`{_DEBUG}"""
_SHOW_CONFIG = f"print versions, compiler, levels, threads\n---\n---{_DEBUG}"


class _Parser(ArgumentParser):
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("ambiguous option"):
            likely = min(re.findall(r"--[\w-]+", message.partition(" could match ")[2]), key=len)
            message += f"; perhaps {likely}"
        if message.endswith("expected one argument"):
            message += "; one that begins with - needs an equals sign, such as --unlabeled=-9"
        raise UsageError(f"{message}; see {self.prog} --help")


def _run(module: str, name: str, options: Namespace) -> Any:
    """Run a subcommand; its module is imported only now."""
    return getattr(import_module(f".{module}", __package__), name)(options)


_COMMANDS = {
    "demo": (partial(_run, "_fit", "run_demo"), _DEMO),
    "fit": (partial(_run, "_fit", "run"), _FIT),
    "predict": (partial(_run, "_predict", "run"), _PREDICT),
    "verify": (partial(_run, "_predict", "run_verify"), _VERIFY),
    "suggest": (partial(_run, "_fit", "run_suggest"), _SUGGEST),
    "choose-rank": (partial(_run, "_fit", "run_choose_rank"), _CHOOSE_RANK),
    "complete": (partial(_run, "_complete", "run"), _COMPLETE),
    "recommend": (partial(_run, "_recommend", "run"), _RECOMMEND),
    "report": (partial(_run, "_outputs", "run_report"), _REPORT),
    "show-config": (lambda _: show_config(), _SHOW_CONFIG),
}


def build_parser() -> ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    about = "Semi-supervised nonnegative matrix factorization: topics guided by labels."
    parser = _Parser(prog="ssnmf-fast", description=about)
    parser.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parsers: dict[str, ArgumentParser] = {}
    for name, (run, text) in _COMMANDS.items():
        help, description, options = re.split(r"\s*^---$\s*", text, flags=re.MULTILINE)
        given = [*re.findall(r"(?m)^([A-Z]+):", options), "[option ...]"]
        more: Any = {"help": help, "usage": " ".join(["ssnmf-fast", name, *given])}
        more |= {"description": description, "formatter_class": RawDescriptionHelpFormatter}
        parsers[name] = new = commands.add_parser(name, **more)
        new.set_defaults(run=run)
        _add_options(new, options)
    width = max(map(len, MODELS))
    models = (f"\n  {name:<{width}}  {model.about}" for name, model in MODELS.items())
    fit = parsers["fit"]
    fit.epilog = "models:" + "".join(models)
    fit.set_defaults(defaults=vars(fit.parse_args([""])))
    # These read data and fit like `fit`.
    digits = ["--labels", "digits", "--image-shape", "8x8", "--test-size", "0.5", "--model"]
    digits += ["ssnmf", "--rank", "50", "--supervision-weight", "inf"]
    for name, more in {"demo": digits, "suggest": [], "choose-rank": []}.items():
        defaults, other = vars(fit.parse_args(["digits", *more])).items(), parsers[name]
        other.set_defaults(**{k: value for k, value in defaults if other.get_default(k) is None})
    return parser


def _add_options(parser: ArgumentParser, options: str) -> None:
    """Add options to a parser from texts as above."""
    target: Any = parser
    for part in re.split(r"\n+(?! )", options.strip()):
        if part.startswith("["):
            target = parser.add_argument_group(part[1:-1])
            continue
        declared, _, help = " ".join(part.split()).partition(": ")
        names, _, kind = declared.partition(" ")
        if not names.startswith("-"):
            target.add_argument(names.lower(), metavar=names, help=help)
            continue
        kind, _, default = kind.partition("=")
        more = kind_of(kind)
        if default:
            more, help = more | {"default": default}, f"{help} (default: {default})"
        users = users_of(names.partition(",")[0][2:].replace("-", "_"))
        target.add_argument(*names.split(","), help=help.replace("*)", users + ")"), **more)
