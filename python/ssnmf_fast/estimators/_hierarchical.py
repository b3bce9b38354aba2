"""Estimator :class:`HierarchicalClassifier`, and the trees of labels it learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.bases import ClassifierMixin
from .._common.saved import Saved
from .._common.text import as_first_given, nfc, short
from .._data.threads import one_blas_thread
from .._labels import ClassLabels, is_missing
from .._topics import divide_by_sums
from ._base import FactorizationBase, Self, require, score_labeled
from ._docstrings import complete_docstring
from ._few_labels import FewLabelsClassifier
from ._readout import SavedReadout
from ._training_data import checked_weight
from ._trees import place_of_level

Path = tuple[Any, ...]  # labels from the top to one of them


@dataclass(frozen=True)
class Hierarchy:
    """A tree of labels, (n_nodes,), and the number of the parent of each, -1 at the top.

    A label without parts belongs to all levels below its own too.
    """

    nodes: Array
    parents: Array

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Hierarchy:
        """Return the tree of some paths; ValueError for text beside numbers."""
        paths = list(paths)
        name = as_first_given(label for path in paths for label in path)
        paths = [tuple(name[label] for label in path) for path in paths]
        prefixes = {path[:end] for path in paths for end in range(1, len(path) + 1)}
        try:
            ordered = sorted(prefixes, key=lambda path: (len(path), path))
        except TypeError as error:
            raise ValueError(
                "Labels are text and numbers, which have no order; use one kind for all levels."
            ) from error
        place = {path: k for k, path in enumerate(ordered)}
        parents = [place[path[:-1]] if len(path) > 1 else -1 for path in ordered]
        return cls(np.array([path[-1] for path in ordered]), np.array(parents, dtype=np.int64))

    @cached_property
    def paths(self) -> list[list[int]]:
        """The numbers of the nodes from the top to each."""
        found: list[list[int]] = []
        for node, parent in enumerate(self.parents.tolist()):
            found.append([*(found[parent] if parent >= 0 else []), node])
        return found

    @property
    def depth(self) -> int:
        """Number of levels."""
        return max(map(len, self.paths))

    def labels(self, given: Iterable[Any], level: int) -> list[Any]:
        """Return what labels are at a level, None where that is not known."""
        listed = self.nodes.tolist()
        place = {nfc(label): node for node, label in enumerate(listed)}
        found = []
        for label in given:
            if nfc(label) not in place:
                raise ValueError(f"y holds {short(label)}, which is none of the labels of the fit.")
            node = self.at(place[nfc(label)], level)
            found.append(None if node < 0 else listed[node])
        return found

    def at(self, node: int, level: int) -> int:
        """Return what a node is at a level: -1 where its parts are, but not which of them."""
        path = self.paths[node]
        if level < len(path):
            return path[level]
        return -1 if node in self.parents else node

    def level(self, level: int) -> Array:
        """Return the numbers of the nodes of a level, in the order of their labels."""
        found = {self.at(node, level) for node in range(len(self.nodes))} - {-1}
        return np.array(sorted(found, key=lambda node: self.nodes[node]))

    def members(self, level: int) -> Array:
        """Return which nodes of the last level a level's have, (last, level) of 0 and 1."""
        last = [self.at(node, level) for node in self.level(self.depth - 1).tolist()]
        return np.asarray(np.array(last)[:, None] == self.level(level), dtype=np.float64)


def paths_of(labels: ClassLabels, parents: Any, separator: str | None) -> list[Path]:
    """Return the path of every labeled sample: by its parents, or of the parts of its text."""
    if parents is not None:
        if not isinstance(parents, Mapping):
            raise TypeError(
                "parents must be a mapping of labels to what they are part of, such as "
                f"{{'wheat': 'grain'}}; got {type(parents).__name__}."
            )
        above = {nfc(part): whole for part, whole in parents.items() if not is_missing(whole)}
        return [_climbed(label, above) for label in labels.known.tolist()]
    if separator is None:
        return [(label,) for label in labels.known.tolist()]
    if not isinstance(separator, str) or not separator:
        raise TypeError(
            f"separator must be text that is not empty, or None; got {short(separator)}."
        )
    return [_cut(label, separator) for label in labels.known.tolist()]


