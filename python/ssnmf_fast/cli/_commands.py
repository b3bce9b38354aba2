"""The commands of ``ssnmf-fast`` and their options, as text."""

from __future__ import annotations

import re

from ._options import KINDS, SEEDS_EXAMPLE, TABLES

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
--config FILE: options in a .json, .toml or .yaml file, by name; the command line has precedence
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

# Names and numbers of other modules as text, as these import NumPy, SciPy and scikit-learn.
_METHODS = ("auto", "sirls", "structured-sirls", "irls", "structured-irls", "nnm", "structured-nnm")
_FREQUENCIES = ("hour", "day", "week", "month", "quarter", "year")
_LOSSES = "frobenius, kullback-leibler, itakura-saito, or the beta of a beta-divergence from 0 to 2"
_TOL = "stop when the objective decreases by less per iteration, relative to its initial value"
# By name: the class, and a description.
MODELS = {
    name: (estimator, about)
    for name, estimator, about in re.findall(
        r"(\S+) (\S+)\n    (.+)",
        """
few-labels FewLabelsClassifier
    classifier for few or many labels: several methods, weighted by cross-validation
ssnmf SSNMFClassifier
    the classifier of the papers, with a given rank and weight of the labels
nmf NMF
    topics without labels
ts-nmf TopicSupervisedNMF
    one topic per label; labeled texts have only the topics of their labels
seeded SeededTopics
    topics and classes from a few seed words each, without labels
nmf-alpha MarginNMF
    topics that keep classes separable for a support vector machine
cnmf ConstrainedNMF
    labeled samples of a class share their topics exactly
dynamic DynamicTopics
    topics of dated texts and their prevalence over time
vbnmf BayesianNMF
    Bayesian topics without labels
supervised-vbnmf SupervisedBayesianNMF
    Bayesian topics; each class uses a few of them
""",
    )
}
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
    per label; seeded: one per topic of --seeds; nmf, dynamic, vbnmf: auto for texts)
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
--max-iter INTEGER: maximum number of iterations (default: 200)
--tol FRACTION: {_TOL} (default: 1e-4; Bayesian models 1e-5){_COMPUTING}
--dtype float32|float64: precision of the fit (default: float32 for text, that of a matrix)
--test-size FRACTION: share of the labeled samples held out for the score, 0 for none (default: 0
    for few-labels, which validates, 0.2 for others)
--time COLUMN: column with the dates (2004-12-26, 20041226, ...), or a file with one date per line
--time-format FORMAT: format of the dates for Python's strptime, such as %%d.%%m.%%y
--freq {"|".join(_FREQUENCIES)}|SLICES: length of the slices of time, also '2 weeks' or '6 hours',
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
--method {"|".join(_METHODS)}=auto: algorithm
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

COMMANDS = {  # module and function that run it, and the text
    "demo": ("._fit", "run_demo", _DEMO),
    "fit": ("._fit", "run", _FIT),
    "predict": ("._predict", "run", _PREDICT),
    "verify": ("._predict", "run_verify", _VERIFY),
    "suggest": ("._fit", "run_suggest", _SUGGEST),
    "choose-rank": ("._fit", "run_choose_rank", _CHOOSE_RANK),
    "complete": ("._complete", "run", _COMPLETE),
    "recommend": ("._recommend", "run", _RECOMMEND),
    "report": ("._outputs", "run_report", _REPORT),
    "show-config": ("._outputs", "run_show_config", _SHOW_CONFIG),
}
