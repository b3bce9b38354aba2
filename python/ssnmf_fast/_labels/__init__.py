"""Labels of samples, as estimators, metrics, pictures and the command read them.

- :class:`ClassLabels`: one label for each sample;
- :class:`Indicators`: several labels for each sample, as a matrix of 0 and 1;
- :class:`LabelLists`: several labels for each sample, as lists;
- :class:`RealTargets`: numbers.

`labeled` marks samples with a label (or target); ``matrix(dtype)`` is Y, (n, k).

None, NaN, NaT, pandas.NA and masked values are missing, and the value `unlabeled` of the caller.
"auto" means -1, as in scikit-learn's semi-supervised estimators, but labels that are exactly -1 and
1 are two classes (as in scikit-learn's checks of classifiers), with a warning.

Labels that are equal in Unicode form NFC are one class, which has the name given first.
"""

from __future__ import annotations

import copy
import numbers
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._common.locks import cached_property
from .._common.text import as_first_given, listed, nfc, short
from .._common.warn import warn_user
from .._data.arrays import as_array, is_missing, read_csr
from ._doubts import doubts as doubts
from ._doubts import label_key as label_key
from ._doubts import means_missing as means_missing
from ._doubts import parse_list as parse_list
from ._doubts import warn_of_doubts as warn_of_doubts

_KINDS: Any = (("text", str), ("bool", (bool, np.bool_)), ("number", numbers.Real))


class Targets:
    """Labels or targets of samples."""

    labeled: Array  # whether a sample has any, (n,)
    complete: Array  # whether it has all
    several = True  # whether a sample may have several

    def check_fit(self) -> None:
        if not self.labeled.any():
            raise ValueError("y has no labeled sample. Label some, or use NMF, which needs none.")

    def matrix(self, dtype: npt.DTypeLike) -> Any:
        raise NotImplementedError


class ClassLabels(Targets):
    """One class label for each sample.

    `values` holds the labels of labeled samples, and `classes` the sorted classes, or
    `known_classes` of a fitted model.  `y` is (n,) or (n, 1), `marker` is `unlabeled`.
    """

    several = False

    def __init__(
        self, y: object, marker: object, known_classes: Array | None = None, name: str = "y"
    ) -> None:
        vector = label_vector(y, name, column=True)
        self.complete = self.labeled = ~_unlabeled_samples(vector, name, marker, known_classes)
        self.values = _plain_labels(vector[self.labeled], name)
        texts = self.values.tolist()
        earlier = [] if known_classes is None else known_classes.tolist()
        if self.values.dtype.kind in "UO" and not all(map(_is_ascii, (*texts, *earlier))):
            spelling = as_first_given(texts, earlier)  # by form NFC
            kind = object if self.values.dtype.kind == "O" else None
            self.values = np.array([spelling[text] for text in texts], dtype=kind)
        if self.values.dtype.kind == "S":
            raise TypeError(
                f"{name} holds bytes; expected text or integers. Give {name}.astype(str)."
            )
        self.classes = np.unique(self.values) if known_classes is None else known_classes
        counts = Counter(self.values.tolist())
        if known_classes is None or not counts.keys() <= set(earlier):
            warn_of_doubts(counts, name, None if earlier else marker, earlier)

    def check_fit(self) -> None:
        super().check_fit()
        if len(self.classes) < 2:
            how = "expected labeled samples of at least two classes. Label others, or use NMF"
            raise ValueError(f"y has one class only, {short(self.classes.tolist()[0])}; {how}.")

    @cached_property
    def codes(self) -> Array:
        if not len(self.values):
            return np.zeros(0, dtype=np.intp)
        comparable = _is_text(self.values) == _is_text(self.classes)
        valid = (
            np.isin(self.values, self.classes) if comparable else np.zeros(len(self.values), bool)
        )
        if not valid.all():
            label, classes = short(self.values[~valid].tolist()[0]), short(self.classes.tolist())
            raise ValueError(f"y holds {label}, which is not a class of the first call: {classes}.")
        return np.searchsorted(self.classes, self.values)

    def matrix(self, dtype: npt.DTypeLike) -> sp.csr_array:
        rows = np.flatnonzero(self.labeled)
        values = np.ones(len(rows), dtype=dtype)
        shape = (len(self.labeled), len(self.classes))
        return sp.csr_array((values, (rows, self.codes)), shape=shape)