def _climbed(label: Any, parents: Mapping[Any, Any]) -> Path:
    path = [label]
    while nfc(path[-1]) in parents:
        path.append(parents[nfc(path[-1])])
        if nfc(path[-1]) in map(nfc, path[:-1]):
            raise ValueError(f"parents has a circle: {short(path[-1])} is part of itself.")
    return tuple(reversed(path))


def _cut(label: Any, separator: str) -> Path:
    if not isinstance(label, str):
        return (label,)
    parts = label.split(separator)
    if not all(parts):
        raise ValueError(
            f"The label {short(label)} has an empty part beside {separator!r}. Give another "
            "separator, or separator=None if labels have no parts."
        )
    return tuple(separator.join(parts[:end]) for end in range(1, len(parts) + 1))


_PLAIN = {
    "components_": Saved("rm"),
    "class_shares_": Saved("rk"),
    "class_prior_": Saved("k", "finite"),
}
_READOUT = "readout_"


class Levels(list[Any]):
    """A fitted classifier for each level, or None."""

    def arrays(self) -> dict[str, Array]:
        """Return what predicts: arrays under "level/name" and "level/readout_/name"."""
        found: dict[str, Array] = {}
        for level, model in enumerate(self):
            if model is not None:
                parts = {name: getattr(model, name) for name in _PLAIN}
                of_readout = getattr(model, _READOUT).arrays()
                parts |= {f"{_READOUT}/{name}": part for name, part in of_readout.items()}
                found |= {f"{level}/{name}": np.asarray(part) for name, part in parts.items()}
        return found


class SavedLevels(Saved):
    """A :class:`Levels`, saved as its arrays."""

    @property
    def of_numbers(self) -> bool:
        return True

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Raise ValueError unless the parts are there and fit together."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no mapping of arrays")
        for level, parts in _by_level(value).items():
            if parts.keys() != {*_PLAIN, _READOUT}:
                raise ValueError(f"{name} has not the parts {[*_PLAIN, _READOUT]} of level {level}")
            own = {"m": sizes["m"]} if "m" in sizes else {}
            for part, saved in {**_PLAIN, _READOUT: SavedReadout()}.items():
                saved.check(f"{name}[{level}].{part}", parts[part], own)

    def restored(self, value: Any) -> Levels:
        """Return the classifiers of checked arrays; the model gives them names and parameters."""
        by_level = _by_level(value)
        found = Levels([None] * (max(by_level) + 1))
        for level, parts in by_level.items():
            model = FewLabelsClassifier(unlabeled=None)
            for name in _PLAIN:
                setattr(model, name, parts[name])
            model.readout_ = SavedReadout().restored(parts[_READOUT])
            model.n_features_in_ = model.components_.shape[1]
            model.multilabel_ = False
            found[level] = model
        return found


