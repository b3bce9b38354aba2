"""Estimator :class:`Recommender`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, Seed
from .._common.saved import COUNT, NUMBER, Saved
from .._common.text import short
from .._common.warn import warn_user
from .._data.arrays import drop_entries, with_values
from .._data.border import check_integer, check_option, check_random_state, check_real
from .._data.threads import resolve_threads
from .._linalg import unit_rows
from .._recommend import factors, lists, pairs
from .._recommend.factors import Setting
from .._recommend.lists import Reasons, Recommendations
from .._recommend.validation import Trial, best_setting
from .._topics import Records, Topics, make_topics
from ..metrics import ranking
from ._base import Estimator
from ._docstrings import complete_docstring

_RANK, _SHARE = 128, 8  # components by default, and users or items per component, at least
_TRIED = ((4.0, 0.02), (8.0, 0.015), (8.0, 0.03))  # unseen weights and ridges, the default first
_LARGE_RANK = 256
_MOST_ITEMS = 20_000  # for neighbors, which need arrays of items x items


@complete_docstring
@dataclass(eq=False, repr=False)
class Recommender(Estimator):
    r"""Recommend items to users, given the items that they have chosen, rated or used.

    A weighted factorization of all pairs of users and items: observed pairs have their values as
    targets, all other pairs 0 with a small weight ([1]_, [2]_).  If `n_components`, `unseen_weight`
    or `ridge` is "auto", a few settings are compared on a hidden tenth of the pairs; numbers that
    are given are kept.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of components r.  None is 128, but at most an eighth of the users and of the items.
    values : {"auto", "graded", "counts", "ones"}
        "graded": ratings; users dislike items with low values.  "counts": numbers of uses, such as
        plays.  "ones": values are ignored.  "auto" is "ones" if all values are equal, "counts" if
        they range from 0 or more to above 10 and are mostly small, or if half of them equal the
        lowest, which is at least 1, and otherwise "graded".
    nonnegative : bool
        Whether the factors are nonnegative, as required by :meth:`topics`.
    unseen_weight : float, "auto" or None
        Total weight of all pairs relative to that of the observed pairs; None is 4.  The weight of
        a single pair is at most 0.5.
    ridge : float, "auto" or None
        Penalty on the squares of the factors, per unit of weight of a user or item; None is 0.02.
    neighbors : False or "auto"
        Whether to add half of a score from similar items (EASE [3]_), for at most 20,000 items.
    max_iter : int
        Number of passes over users and items.
    random_state : None, int, Generator or RandomState
        Seed of the start and of the hidden pairs.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Factor of the items.
    representation_ : ndarray, shape (n, r)
        Factor of the users.
    user_ids_, item_ids_ : ndarray, shapes (n,) and (m,)
        Sorted ids of users and items.
    pairs_ : scipy.sparse.csr_array, shape (n, m)
        Values of the pairs.
    values_ : {"graded", "counts", "ones"}
        Kind of the values.
    validation_ : list of Trial
        Settings that were compared, and popular items, with nDCG@10 on a hidden tenth of each
        user's pairs; empty if no parameter is "auto".
    unseen_weight_, ridge_, n_components_
        Settings of the fit.

    See Also
    --------
    ssnmf_fast.complete : Predicted values of pairs, such as ratings.
    ssnmf_fast.metrics.ranking : Measures of lists.

    Notes
    -----
    The objective is :math:`\sum_{\mathrm{observed}} (z - f^T g)^2 + w \sum_{\mathrm{all}} (z - f^T
    g)^2`, with ridge penalties ``ridge (N + w m)`` for a user with N pairs, and likewise for items;
    w is `unseen_weight` times the share of observed pairs.  Targets z are ratings scaled from 0
    (lowest) to 1, ``log(1 + count)`` divided by its mean for the user, or ones.  Each pass takes
    three conjugate gradient steps per row [4]_, in float32.

    References
    ----------
    .. [1] Y. Hu, Y. Koren, C. Volinsky, "Collaborative filtering for implicit feedback datasets",
       ICDM 2008.
    .. [2] S. Rendle, W. Krichene, L. Zhang, Y. Koren, "Revisiting the performance of iALS on item
       recommendation benchmarks", RecSys 2022.
    .. [3] H. Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
    .. [4] G. Takacs, I. Pilaszy, D. Tikk, "Applications of the conjugate gradient method for
       implicit feedback collaborative filtering", RecSys 2011.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> users = ["Ann", "Ann", "Bob", "Bob", "Bob", "Cleo", "Cleo", "Dan"]
    >>> items = ["tea", "jam", "tea", "jam", "bread", "nails", "hammer", "nails"]
    >>> model = sf.Recommender(random_state=0).fit(users, items)
    >>> model.recommend(["Dan"], n=1).items[0, 0]
    'hammer'
    """

    n_components: int | Literal["auto"] | None = None
    _: KW_ONLY
    values: Literal["auto", "graded", "counts", "ones"] = "auto"
    nonnegative: bool = False
    unseen_weight: float | Literal["auto"] | None = None
    ridge: float | Literal["auto"] | None = None
    neighbors: Literal[False, "auto"] = False
    max_iter: int = 12
    random_state: Seed = None
    n_threads: int | None = None
    verbose: int = 0

    _saved: ClassVar = {
        "components_": Saved("rm", "finite"),
        "representation_": Saved("nr", "finite"),
        "pairs_": Saved("nm", "finite"),
        "item_weights_": Saved("mm", "finite", optional=True),
        "user_ids_": Saved("n"),
        "item_ids_": Saved("m"),
        "values_": Saved(kind=str),
        "scale_": Saved(kind=list[float]),
        **dict.fromkeys(("base_weight_", "unseen_weight_", "ridge_"), NUMBER),
        **dict.fromkeys(("n_components_", "n_features_in_", "n_iter_"), COUNT),
        "validation_": Saved(kind=list[Trial]),
    }
    _of_methods: ClassVar = """
    Parameters
    ----------
    X : scipy.sparse or array_like, shape (n, m)
        Values of pairs, as `users` of :meth:`fit`.
    """

    def fit(
        self,
        users: Any,
        items: Any = None,
        values: npt.ArrayLike | None = None,
        *,
        columns: Iterable[str] | None = None,
    ) -> Recommender:
        """Learn from pairs of users and items.

        Parameters
        ----------
        users : array_like of ids, DataFrame or scipy.sparse of shape (n, m)
            The user of each pair; or a table of pairs; or a matrix with pairs as stored entries,
            whose ids are the numbers of rows and columns.  In a dense array, pairs are the entries
            other than 0 and NaN.
        items : array_like of ids, optional
            The item of each pair.
        values : array_like, optional
            The value of each pair; by default, pairs are counted.
        columns : sequence of str, optional
            Names of the columns of users, items and, optionally, values in a DataFrame; by default
            "user", "item" and, if it exists, "rating".
        """
        table = pairs.read_pairs(users, items, values, columns)
        X, kinds = table.X, ("auto", "graded", "counts", "ones")
        kind = check_option(self.values, "values", kinds)
        self.values_ = pairs.kind_of(X.data, table.counted) if kind == "auto" else kind
        self.pairs_, self.user_ids_, self.item_ids_ = table[:3]
        self.scale_ = [float(X.data.min()), float(X.data.max())]
        self.n_features_in_ = X.shape[1]
        if self.neighbors is not False:
            check_option(self.neighbors, "neighbors", ("auto",))
        threads, rng = resolve_threads(self.n_threads), check_random_state(self.random_state)
        passes = check_integer(self.max_iter, "max_iter", 1)
        Z, most = self._targets(X), max(1, min(X.shape) // _SHARE)
        settings, compared = self._settings(most)
        setting, self.validation_ = settings[0], list[Trial]()
        if compared:
            larger = _LARGE_RANK if self.n_components == "auto" and most >= _LARGE_RANK else None
            options = settings, larger, passes, rng, threads
            setting, self.validation_ = best_setting(Z, self._relevant(X), *options)
        self.n_components_, self.unseen_weight_, self.ridge_, _ = setting
        self.n_iter_, self.base_weight_ = passes, setting.base(Z)
        F, G = factors.factorize_pairs(Z, setting, passes, rng, threads)
        self.representation_, self.components_ = F, np.ascontiguousarray(G.T)
        if self.neighbors and Z.shape[1] <= _MOST_ITEMS:
            self.item_weights_ = factors.item_weights(Z)
        elif self.neighbors:
            limit = f"neighbors supports at most {_MOST_ITEMS} items, not {Z.shape[1]}"
            warn_user(f"{limit}; only the factors are used.", UserWarning)
        if self.verbose:
            print(f"values: {self.values_}, {self.n_components_} components", file=sys.stderr)
        return self

    def _settings(self, most: int) -> tuple[list[Setting], bool]:
        """Return the settings to try, which keep given numbers, and whether to compare them."""
        setting = self.n_components, self.unseen_weight, self.ridge
        auto = [isinstance(one, str) and one == "auto" for one in setting]
        free = [one is None or is_auto for one, is_auto in zip(setting, auto, strict=True)]
        rank = min(_RANK, most) if free[0] else check_integer(setting[0], "n_components", 1)
        unseen = None if free[1] else check_real(setting[1], "unseen_weight")
        ridge = None if free[2] else check_real(setting[2], "ridge")
        if 0 in (unseen, ridge):
            raise ValueError(f"unseen_weight and ridge must be above 0; got {unseen} and {ridge}.")
        candidates = dict.fromkeys((unseen or first, ridge or second) for first, second in _TRIED)
        return [Setting(rank, *one, bool(self.nonnegative)) for one in candidates], any(auto)

    def _targets(self, X: sp.csr_array) -> sp.csr_array:
        return pairs.targets(X, self.values_, self.scale_)

    def _relevant(self, X: sp.csr_array) -> Array:
        """Return which pairs are relevant: all, or ratings above the mean."""
        if self.values_ != "graded":
            return np.ones(X.nnz, dtype=bool)
        return np.asarray(self.pairs_.data.mean() < X.data)

    def fold_in(self, histories: Any) -> Array:
        """Return the factor of new users from their histories.

        Parameters
        ----------
        histories : dict or scipy.sparse of shape (k, m)
            {name: items} or {name: {item: value}}; unknown items are ignored, and repeated ones
            counted.  Or a matrix of values with the columns of the fit.

        Returns
        -------
        ndarray, shape (k, r)
            Fitted with the items fixed; zeros for a user without known items.
        """
        check_is_fitted(self)
        return self._of_new(histories, "histories")[2]

    def _of_new(self, histories: Any, what: str) -> tuple[list[Any], sp.csr_array, Array]:
        names, X = pairs.read_histories(histories, self.item_ids_, self.values_, what)
        return names, X, self._folded(self._targets(X))

    def fit_transform(self, X: Any, y: None = None) -> Array:
        """Fit to a matrix of users and items, and return the factor of the users."""
        del y
        return np.asarray(self.fit(X).representation_)

    def transform(self, X: Any) -> Array:
        """Return the factor of users, by :meth:`fold_in`."""
        return self.fold_in(X)

    def _folded(self, Z: sp.csr_array) -> Array:
        threads = resolve_threads(self.n_threads)
        fitted = self.n_components_, self.unseen_weight_, self.ridge_, bool(self.nonnegative)
        G = np.ascontiguousarray(self.components_.T)
        return factors.fold_in(Z, G, Setting(*fitted), self.base_weight_, threads)

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: npt.ArrayLike | None = None,
        popularity: float = 0.0,
    ) -> Recommendations:
        """Return the items with the largest scores.

        Parameters
        ----------
        users : array_like of ids, dict or scipy.sparse, optional
            Users of the fit (None: all), or histories as in :meth:`fold_in`.  Unknown users, and
            users who like none of the known items, get popular items.
        n : int
            Maximum number of items per user, at least 1.
        exclude_seen : bool
            Whether to leave out the items of the user.
        items : array_like of ids, optional
            Items to choose from; None is all.
        popularity : float
            Scores are divided by this power of the popularity of the item; 0.1 recommends slightly
            less popular items, at a cost of 1 to 3 % of nDCG.

        Returns
        -------
        Recommendations
            Best first; items with equal scores are in the order of `item_ids_`.
        """
        check_is_fitted(self)
        n, power = check_integer(n, "n", 1), check_real(popularity, "popularity")
        if power < 0:
            raise ValueError(f"popularity must be at least 0; got {power}.")
        names, X, F = self._asked(users)
        allowed = None if items is None else np.unique(self._places(items, "items"))
        if allowed is not None and not len(allowed):
            raise ValueError("items is empty; give at least one, or None for all.")
        model = self._scores(X, F, power)
        n, threads = min(n, X.shape[1]), resolve_threads(self.n_threads)
        best, values = lists.best_items(
            model.block, X.shape, n, X if exclude_seen else None, allowed, threads
        )
        ids = np.fromiter([*self.item_ids_.tolist(), None], object)  # the last for places -1
        return Recommendations(names, ids[best], values, ~model.users)

    def _asked(self, users: Any) -> tuple[list[Any], sp.csr_array, Array]:
        """Return the names, values and factor of users."""
        if users is None:
            return self.user_ids_.tolist(), self.pairs_, self.representation_
        if isinstance(users, Mapping) or getattr(users, "ndim", 1) == 2:
            return self._of_new(users, "users")
        users = list(users) if isinstance(users, Iterator) else users
        place = pairs.places_of(users, self.user_ids_, "users")
        X = sp.csr_array(self.pairs_[np.maximum(place, 0)])
        if (place < 0).any():
            X = drop_entries(X, np.repeat(place < 0, np.diff(X.indptr)))
        F = np.where((place >= 0)[:, None], self.representation_[place], 0)
        return list(users), X, F.astype(np.float32)

    def _scores(self, X: sp.csr_array, F: Array, power: float) -> lists.Scores:
        G, W = self.components_.T, getattr(self, "item_weights_", None)
        Z = X if W is None else self._targets(X)  # neighbors alone need the targets
        return lists.Scores(F, G, Z, W, lists.popularity(self.pairs_), power)

    def similar_items(self, item: Any, n: int = 10) -> Records[tuple[Any, float]]:
        """Return the items whose factors have the largest cosines with the factor of an item.

        Parameters
        ----------
        item : id
            An item of the fit.
        n : int
            Number of items, at least 1.

        Returns
        -------
        list of (item, float)
            Ids and cosines, the largest first, without the item itself and items that nobody likes.
        """
        check_is_fitted(self)
        (place,), count = self._places([item], "item"), check_integer(n, "n", 1)
        G = unit_rows(self.components_.T)
        cosines = np.asarray(G @ G[place])
        others = G.any(axis=1) & G[place].any()
        others[place] = False
        best = np.argsort(np.where(others, -cosines, np.inf), kind="stable")
        best = best[: min(count, np.count_nonzero(others))]
        rows = zip(self.item_ids_[best].tolist(), cosines[best].tolist(), strict=True)
        return Records(rows, ("item", "cosine"))

    def _places(self, items: Any, name: str) -> Array:
        """Return the numbers of items, which must be in the fit."""
        ids = pairs.read_ids(items, name)
        places = pairs.places_of(ids, self.item_ids_)
        if (places < 0).any():
            one = ids.tolist()[int((places < 0).argmax())]
            raise ValueError(f"{name}: {short(one)} is not in the fit.")
        return places

    def explain(self, user: Any, item: Any) -> Reasons:
        """Return the contributions of a user's items, and of components, to an item's score.

        Parameters
        ----------
        user : id or dict
            A user of the fit, or a history {item: value}.
        item : id
            An item of the fit.

        Returns
        -------
        Reasons
            The score without neighbors, and the contributions of items and of components to it.
        """
        check_is_fitted(self)
        users = {"user": user} if isinstance(user, Mapping) else [user]
        _, X, _ = self._asked(users)
        if not X.nnz:
            raise ValueError(f"user is {short(user)}; no item is known.")
        Z, G = self._targets(X), self.components_.T.astype(np.float64)
        f = self._folded(Z)[0]
        used = f > 0 if self.nonnegative else np.ones(len(f), dtype=bool)
        own, base = G[Z.indices][:, used], self.base_weight_
        K = base * (G[:, used].T @ G[:, used]) + own.T @ own
        K[np.diag_indices_from(K)] += self.ridge_ * (Z.nnz + base * len(G))
        g = G[self._places([item], "item")[0]]
        shares = (1 + base) * Z.data * (own @ np.linalg.solve(K, g[used]))
        order = np.argsort(-shares, kind="stable")
        ids = self.item_ids_[Z.indices[order]].tolist()
        reasons = list(zip(ids, shares[order].tolist(), strict=True))
        return Reasons(float(shares.sum()), reasons, f * g)

    def evaluate(
        self,
        users: Any,
        items: Any = None,
        values: npt.ArrayLike | None = None,
        *,
        columns: Iterable[str] | None = None,
        k: int = 10,
    ) -> Records[dict[str, Any]]:
        """Evaluate recommendations on pairs that are not in the fit.

        Parameters
        ----------
        users, items, values, columns
            Pairs, as in :meth:`fit`; ratings above the mean of the fit are relevant.
        k : int
            Length of the lists.

        Returns
        -------
        list of dict
            Measures of :mod:`ssnmf_fast.metrics.ranking` for the model and for popular items: ndcg,
            precision, recall (hits over relevant items), map, coverage and popular_share.
        """
        check_is_fitted(self)
        k, test = check_integer(k, "k", 1), pairs.read_pairs(users, items, values, columns)
        place = pairs.places_in(pairs.Pairs(self.pairs_, self.user_ids_, self.item_ids_), test)
        names, X, F = self._asked(test.user_ids)
        m = len(self.item_ids_)
        place[place < 0] = m + np.arange(np.count_nonzero(place < 0))  # relevant, never recommended
        relevant = test.X.tocoo()
        likes = self._relevant(test.X)
        parts = np.ones(int(likes.sum())), (relevant.row[likes], place[relevant.col[likes]])
        relevant = sp.csr_array(sp.coo_array(parts, (len(names), max(m, int(place.max()) + 1))))
        if not relevant.nnz:
            raise ValueError("No pair is relevant: no rating is above the mean rating of the fit.")
        known = relevant[:, :m]
        if known.nnz == known.multiply(with_values(X, np.ones(X.nnz))).nnz:
            why = "their items are not in the fit, or all of these pairs are"
            raise ValueError(f"No relevant pair can be in a list: {why}; give pairs of a test set.")
        model, threads = self._scores(X, F, 0.0), resolve_threads(self.n_threads)
        popular = lists.popular_scores(model.popularity)
        rows: list[dict[str, Any]] = []
        for name, scores in ((type(self).__name__, model.block), ("popular items", popular)):
            best, _ = lists.best_items(scores, (len(names), m), k, X, None, threads)
            measures = {
                "ndcg": ranking.ndcg(best, relevant, k),
                "precision": ranking.precision(best, relevant, k),
                "recall": ranking.recall(best, relevant, k),
                "map": ranking.mean_average_precision(best, relevant, k),
                "coverage": ranking.coverage(best, m, k),
                "popular_share": ranking.popular_share(best, model.popularity, k),
            }
            rows.append({"lists": name, **measures})
        return Records(rows)

    def topics(self, n_terms: int = 10) -> Topics:
        """Return the items with the largest weights in each component, if nonnegative."""
        check_is_fitted(self)
        if not self.nonnegative:
            raise ValueError("topics needs nonnegative components; fit with nonnegative=True.")
        return make_topics(self.components_, self.item_ids_.astype(str), n_terms)