def label_vector(labels: object, name: str, *, column: bool = False) -> Array:
    """Return labels as a vector, without turning numbers among strings into strings."""
    if sp.issparse(labels):
        raise TypeError(f"{name} must be a vector of labels; got a sparse matrix.")
    _refuse_lists(labels, name)
    array = as_array(unmask_labels(labels), name, allow_objects=True)
    if array.dtype.kind == "U" and isinstance(labels, (list, tuple)):
        objects = np.asarray(labels, dtype=object)
        array = array if _is_text(objects.ravel()) else objects
    if column and array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        what = f"A column-vector {name} was passed when a 1d array was expected"
        warn_user(f"{what}. Give it as {name}.ravel().", DataConversionWarning)
        return array.ravel()
    if array.ndim != 1:
        got = f"got shape {array.shape}. Give a column as {name}.ravel()"
        raise ValueError(f"{name} must have one dimension, a label for each sample; {got}.")
    return array


def _refuse_lists(labels: Any, name: str) -> None:
    """Raise ValueError for lists of labels with different lengths."""
    if not isinstance(labels, (list, tuple)) and str(getattr(labels, "dtype", "")) != "object":
        return
    lengths = {len(label) if isinstance(label, (list, tuple, set)) else -1 for label in labels}
    if len(lengths) > 1 and max(lengths) >= 0:
        raise ValueError(
            f"{name} holds lists of labels; expected one label for each sample. For several labels "
            f"give sklearn.preprocessing.MultiLabelBinarizer().fit_transform({name})."
        )


def unmask_labels(labels: object) -> Any:
    """Return a masked array with None for masked values; other labels as they are."""
    if isinstance(labels, (list, tuple)):  # NumPy would warn about masked numbers, or float32
        values = (float(label) if isinstance(label, np.floating) else label for label in labels)
        return [None if value is np.ma.masked else value for value in values]
    if not isinstance(labels, np.ma.MaskedArray):
        return labels
    if not np.ma.is_masked(labels):
        return labels.data
    objects = labels.data.astype(object)
    objects[np.ma.getmaskarray(labels)] = None
    return objects


def _plain_labels(labels: Array, name: str) -> Array:
    """Return labels as an array of text, whole numbers or bool; raise TypeError for others."""
    if labels.dtype.kind in "OT":
        types = set(map(type, labels.tolist()))
        kinds = {next((kind for kind, of in _KINDS if issubclass(t, of)), None) for t in types}
        if len(kinds) > 1 or None in kinds:
            how = f"all text or all numbers, for example [str(label) for label in {name}]"
            raise TypeError(f"{name} must hold labels of one kind, {how}.")
        if labels.dtype.kind == "O" and kinds <= {"text"}:
            return labels
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufUS":
        raise TypeError(f"{name} has dtype {labels.dtype}; labels must be text or integers.")
    if labels.dtype.kind == "f":
        fractions = ~np.isfinite(labels) | (np.trunc(labels) != labels)
        if fractions.any():
            value = labels[fractions][0]
            written = "infinity" if np.isinf(value) else f"{value:g}"
            how = "labels must be text or whole numbers. Cut a continuous target into classes"
            raise ValueError(f"Unknown label type: {name} holds {written}; {how}.")
    return labels


def _is_ascii(label: object) -> bool:
    return not isinstance(label, str) or label.isascii()


def _is_text(labels: Array) -> bool:
    if labels.dtype.kind == "O":
        return all(isinstance(label, str) for label in labels.tolist())
    return labels.dtype.kind in "US"


def _unlabeled_samples(
    labels: Array, name: str, unlabeled: Any, known_classes: Array | None = None
) -> Array:
    """Return which samples have no label, (n,): a missing value, or `unlabeled`."""
    absent = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        absent = np.isnan(labels)
    elif labels.dtype.kind == "O":
        absent = np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels))
    if np.ndim(unlabeled) or not isinstance(unlabeled, Hashable):
        got = f"{short(unlabeled)} ({type(unlabeled).__name__})"
        raise TypeError(f'unlabeled must be "auto", None or a label (text or a number); got {got}.')
    if is_missing(unlabeled):
        return absent
    automatic = isinstance(unlabeled, str) and unlabeled == "auto"
    marked = _equal(labels, -1 if automatic else unlabeled) & ~absent
    others = labels[~marked & ~absent]
    if automatic and known_classes is not None:
        return absent if _equal(known_classes, -1).any() else absent | marked
    if not automatic or not (marked.any() and len(others)) or not _equal(others, 1).all():
        return absent | marked
    warn_user(
        f"The only labels in {name} are -1 and 1, and both are treated as classes. If -1 marks "
        "unlabeled samples, pass unlabeled=-1; if it is a class, unlabeled=None.",
        UserWarning,
    )
    return absent


