"""Estimator :class:`HierarchicalClassifier` and its trees of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LabelsLike, VectorLike
from .._common.bases import ClassifierMixin
from .._common.locks import cached_property
from .._common.saved import Saved, SavedModels
from .._common.text import as_first_given, nfc, short
from .._data.arrays import DataLike, is_missing
from .._data.threads import one_blas_thread
from .._labels import ClassLabels
from .._topics import Topics, divide_by_sums
from ._base import Estimator, require, score_labeled
from ._docstrings import complete_docstring
from ._explanation import Explanation
from ._few_labels import FewLabelsClassifier
from ._predicting import Method
from ._training_data import checked_weight
from ._trees import place_of_level

_LAST_COUNTS = 3  # weight of a label of the last level relative to one of a level above
_LEAST = 1e-12  # lower bound of probabilities


@dataclass(frozen=True)
class Hierarchy:
    """A tree of labels: nodes, (n_nodes,), and the numbers of their parents, -1 at the top.

    A label without parts also belongs to all levels below its own.
    """

    nodes: Array
    parents: Array

    @classmethod
    def of(
        cls, names: Iterable[Any], parents: Mapping[Any, Any] | None, separator: str | None
    ) -> Hierarchy:
        """Return the tree of labels given their parents, or a separator of their parts."""
        if not isinstance(parents, Mapping | None):
            kind = "a mapping of labels to their parents, such as {'wheat': 'grain'}"
            raise TypeError(f"parents must be {kind}; got {type(parents).__name__}.")
        if parents is None and (separator == "" or not isinstance(separator, str | None)):
            raise TypeError(f"separator must be a nonempty string or None; got {short(separator)}.")
        pairs = (parents or {}).items()
        above = {nfc(part): whole for part, whole in pairs if not is_missing(whole)}
        paths = []
        for name in names:
            path = [name]
            if parents is None and separator is not None and isinstance(name, str):
                parts = name.split(separator)
                if not all(parts):
                    hint = "Give another separator, or None if labels have no parts."
                    empty = f"The label {short(name)} has an empty part next to {separator!r}"
                    raise ValueError(f"{empty}. {hint}")
                path = [separator.join(parts[:end]) for end in range(1, len(parts) + 1)]
            while nfc(path[0]) in above:
                path.insert(0, above[nfc(path[0])])
                if nfc(path[0]) in map(nfc, path[1:]):
                    raise ValueError(f"parents has a cycle: {short(path[0])} is part of itself.")
            paths.append(path)
        first = as_first_given(label for path in paths for label in path)
        whole = [tuple(first[label] for label in path) for path in paths]
        prefixes = {path[:end] for path in whole for end in range(1, len(path) + 1)}
        try:
            ordered = sorted(prefixes, key=lambda path: (len(path), path))
        except TypeError as error:
            text = "Labels mix text and numbers, which cannot be sorted; use one type."
            raise ValueError(text) from error
        place = {path: k for k, path in enumerate(ordered)}
        numbers = [place[path[:-1]] if len(path) > 1 else -1 for path in ordered]
        return cls(np.array([path[-1] for path in ordered]), np.array(numbers, dtype=np.int64))

    @cached_property
    def table(self) -> Array:
        """The node of each level that contains a node, or -1 for parts of it, (n_nodes, levels)."""
        paths: list[list[int]] = []
        for node, parent in enumerate(self.parents.tolist()):
            paths.append([*(paths[parent] if parent >= 0 else []), node])
        depth, wholes = max(map(len, paths)), {*self.parents.tolist()}
        below = ([-1 if p[-1] in wholes else p[-1]] * (depth - len(p)) for p in paths)
        return np.array([path + rest for path, rest in zip(paths, below, strict=True)])

    @property
    def depth(self) -> int:
        return int(self.table.shape[1])

    def labels(self, labels: ClassLabels, level: int) -> tuple[Array, Array]:
        """Return the labels of samples at a level, None if unknown, and which are known."""
        nodes = self.nodes.tolist()
        place = {nfc(label): node for node, label in enumerate(nodes)}
        names = np.full(len(labels.labeled), None, dtype=object)
        for row, name in zip(np.flatnonzero(labels.labeled), labels.values.tolist(), strict=True):
            if nfc(name) not in place:
                raise ValueError(f"y holds {short(name)}, which is not a label of the fit.")
            node = self.table[place[nfc(name)], level]
            names[row] = None if node < 0 else nodes[node]
        return names, np.array([name is not None for name in names], dtype=bool)

    def level(self, level: int) -> Array:
        """Return the numbers of the nodes of a level, in the order of their labels."""
        nodes = {*self.table[:, level].tolist()} - {-1}
        return np.array(sorted(nodes, key=lambda node: self.nodes[node]))

    def members(self, level: int) -> Array:
        """Return 1 where a node of the last level is part of a node of a level, (last, level)."""
        last = self.table[self.level(-1), level]
        return np.asarray(last[:, None] == self.level(level), dtype=np.float64)


def _if_wrapped_has(name: str) -> Callable[[Method], Method]:
    """Return a decorator that makes a method available where the wrapped classifier has it."""

    def has(model: HierarchicalClassifier) -> bool:
        return hasattr(getattr(model, "classifiers_", [model._wrapped()])[-1], name)

    decorate: Callable[[Method], Method] = available_if(has)
    return decorate


@complete_docstring
@dataclass(eq=False, repr=False)
class HierarchicalClassifier(ClassifierMixin, Estimator):
    """Classifier for a tree of labels, with one classifier per level.

    Labels may belong to any level, and most samples may be unlabeled.  The classifier of the last
    level predicts the labels without parts; those of the other levels correct the sums of its
    probabilities.  The probability of a label is always the sum of those of its parts.

    Parameters
    ----------
    estimator : classifier, optional
        Needs ``predict_proba``; None is ``FewLabelsClassifier()``.  Each level has a clone, fitted
        only to the samples with a label of the level unless it has a parameter `unlabeled`.
    parents : mapping, optional
        Parents of labels, such as ``{"wheat": "grain", "corn": "grain"}``.  None splits text labels
        at the `separator`.
    separator : str or None
        Separator of the parts of a label: "comp/comp.graphics" is part of "comp".  With None, and
        for numbers, labels have no parts.

    Attributes
    ----------
    levels_ : list of ndarray
        Sorted labels of each level, from the top; a label without parts is in all levels below too.
    classes_ : ndarray, shape (k,)
        The labels of the last level.
    classifiers_ : list of classifiers or None
        One for each level; None for a level with a single label.
    nodes_ : ndarray
        All labels, from the top.
    node_parents_ : ndarray of int
        Positions of the parents in `nodes_`; -1 at the top.
    level_weights_ : ndarray, shape (levels,)
        Weight of each level's classifier relative to the sums of the last level: the share of its
        labels in those of both levels, where labels of the last level count three times.

    See Also
    --------
    FewLabelsClassifier : Labels of one level.
    ssnmf_fast.trees.topic_tree : A tree of topics without labels.

    Notes
    -----
    `y` in :meth:`fit` holds one label for each sample, or None, NaN or -1 for an unlabeled one.
    From the level above the last up to the top, the logarithms of the summed probabilities are
    averaged with those of the level's classifier, with weights `level_weights_`.

    :meth:`transform` and :meth:`topics` are those of the classifier of the last level.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [0, 3, 1, 0], [2, 2, 0, 0], [0, 0, 1, 3],
    ...               [0, 0, 0, 4]])
    >>> y = ["food/corn", "food/rice", "food", "metal", None]
    >>> base = sf.FewLabelsClassifier(random_state=0)
    >>> model = sf.HierarchicalClassifier(base).fit(X, y)
    >>> print(model.predict(X[3:]), model.predict(X[:2], level=0))
    ['metal' 'metal'] ['food' 'food']
    """

    estimator: Any = None
    _: KW_ONLY
    parents: Mapping[Any, Any] | None = None
    separator: str | None = "/"
    unlabeled: Any = "auto"

    _of_methods: ClassVar = """
    Parameters
    ----------
    level : int
        0 for the top, -1 for the last.
    **parameters
        Passed on to the classifiers, such as `X_weights` or `side`.
    """
    _saved: ClassVar = {
        "nodes_": Saved("t"),
        "node_parents_": Saved("t", "-1<t"),
        "level_weights_": Saved("l", "nonnegative"),
        "classifiers_": SavedModels(),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._wrapped()).input_tags
        tags.classifier_tags.poor_score = tags.target_tags.required = True
        return tags

    def _wrapped(self) -> Any:
        return FewLabelsClassifier() if self.estimator is None else self.estimator

    def fit(
        self,
        X: DataLike,
        y: LabelsLike = None,
        *,
        sample_weight: VectorLike = None,
        **fit_parameters: object,
    ) -> HierarchicalClassifier:
        """Learn from samples and the labels of some of them.

        Parameters
        ----------
        **fit_parameters
            Passed on to the fit of every classifier, such as `label_weight`, `X_weights` or `side`.
        """
        require(self, X, y)
        if getattr(getattr(X, "dtype", None), "kind", "") == "c":
            raise ValueError("Complex data not supported: X must hold real numbers.")
        labels = ClassLabels(y, self.unlabeled)
        labels.check_fit()
        weight = checked_weight(sample_weight, len(labels.labeled))
        tree = Hierarchy.of(labels.values.tolist(), self.parents, self.separator)
        self.nodes_, self.node_parents_ = tree.nodes, tree.parents
        self.classifiers_: list[Any] = []
        counts = []
        for level in range(tree.depth):
            names, mask = tree.labels(labels, level)
            counts.append(float(mask.sum() if weight is None else mask @ weight))
            self.classifiers_.append(None)
            if len(tree.level(level)) < 2:
                continue
            if not hasattr(self._wrapped(), "predict_proba"):
                hint = "CalibratedClassifierCV of scikit-learn adds it."
                kind = f"a classifier with predict_proba; got {short(self.estimator)}"
                raise TypeError(f"estimator must be {kind}. {hint}")
            model = clone(self._wrapped())
            # Samples without a label of the level are left out, unless the classifier takes them.
            markers = [name for name in model.get_params() if f"__{name}".endswith("__unlabeled")]
            model.set_params(**dict.fromkeys(markers))
            if weight is not None:
                fit_parameters["sample_weight"] = weight if markers else weight[mask]
            part: Any = X
            if not markers:
                part, names = _safe_indexing(X, np.flatnonzero(mask)), names[mask].tolist()
            self.classifiers_[-1] = model.fit(part, np.array(names), **fit_parameters)
        if self.classifiers_[-1] is None:
            only = short(tree.nodes.tolist()[-1])
            hint = "Label samples of another one, or use NMF."
            raise ValueError(f"y has only one label without parts, {only}. {hint}")
        total = np.array(counts)
        self.level_weights_ = total / (total + _LAST_COUNTS * total[-1])
        return self

    def _check_loaded(self) -> None:
        """Raise ValueError if loaded classifiers do not fit the tree."""
        tree, n = self._hierarchy, len(self.nodes_)
        if not all(-1 <= parent < node for node, parent in enumerate(self.node_parents_.tolist())):
            raise ValueError("node_parents_ must be positions of earlier labels")
        lengths = {len(self.classifiers_), len(self.level_weights_)}
        if n != len(self.node_parents_) or lengths != {tree.depth}:
            raise ValueError("classifiers_ and levels are inconsistent")
        for model, level in zip(self.classifiers_, self.levels_, strict=True):
            if not np.array_equal(level[:1] if model is None else model.classes_, level):
                raise ValueError("classifiers_ and classes are inconsistent")

    @property
    def _hierarchy(self) -> Hierarchy:
        check_is_fitted(self)
        return Hierarchy(self.nodes_, self.node_parents_)

    @property
    def levels_(self) -> list[Array]:
        """Sorted labels of each level, from the top."""
        tree = self._hierarchy
        return [tree.nodes[tree.level(level)] for level in range(tree.depth)]

    @property
    def classes_(self) -> Array:
        """The labels of the last level."""
        return self.levels_[-1]

    n_features_in_ = property(lambda self: self._at(-1).n_features_in_)
    feature_names_in_ = property(lambda self: self._at(-1).feature_names_in_)

    def _at(self, level: int) -> Any:
        model = self.classifiers_[place_of_level(level, self._hierarchy.depth)]
        if model is None:
            raise ValueError(f"level {level} has a single label, and so no classifier.")
        return model

    @one_blas_thread()
    def predict_proba(self, X: DataLike, *, level: int = -1, **parameters: object) -> Array:
        """Return the probability of each label of a level.

        Returns
        -------
        ndarray, shape (n, labels of the level)
            Columns are those of ``levels_[level]``.  Rows sum to 1, and the probability of a label
            is the sum of those of its parts.
        """
        tree = self._hierarchy
        level = place_of_level(level, tree.depth)
        P = self.classifiers_[-1].predict_proba(X, **parameters)
        for upper in reversed(range(tree.depth - 1)):
            if self.classifiers_[upper] is None:
                continue
            members, weight = tree.members(upper), self.level_weights_[upper]
            sums = np.maximum(P @ members, _LEAST)
            chances = np.maximum(self.classifiers_[upper].predict_proba(X, **parameters), _LEAST)
            product = divide_by_sums(sums ** (1 - weight) * chances**weight)
            P = divide_by_sums(P * ((product / sums) @ members.T))
        return np.asarray(P @ tree.members(level))

    def decision_function(self, X: DataLike, *, level: int = -1, **parameters: object) -> Array:
        """Return the logarithms of the probabilities; for two labels, the second minus the first.

        Returns
        -------
        ndarray, shape (n, labels of the level) or (n,)
        """
        logs = np.log(np.maximum(self.predict_proba(X, level=level, **parameters), _LEAST))
        return np.asarray(logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs)

    def predict(self, X: DataLike, *, level: int = -1, **parameters: object) -> Array:
        """Return the most probable label of a level.

        Returns
        -------
        ndarray, shape (n,)
        """
        chances = self.predict_proba(X, level=level, **parameters)
        return np.asarray(self.levels_[level][chances.argmax(axis=1)])

    def score(
        self,
        X: DataLike,
        y: LabelsLike,
        sample_weight: VectorLike = None,
        *,
        level: int = -1,
        **parameters: object,
    ) -> float:
        """Return the accuracy at a level, without samples whose label at the level is unknown."""
        tree, labels = self._hierarchy, ClassLabels(y, self.unlabeled, self.nodes_)
        level = place_of_level(level, tree.depth)
        truth, mask = tree.labels(labels, level)
        predicted = self.predict(X, level=level, **parameters)
        target = np.array(truth[mask].tolist())
        return score_labeled(predicted, target, mask, sample_weight, accuracy_score)

    @_if_wrapped_has("explain")
    def explain(self, X: DataLike, *, level: int = -1, **parameters: object) -> Explanation:
        """Explain the uncorrected scores of the classifier of a level."""
        explanation: Explanation = self._at(level).explain(X, **parameters)
        return explanation

    @_if_wrapped_has("suggest")
    def suggest(self, X: DataLike, n: int = 10, *, level: int = -1, **parameters: object) -> Array:
        """Choose samples to label next, according to the classifier of a level."""
        return np.asarray(self._at(level).suggest(X, n, **parameters))

    def transform(self, X: DataLike, **parameters: object) -> Array:
        """Represent samples by the topics of the last level."""
        return np.asarray(self._at(-1).transform(X, **parameters))

    @_if_wrapped_has("topics")
    def topics(self, feature_names: VectorLike = None, n_terms: int = 10) -> Topics:
        """Return the topics of the classifier of the last level."""
        topics: Topics = self._at(-1).topics(feature_names, n_terms)
        return topics

    def get_feature_names_out(self, input_features: VectorLike = None) -> Array:
        """Return the names of the topics of the last level."""
        return np.asarray(self._at(-1).get_feature_names_out(input_features))