def _by_level(arrays: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the parts of every level: arrays, and those of the readout."""
    found: dict[int, dict[str, Any]] = {}
    for key, array in arrays.items():
        level, _, name = key.partition("/")
        parts = found.setdefault(int(level), {})
        group, _, inner = name.partition("/")
        if inner:
            parts.setdefault(group, {})[inner] = array
        else:
            parts[name] = array
    return found


_LAST_COUNTS = 3  # a label of the last level, beside one of a level above
_LEAST = 1e-12  # probability that can be corrected


@complete_docstring
@dataclass(eq=False, repr=False)
class HierarchicalClassifier(ClassifierMixin, FactorizationBase):
    """Semi-supervised NMF for labels that are parts of others, also with few labels.

    A label may be of any level: of some samples only the top is known, of most nothing.  Every
    level has a :class:`FewLabelsClassifier`.  The last one predicts the labels without parts; the
    others correct the sums of its probabilities.  So the probability of a label is always the sum
    of those of its parts.

    Parameters
    ----------
    parents : mapping, optional
        What labels are part of, as ``{"wheat": "grain", "corn": "grain"}``.  None cuts labels of
        text at the `separator`.
    separator : str or None
        Stands between the parts of a label, as in "comp/comp.graphics", which is part of "comp".
        None, or labels that are numbers: labels have no parts.
    loss : {"kullback-leibler", "frobenius"}
        Loss of X.

    Attributes
    ----------
    levels_ : list of ndarray
        The labels of every level, sorted, from the top; one without parts is in all below too.
    classes_ : ndarray, shape (k,)
        The labels of the last level.
    classifiers_ : list of FewLabelsClassifier or None
        One for each level; None where it has one label only.
    nodes_ : ndarray
        All labels, from the top.
    node_parents_ : ndarray of int
        Place in `nodes_` of what each is part of; -1 at the top.
    level_weights_ : ndarray, shape (levels,)
        How much the classifier of a level counts in its probabilities, beside the sums of the last
        one: the share of its labels in both, where those of the last level count three times.
    class_shares_ : ndarray, shape (r, k)
        Mean share of each component in the labeled samples of a class, seen without their labels.

    See Also
    --------
    FewLabelsClassifier : Labels of one level.
    ssnmf_fast.trees.topic_tree : A tree of topics without labels.

    Notes
    -----
    `y` in :meth:`fit` holds one label for each sample, or None, NaN or -1 for an unlabeled one.
    Probabilities of a level are multiplied by a power of what its classifier says (a weighted mean
    of logarithms), from the level above the last up to the top.

    Topics, and so :meth:`transform`, are those of the last level.  A loaded model predicts as
    before; what else its `classifiers_` know of their fits is not saved.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [0, 3, 1, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 0, 4]])
    >>> y = ["food/corn", "food/rice", "food", "metal", None]
    >>> model = sf.HierarchicalClassifier(random_state=0).fit(X, y)
    >>> print(model.predict(X[3:]), model.predict(X[:2], level=0))
    ['metal' 'metal'] ['food' 'food']
    """

    parents: Any = None
    _: KW_ONLY
    separator: str | None = "/"
    loss: str = "kullback-leibler"
    unlabeled: Any = "auto"

    _verifiable: ClassVar = False
    _saved: ClassVar = {
        "nodes_": Saved("t"),
        "node_parents_": Saved("t"),
        "level_weights_": Saved("l", "finite"),
        "classifiers_": SavedLevels(),
        "class_shares_": Saved("rk", optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(
        self: Self, X: Any, y: Any = None, *, X_weights: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn topics and predictions from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,)
            Labels, as the class describes them; unlabeled samples are allowed.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, sample_weight=sample_weight)
        return self

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, sample_weight: Any = None) -> None:
        require(self, X, y)
        weights = {"X_weights": X_weights, "sample_weight": sample_weight}
        weight = checked_weight(sample_weight, X.shape[0])
        labels = ClassLabels(y, self.unlabeled)
        labels.check_fit()
        hierarchy = Hierarchy.of(paths_of(labels, self.parents, self.separator))
        known = labels.known.tolist()
        classifiers, counts = Levels(), []
        for level in range(hierarchy.depth):
            own = np.full(len(labels.labeled), None, dtype=object)
            own[labels.labeled] = hierarchy.labels(known, level)
            labeled = np.array([label is not None for label in own], dtype=np.float64)
            counts.append(float(labeled.sum() if weight is None else labeled @ weight))
            several = len(hierarchy.level(level)) > 1
            model = FewLabelsClassifier(**self._shared()) if several else None
            classifiers.append(None if model is None else model.fit(X, own, **weights))
        if classifiers[-1] is None:
            raise ValueError(
                f"y has one label without parts only, {short(hierarchy.nodes.tolist()[-1])}; "
                "expected labeled samples of at least two. Label some of another one, or use NMF."
            )
        for name in ("components_", "representation_", "objective_", "n_iter_", "class_shares_"):
            setattr(self, name, getattr(classifiers[-1], name))
        self.nodes_, self.node_parents_ = hierarchy.nodes, hierarchy.parents
        self.classifiers_ = classifiers
        total = np.array(counts)
        self.level_weights_ = total / (total + _LAST_COUNTS * total[-1])

    def _shared(self) -> dict[str, Any]:
        """Return the parameters of the classifiers."""
        return self._arguments(FewLabelsClassifier) | {"unlabeled": None}

    def _check_loaded(self) -> None:
        """Name the classes of loaded classifiers; ValueError if they do not fit the tree."""
        tree, n = self._hierarchy, len(self.nodes_)
        if not all(-1 <= parent < node for node, parent in enumerate(self.node_parents_.tolist())):
            raise ValueError("node_parents_ are no places of labels before")
        lengths = {len(self.classifiers_), len(self.level_weights_)}
        if n != len(self.node_parents_) or lengths != {tree.depth}:
            raise ValueError("classifiers_ and levels contradict each other")
        for model, level in zip(self.classifiers_, self.levels_, strict=True):
            if len(level) != (1 if model is None else len(model.class_prior_)):
                raise ValueError("classifiers_ and classes contradict each other")
            if model is not None:
                model.set_params(**self._shared())
                model.classes_ = level

    @property
    def _hierarchy(self) -> Hierarchy:
        check_is_fitted(self)
        return Hierarchy(self.nodes_, self.node_parents_)

    @property
    def levels_(self) -> list[Array]:
        """The labels of every level, sorted, from the top."""
        tree = self._hierarchy
        return [tree.nodes[tree.level(level)] for level in range(tree.depth)]

    @property
    def classes_(self) -> Array:
        """The labels of the last level."""
        return self.levels_[-1]

    def _level(self, level: Any) -> int:
        """Return the number of a level, which may count from the last as -1."""
        return place_of_level(level, self._hierarchy.depth)

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        return self.classes_, self.class_shares_

    @one_blas_thread()
    def predict_proba(self, X: Any, level: int = -1, *, X_weights: Any = None) -> Array:
        """Return the probability of every label of a level.

        Parameters
        ----------
        level : int
            0 for the top, -1 for the last.

        Returns
        -------
        ndarray, shape (n, labels of the level)
            Columns are those of ``levels_[level]``.  Rows sum to 1, and the probability of a label
            is the sum of those of its parts.
        """
        level, tree = self._level(level), self._hierarchy
        X = self._checked(X, reset=False)
        P = self.classifiers_[-1].predict_proba(X, X_weights=X_weights)
        for upper in reversed(range(tree.depth - 1)):
            if self.classifiers_[upper] is None:
                continue
            members, weight = tree.members(upper), self.level_weights_[upper]
            sums = np.maximum(P @ members, _LEAST)
            said = self.classifiers_[upper].predict_proba(X, X_weights=X_weights)
            wanted = divide_by_sums(sums ** (1 - weight) * np.maximum(said, _LEAST) ** weight)
            P = divide_by_sums(P * ((wanted / sums) @ members.T))
        return np.asarray(P @ tree.members(level))

    def predict(self, X: Any, level: int = -1, *, X_weights: Any = None) -> Array:
        """Return the most probable label of a level.

        Parameters
        ----------
        level : int
            As in :meth:`predict_proba`.

        Returns
        -------
        ndarray, shape (n,)
        """
        chances = self.predict_proba(X, level, X_weights=X_weights)
        return np.asarray(self.levels_[level][chances.argmax(axis=1)])

    def score(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        level: int = -1,
        X_weights: Any = None,
    ) -> float:
        """Return the accuracy at a level; samples whose label there is not known are left out.

        Parameters
        ----------
        level : int
            As in :meth:`predict_proba`.
        """
        place, labels = self._level(level), ClassLabels(y, self.unlabeled, self.nodes_)
        truth = np.full(len(labels.labeled), None, dtype=object)
        truth[labels.labeled] = self._hierarchy.labels(labels.known.tolist(), place)
        known = np.array([label is not None for label in truth], dtype=bool)
        predicted = self.predict(X, place, X_weights=X_weights)
        target = np.array(truth[known].tolist())
        return score_labeled(predicted, target, known, sample_weight, accuracy_score)