def _equal(labels: Array, marker: object) -> Array:
    """Return ``labels == marker``, False if they cannot be compared, and for True and 1."""
    if labels.dtype.kind == "O" or not _is_ascii(marker):
        bools = isinstance(marker, bool)
        same = (
            not is_missing(label)
            and isinstance(label, (bool, np.bool_)) == bools
            and bool(nfc(label) == nfc(marker))
            for label in labels.tolist()
        )
        return np.fromiter(same, dtype=bool, count=len(labels))
    if (labels.dtype.kind in "UST") != isinstance(marker, str) or labels.dtype.kind == "b":
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == marker)


_LISTS = (list, tuple, set, frozenset, np.ndarray)


class Indicators(Targets):
    """Several labels for each sample, as a matrix of 0 and 1."""

    def __init__(self, y: object, n_labels: int | None = None) -> None:
        matrix: Any = read_csr(y, "y").astype(np.float64) if sp.issparse(y) else _numbers(y)
        if matrix.ndim != 2 or (n_labels is not None and matrix.shape[1] != n_labels):
            expected = "(samples, labels)" if n_labels is None else f"(samples, {n_labels})"
            raise ValueError(f"y has shape {matrix.shape}; expected {expected}.")
        if sp.issparse(matrix):
            matrix.sum_duplicates()
        values = matrix.data if sp.issparse(matrix) else matrix[~np.isnan(matrix)]
        if not (valid := np.isin(values, (0, 1, -1))).all():
            raise ValueError(
                f"y has several columns, and holds {values[~valid][0]:g}; an indicator matrix has "
                "0 and 1, or -1 in unlabeled rows. Continuous targets are for SSNMFRegressor."
            )
        counts = np.asarray((matrix == -1).sum(axis=1)).ravel()
        if (partly := (counts > 0) & (counts < matrix.shape[1])).any():
            raise ValueError(
                f"y[{int(partly.argmax())}] holds -1 in some columns only; expected a row of -1 "
                "for an unlabeled sample. Mark single missing entries of a dense y by NaN."
            )
        self.labeled = np.asarray(counts != matrix.shape[1])
        if sp.issparse(matrix):
            matrix.data[matrix.data == -1] = 0
            matrix.eliminate_zeros()
            self.complete = self.labeled
        else:
            self.labeled &= ~np.isnan(matrix).all(axis=1)
            matrix = np.where(self.labeled[:, None], matrix, 0)
            self.complete = self.labeled & ~np.isnan(matrix).any(axis=1)
            matrix = matrix if np.isnan(matrix).any() else sp.csr_array(matrix)
        self._matrix = matrix
        names = getattr(y, "columns", None)  # of a data frame
        self.classes = np.arange(matrix.shape[1]) if names is None else names_array(names)
        if names is not None and n_labels is None:
            sums = np.asarray((self._matrix == 1).sum(axis=0)).ravel().tolist()
            warn_of_doubts(dict(zip(names, sums, strict=True)), "y", None, several=True)

    @property
    def values(self) -> Array:
        rows = self._matrix[self.complete]
        values: Array = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return values.astype(np.int64)

    def matrix(self, dtype: npt.DTypeLike) -> Any:
        """Return Y, sparse unless entries are missing; unlabeled rows are zeros."""
        return self._matrix.astype(dtype)


class RealTargets(Targets):
    """Real targets; `complete` marks rows without NaN and `values` holds them."""

    def __init__(self, y: object, n_targets: int | None = None) -> None:
        values = _numbers(read_csr(y, "y").toarray() if sp.issparse(y) else y)
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(f"y has shape {values.shape}; expected (samples,) or (samples, k).")
        self.n_targets = 0 if values.ndim == 1 else values.shape[1]
        if n_targets is not None and max(n_targets, 1) != max(self.n_targets, 1):
            raise ValueError(f"y has shape {values.shape}; expected {max(n_targets, 1)} targets.")
        if np.isinf(values).any():
            raise ValueError("y contains infinity; give finite targets, or NaN for unlabeled.")
        self._values = values.reshape(len(values), -1)
        absent = np.isnan(self._values)
        self.labeled = np.asarray(~absent.all(axis=1))
        self.complete: Array = np.asarray(~absent.any(axis=1))
        self.values = values[self.complete]

    def measure(self, weights: Array, before: Any = np.nan) -> Array:
        """Set the offset, the smallest weighted or given target (NaN if there is no target)."""
        self.labeled = self.labeled & (weights > 0)
        self.offset = np.fmin(np.fmin.reduce(self._values[self.labeled], initial=np.nan), before)
        return np.where(np.isnan(self._values), 0.0, weights[:, None])

    def matrix(self, dtype: npt.DTypeLike) -> Array:
        """Return Y - offset, 0 in unlabeled rows and NaN for single missing entries."""
        above = np.maximum(self._values - self.offset, 0)
        return np.where(self.labeled[:, None], above, 0).astype(dtype)


class LabelLists(Targets):
    """Topics that documents may have, from labels, lists of labels, or indicators.

    `names` holds the named topics, `members` is a boolean sparse matrix (documents x topics),
    `labeled` marks documents with any topic, and `several` tells if several are possible.  `order`
    (k,) sorts the names as classes; the columns of a matrix stay as they are.
    """

    def __init__(self, y: object, names: Any = None, marker: object = "auto") -> None:
        y = unmask_labels(y) if hasattr(y, "__iter__") else np.asarray(y)
        topics = None if names is None else _check_names(list(names))
        shape: tuple[int, ...] = getattr(y, "shape", ())
        if sp.issparse(y) or (len(shape) == 2 and shape[1] > 1):
            self._read_matrix(y, topics)
            self.order: Array = np.arange(len(self.names))
        elif getattr(y, "ndim", 1) == 1 and any(map(_is_list, y)):
            self._name([_read_list(i, entry) for i, entry in enumerate(y)], topics)
            counts = dict(zip(self.names.tolist(), self.members.sum(axis=0).tolist(), strict=True))
            if topics is None:
                warn_of_doubts(counts, "y", marker, several=True)
        else:
            self.several = False
            labels = ClassLabels(y, marker, topics)
            values = iter(labels.values.tolist())
            self._name([[next(values)] if has else [] for has in labels.labeled], topics)
        self.labeled = self.members.sum(axis=1) > 0
        if not self.labeled.any():
            raise ValueError("y names no topic for any document. Name some, or use NMF.")

    def _read_matrix(self, y: object, topics: Array | None) -> None:
        indicators = Indicators(y)
        k = len(indicators.classes)
        if topics is not None and len(topics) != k:
            expected = f"one for each of the {k} columns of y"
            raise ValueError(f"topic_names holds {len(topics)} names; expected {expected}.")
        self.names = _check_names(indicators.classes.tolist()) if topics is None else topics
        matrix = indicators.matrix(np.float64)
        if not sp.issparse(matrix):
            row, column = np.argwhere(np.isnan(matrix))[0]
            raise ValueError(
                f"y[{row}, {column}] is NaN, but other entries of its row are not; expected 0 or 1 "
                "for every topic, or a row of NaN for an unlabeled document."
            )
        members = sp.csr_array(matrix != 0)
        counts = members.sum(axis=1)
        if k > 1 and counts.all():  # L of the paper, with rows of ones for unlabeled documents
            members = sp.csr_array(members.multiply((counts < k)[:, None]))
        self.members = members

    def _name(self, lists: Sequence[Sequence[Any]], topics: Array | None) -> None:
        earlier = () if topics is None else topics.tolist()
        spelling = as_first_given((name for names in lists for name in names), earlier)
        names = set(spelling.values())
        try:
            self.names = _check_names(sorted(names)) if topics is None else topics
        except TypeError as error:
            why = "y names topics by text and by numbers, which cannot be sorted"
            raise ValueError(f"{why}; use one kind, or give topic_names.") from error
        place = {name: k for k, name in enumerate(self.names.tolist())}
        self.order = sorting(self.names)
        unknown = [name for name in names if name not in place]
        if unknown:
            why = f"not one of topic_names: {listed(self.names.tolist())}"
            raise ValueError(f"y names the topic {short(unknown[0])}, which is {why}.")
        lists = [[spelling[name] for name in names] for names in lists]
        self.members = indicator_matrix(lists, place, np.arange(len(lists)), len(lists)) != 0

    def part(self, rows: Matrix) -> LabelLists:
        part = copy.copy(self)
        part.members, part.labeled = self.members[rows], self.labeled[rows]
        return part

    def matrix(self, dtype: npt.DTypeLike) -> sp.csr_array:
        """Return Y, with classes in their order."""
        return sp.csr_array(self.members[:, self.order].astype(dtype))

    def support(self, rank: int) -> Array:
        """Return T, (n, rank): whether a document may have a topic."""
        return allowed(len(self.labeled), self.labeled, self.members[self.labeled], rank)


def allowed(
    n: int, rows: Array | slice, members: Any, owner: Array | int, *, free: bool = False
) -> Array:
    """Return T of TS-NMF, (n, r): which components each of n samples may use.

    `members` (l, k) are the classes of samples `rows`, which use the components of these classes;
    samples without a class use all (MacMillan and Wilson 2017, L of eq. 2).  `owner` (r,) are the
    classes of the components.  Components from class k on have none; `free` tells whether samples
    with a class use these, too.
    """
    uses = np.asarray((members.toarray() if sp.issparse(members) else members) > 0)
    k, owner = uses.shape[1], np.arange(owner) if isinstance(owner, int) else owner
    padded = np.pad(uses, ((0, 0), (0, 1)), constant_values=free)
    T = np.ones((n, len(owner)), dtype=bool)
    T[rows] = padded[:, np.minimum(owner, k)] | ~uses.any(axis=1, keepdims=True)
    return T


def _is_list(entry: object) -> bool:
    return isinstance(entry, _LISTS) and entry is not np.ma.masked


def _read_list(i: int, entry: Any) -> list[Any]:
    """Return the topics of document i without missing values."""
    if _is_list(entry):
        labels = (v for v in entry if not is_missing(v))
        return [v.item() if isinstance(v, np.generic) else v for v in labels]
    if not is_missing(entry):
        hint = "expected a list (empty for an unlabeled document) or None."
        raise ValueError(f"y[{i}] is {short(entry)}, but other entries are lists of topics; {hint}")
    return []


def indicator_matrix(
    lists: Sequence[Sequence[Any]], position: Mapping[Any, int], rows: Array, n: int
) -> sp.csr_array:
    """Return the counts of labels in the list of each sample, (n, k)."""
    columns = [position[name] for names in lists for name in names]
    pairs = (np.repeat(rows, [len(names) for names in lists]), np.array(columns, dtype=np.int64))
    return sp.csr_array((np.ones(len(columns)), pairs), shape=(n, len(position)))


def is_indicator(y: object) -> bool:
    """Return whether `y` is a matrix of labels, not a vector or column of class labels."""
    if sp.issparse(y):
        return True
    _refuse_lists(y, "y")
    shape = as_array(unmask_labels(y), "y", allow_objects=True).shape
    return len(shape) == 2 and shape[1] > 1


def labels_of(
    y: object, marker: object, known_classes: Array | None = None
) -> ClassLabels | Indicators:
    return Indicators(y) if is_indicator(y) else ClassLabels(y, marker, known_classes)


def _numbers(y: Any) -> Array:
    array = as_array(y, "y", allow_nan=True)
    try:
        if array.dtype.kind in "cmM":
            raise TypeError(array.dtype)
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers; got dtype {array.dtype}.") from error


def names_array(names: Any) -> Array:
    names = list(names)
    array = np.array(names)
    if array.ndim == 1 and array.tolist() == names:
        return array
    return np.fromiter(names, object, len(names))


def sorting(names: Array) -> Array:
    """Return the order of sorted names; names of several kinds are sorted as text."""
    return np.argsort(names.astype(str) if names.dtype == object else names, kind="stable")


def _check_names(names: list[Any]) -> Array:
    forms = [nfc(name) for name in names]
    if len(set(forms)) < len(forms):
        repeated = next(name for name in forms if forms.count(name) > 1)
        raise ValueError(f"topic_names holds {short(repeated)} twice.")
    return names_array(names)
