"""Recommender: pairs of users and items in, lists of items out."""

import json
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast.selection import split_interactions


def tastes(n_users=120, n_items=80, kinds=4, length=10, seed=0):
    """Users who like the items of one kind each, and a few others."""
    rng = np.random.default_rng(seed)
    users, items = [], []
    for user in range(n_users):
        own = rng.choice(np.arange(user % kinds, n_items, kinds), length, replace=False)
        other = rng.choice(n_items, 1)
        users += [user] * (length + 1)
        items += [*own, *other]
    pairs = np.unique(np.column_stack([users, items]), axis=0)
    return pairs[:, 0], pairs[:, 1]


USERS, ITEMS = tastes()
RATINGS = np.where(USERS % 4 == ITEMS % 4, 5.0, 1.0)
X = sp.csr_array(sp.coo_array((RATINGS, (USERS, ITEMS)), (120, 80)))
ONES = sp.csr_array((np.ones(X.nnz), X.indices, X.indptr), X.shape)


def model(**more):
    return sf.Recommender(8, random_state=0, **more)


FITTED = model().fit(X)


@pytest.mark.parametrize("values", ["graded", "counts", "ones"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_items_of_ones_own_kind_come_first(values, nonnegative):
    lists = model(values=values, nonnegative=nonnegative).fit(X).recommend(n=5)
    same = lists.items.astype(int) % 4 == np.arange(120)[:, None] % 4
    assert same.mean() > 0.9
    assert (np.diff(lists.scores, axis=1) <= 0).all()


def objective(fitted, Z):
    F, G, w = fitted.representation_, fitted.components_.T, fitted.base_weight_
    F, G, Z = F.astype(float), G.astype(float), Z.toarray()
    weights = w + (Z > 0)
    counts = np.count_nonzero(Z, axis=1), np.count_nonzero(Z, axis=0)
    value = (weights * (Z - F @ G.T) ** 2).sum()
    for side, count, others in ((F, counts[0], len(G)), (G, counts[1], len(F))):
        value += fitted.ridge_ * ((count + w * others) * (side**2).sum(axis=1)).sum()
    return value


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_objective_falls_with_more_passes(nonnegative):
    fits = [model(nonnegative=nonnegative, max_iter=k).fit(ONES) for k in (1, 2, 4, 8, 16)]
    values = [objective(fit, ONES) for fit in fits]
    assert (np.diff(values) <= 1e-5 * values[0]).all()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_users_are_the_minimizers_of_dense_weights(nonnegative):
    fit = model(nonnegative=nonnegative, max_iter=3).fit(ONES)
    G, w = fit.components_.T.astype(float), fit.base_weight_
    for row, f in zip(ONES.toarray()[:5], fit.fold_in(ONES[:5]), strict=True):
        weights = w + (row > 0)
        ridge = fit.ridge_ * (np.count_nonzero(row) + w * len(G))
        K = (G.T * weights) @ G + ridge * np.eye(G.shape[1])
        gradient = K @ f - G.T @ (weights * row)
        if nonnegative:
            assert (f >= 0).all()
            gradient = np.where(f > 0, gradient, np.minimum(gradient, 0))
        assert np.abs(gradient).max() < 1e-4 * np.abs(G.T @ (weights * row)).max()


def test_forms_of_pairs_give_the_same():
    names = np.array([f"u{u:03d}" for u in USERS]), np.array([f"i{i:03d}" for i in ITEMS])
    table = pd.DataFrame({"item": names[1], "user": names[0], "rating": RATINGS})
    other = table.rename(columns={"user": "who", "item": "what", "rating": "stars"})
    fits = [
        FITTED,
        model().fit(*names, RATINGS),
        model().fit(table),
        model().fit(other, columns=("who", "what", "stars")),
        model().fit(X.toarray()),
    ]
    for fit in fits:
        assert fit.values_ == "graded"
        np.testing.assert_array_equal(fit.components_, FITTED.components_)
    assert fits[1].item_ids_[3] == "i003"
    assert fits[2].recommend(["u005"], n=1).items[0, 0].startswith("i")


def test_ids_stay_as_they_are():
    mixed = np.array(["a", 1, "b", 1], dtype=object)
    fit = model().fit(["x", "x", "y", "y"], mixed)
    assert set(fit.item_ids_) == {"a", 1, "b"}
    assert model().fit([1.0, 2.0, 2.0], [3, 3, 4]).user_ids_.tolist() == [1, 2]


def test_ids_of_dates_and_of_equal_unicode_forms():
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    lists = model().fit(days, ["a", "b"]).recommend([days[1]])
    assert not lists.popular[0]
    assert lists.items.tolist() == [["a", None]]
    fit = model().fit(["\u00e9", "e\u0301", "x"], ["a", "b", "a"])
    assert fit.pairs_.shape == (2, 2)
    assert fit.recommend(["e\u0301", "\u00e9"]).popular.tolist() == [False, False]


HASHES = [2**63 + 1, 2**63 + 2**20, -1]
DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
NEAR = [2**60 + 1, 2**60 + 4, 5.0]


@pytest.mark.parametrize(
    "ids",
    [
        NEAR,
        np.array(NEAR, dtype=object),
        pd.Series(NEAR, dtype=object),
        HASHES,
        np.array([*HASHES[:2], 7], dtype=np.uint64),
        [2**60, Decimal(2**60 + 1), Decimal(2**60 + 2)],
        [np.int64(2**60), np.int64(2**60 + 1), 3.0],
        pd.Series([2**60, 2**60 + 1, 3], dtype="Int64"),
        json.loads("[1152921504606846976, 1152921504606846977, 1.5]"),
        [10**30, 10**30 + 1, 1],
        [("a", 1), ("a", 2), ("b", 1)],
        [frozenset("a"), frozenset("b"), frozenset("c")],
        ["a", 1, ("b", 2)],
        DAYS,
        DAYS.astype("M8[ns]"),
        pd.Series(DAYS),
        [*DAYS],
        DAYS.tolist(),
        [pd.Timestamp(day, tz="UTC") for day in DAYS],
    ],
)
def test_ids_are_kept_apart_and_found(ids, tmp_path):
    fit = model().fit(ids, ids)
    assert fit.pairs_.shape == (3, 3)
    assert not fit.recommend(ids).popular.any()
    assert sorted(map(str, fit.recommend(items=ids).items[:, 0])) != ["None"] * 3
    assert fit.evaluate(ids, [*ids[1:], *ids[:1]])[0]["coverage"] > 0
    assert split_interactions([*ids] * 9, by="time", times=range(27))[1].size == 3
    try:
        sf.save(fit, tmp_path / "model.npz")
        again = sf.load(tmp_path / "model.npz")
    except (TypeError, ValueError) as error:  # a kind that files cannot hold
        again = fit if "cannot be saved" in str(error) else None
    assert not again.recommend(ids).popular.any()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1e20, 2e20, 3e20], r"\[0\] is 1e\+20, a rounded"),
        (np.array([1.0, 2.0**53, 3.0]), r"\[1\] is 9007199254740992.0, a rounded"),
        (np.array([1, 2**24, 3], np.float32), r"\[1\] is 16777216.0, a rounded"),
        ([0.5, 2**60, 1e17], r"\[2\] is 1e\+17, a rounded"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "masked"),
        (["a", np.nan, "b"], r"\[1\] is missing"),
        (pd.Series(["a", None, "b"], dtype="string"), r"\[1\] is missing"),
        (pd.Series([1, pd.NA, 2], dtype="Int64"), r"\[1\] is missing"),
        ([1, pd.NaT, 2], r"\[1\] is missing"),
        ([Decimal("NaN"), 1, 2], r"\[0\] is missing"),
        (["a", ["b"], "c"], r"\[1\] is \['b'\]; a list cannot be an id"),
        (np.array([0, 1, 2], "M8[ns]"), "finer than microseconds"),
        ({1, 2, 3}, "of type set"),
        ("abc", "must be a list of ids"),
    ],
)
def test_ids_that_are_missing_or_rounded_are_refused(ids, message):
    fit = model().fit([1, 2, 3], [1, 2, 3])
    for call in (
        lambda: model().fit(ids, [1, 2, 3]),
        lambda: model().fit([1, 2, 3], ids),
        lambda: fit.evaluate([1, 2, 3], ids),
        lambda: fit.recommend(ids),
        lambda: fit.recommend(items=ids),
        lambda: split_interactions([1, 2, 3], ids),
        lambda: split_interactions(ids),
    ):
        refused(message, call, error=(TypeError, ValueError))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("neighbors", [False, "auto"])
def test_users_who_like_nothing_get_popular_items(nonnegative, neighbors):
    thumbs = np.where(USERS < 20, 0.0, np.maximum(USERS % 4 == ITEMS % 4, ITEMS == 7))
    fit = model(nonnegative=nonnegative, neighbors=neighbors).fit(USERS, ITEMS, thumbs)
    assert fit.values_ == "graded"
    down = {"new": dict.fromkeys(range(8), 0.0), "none": []}
    best = fit.recommend(["nobody"], n=80).items[0]
    for lists in (fit.recommend(np.arange(20), n=9), fit.recommend(down, n=9)):
        assert lists.popular.all()
        for name, row in zip(lists.users, lists.items, strict=True):
            own = {*down[name]} if name in down else {*ITEMS[name == USERS]}
            assert row.tolist() == [item for item in best if item not in own][:9]
    assert not fit.recommend(np.arange(20, 120)).popular.any()
    assert not model().fit([1, 1, 2], [1, 2, 3], [0, 1, 0]).similar_items(3)


def test_repeated_items_of_histories_are_merged_as_in_a_fit():
    rng = np.random.default_rng(1)
    items = rng.integers(0, 40, (60, 30)) ** 2 // 40
    users = np.repeat(np.arange(60), 30)
    fit = model().fit(users, items.ravel())
    assert fit.values_ == "counts"
    expected = fit.fold_in(fit.pairs_)
    for own in (items.tolist(), items, [iter(row) for row in items.tolist()]):
        found = fit.fold_in(dict(enumerate(own)))
        np.testing.assert_array_equal(found, expected)
    twice = model().fit(["u", "u", "v"], ["\u00e9", "e\u0301", "x"], [1, 4, 3])
    same = twice.fold_in([{"u": {"\u00e9": 1, "e\u0301": 4}}, {"u": {"\u00e9": 2.5}}][0])
    np.testing.assert_array_equal(same, twice.fold_in({"u": {"\u00e9": 2.5}}))


def test_given_numbers_are_used():
    fit = sf.Recommender(50, random_state=0, max_iter=1).fit(X)
    assert fit.n_components_ == len(fit.components_) == 50
    assert sf.Recommender(random_state=0, max_iter=1).fit(X).n_components_ == 10
    given = sf.Recommender("auto", unseen_weight=4.0, ridge=0.02, max_iter=1).fit(X)
    assert (given.unseen_weight_, given.ridge_) == (4.0, 0.02)


def test_ratings_are_scaled_before_they_are_rounded():
    fits = [model().fit(USERS, ITEMS, RATINGS + shift) for shift in (0, 1e8)]
    np.testing.assert_array_equal(*(fit.recommend().items for fit in fits))


def test_empty_lists_are_tables_with_columns():
    fit = model().fit(["a", "a"], [1, 2])
    for empty, full in (
        (fit.recommend(["a"]), FITTED.recommend([1])),
        (fit.recommend([]), FITTED.recommend([1])),
        (model().fit(["a"], [1]).similar_items(1), FITTED.similar_items(1)),
    ):
        table = empty.to_frame()
        assert len(table) == 0
        assert list(table.columns) == list(full.to_frame().columns)


def test_what_values_are():
    users, items = [1, 1, 2, 2, 3], [1, 2, 1, 3, 2]
    for values, kind in (
        (None, "ones"),
        ([3, 3, 3, 3, 3], "ones"),
        ([1, 5, 4, 2, 3], "graded"),
        ([-9.5, 3.2, 7.0, 0.1, 9.9], "graded"),
        ([10, 90, 70, 60, 55], "graded"),
        ([1, 2, 700, 3, 1], "counts"),
        ([1, 1, 2, 1, 3], "counts"),
        ([0, 0, 1, 0, 1], "graded"),
    ):
        assert model().fit(users, items, values).values_ == kind
    repeated = model().fit([1, 1, 1, 2, 2, 2], [5, 5, 6, 6, 5, 5])
    assert repeated.values_ == "counts"  # not ratings from 1 to 2
    repeated = model().fit([1, 1, 1, 2], [5, 5, 6, 6])
    assert repeated.pairs_.toarray().tolist() == [[2, 1], [0, 1]]
    assert model().fit([1, 1, 2], [5, 5, 6], [1, 5, 2]).pairs_[0, 0] == 3


def test_lists_leave_out_what_users_have():
    lists = FITTED.recommend(n=80)
    for user, row in enumerate(lists.items):
        own = set(ITEMS[user == USERS])
        kept = [item for item in row if item is not None]
        assert sorted([*kept, *own]) == list(range(80))
        assert np.isnan(lists.scores[user, len(kept) :]).all()
    with_all = FITTED.recommend(n=80, exclude_seen=False)
    assert (np.sort(with_all.items.astype(int), axis=1) == np.arange(80)).all()
    some = FITTED.recommend([3], n=5, items=[7, 8, 9, 11])
    assert {*some.items[0]} <= {7, 8, 9, 11, None}


def test_a_table_of_lists():
    lists = FITTED.recommend([4, 2], n=3)
    frame = lists.to_frame()
    assert list(frame.columns) == ["user", "item", "score", "rank"]
    assert frame["user"].tolist() == [4, 4, 4, 2, 2, 2]
    assert frame["rank"].tolist() == [1, 2, 3] * 2
    assert repr(lists) == "Recommendations(3 items for 2 users)"


def test_equal_scores_are_in_the_order_of_items():
    equal = sp.csr_array(np.kron(np.eye(2), np.ones((8, 8)))[:, ::-1])
    lists = model().fit(equal).recommend({"new": []}, n=16)
    assert lists.popular.tolist() == [True]
    assert lists.items[0].tolist() == list(range(16))


def test_strangers_get_what_users_get():
    own = {}
    for user in (0, 5, 9):
        mine = user == USERS
        own[f"copy of {user}"] = dict(zip(ITEMS[mine], RATINGS[mine], strict=True))
    folded = FITTED.recommend(own, n=5)
    np.testing.assert_array_equal(folded.items, FITTED.recommend([0, 5, 9], n=5).items)
    matrix = FITTED.recommend(X[[0, 5, 9]], n=5)
    np.testing.assert_array_equal(folded.items, matrix.items)
    assert np.abs(FITTED.transform(X) - FITTED.representation_).max() < 0.02
    likes = FITTED.recommend({"new": [0, 4, 8]}, n=5)
    assert (likes.items.astype(int) % 4 == 0).all()


def test_unknown_users_get_popular_items():
    lists = FITTED.recommend([3, "nobody"], n=4)
    assert lists.popular.tolist() == [False, True]
    counts = np.bincount(ITEMS, minlength=80)
    best = np.argsort(-counts, kind="stable")[:4]
    assert lists.items[1].tolist() == best.tolist()
    assert lists.scores[1] == pytest.approx(counts[best] / 120)
    assert "1 with popular items" in repr(lists)
    unknown = FITTED.recommend({"new": ["no such item"]}, n=4)
    assert unknown.items[0].tolist() == best.tolist()


def test_lists_can_be_made_less_popular():
    counts = np.bincount(ITEMS, minlength=80)
    lists = [FITTED.recommend(n=10, popularity=share).items for share in (0, 0.3, 1)]
    means = [counts[items.astype(int)].mean() for items in lists]
    assert means[0] >= means[1] >= means[2]
    assert means[0] > means[2]


def test_neighbors_are_those_of_ease():
    fit = model(neighbors="auto", values="ones").fit(X)
    ones = (X.toarray() > 0).astype(float)
    K = ones.T @ ones
    P = np.linalg.inv(K + np.trace(K) / len(K) * np.eye(len(K)))
    weights = -P / np.diag(P)
    np.fill_diagonal(weights, 0)
    np.testing.assert_allclose(fit.item_weights_, weights, atol=1e-4)

    def standardized(scores):
        return (scores - scores.mean(1, keepdims=True)) / scores.std(1, keepdims=True)

    scores = standardized(fit.representation_ @ fit.components_) + 0.5 * standardized(
        ones @ weights
    )
    found = fit.recommend(n=1, exclude_seen=False)
    assert found.scores[:, 0] == pytest.approx(scores.max(axis=1), rel=1e-3)


def test_similar_items_are_of_the_same_kind():
    similar = FITTED.similar_items(5, n=4)
    assert all(item % 4 == 1 and item != 5 for item, _ in similar)
    cosines = [cosine for _, cosine in similar]
    assert cosines == sorted(cosines, reverse=True)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_reasons_sum_to_the_score(nonnegative):
    fit = model(nonnegative=nonnegative).fit(X)
    own = dict(zip(ITEMS[USERS == 6].tolist(), RATINGS[USERS == 6], strict=True))
    for user in (6, own):
        reasons = fit.explain(user, 10)
        score = float(fit.fold_in({"u": own})[0] @ fit.components_[:, 10])
        assert reasons.score == pytest.approx(score, rel=1e-3)
        assert sum(share for _, share in reasons.items) == pytest.approx(reasons.score)
        assert reasons.parts.sum() == pytest.approx(reasons.score, rel=1e-3)
        assert reasons.items[0][0] % 4 == 2
        assert {item for item, _ in reasons.items} <= {*own}


def test_evaluation_has_popular_items_next_to_the_model():
    new, more = tastes(seed=1)
    known = set(zip(USERS.tolist(), ITEMS.tolist(), strict=True))
    fresh = np.array([pair not in known for pair in zip(new.tolist(), more.tolist(), strict=True)])
    rows = model().fit(USERS, ITEMS).evaluate(new[fresh], more[fresh], k=5)
    assert [row["lists"] for row in rows] == ["Recommender", "popular items"]
    assert rows[0]["ndcg"] > 2 * rows[1]["ndcg"]
    assert set(rows[0]) == {
        *("lists", "ndcg", "precision", "recall", "map", "coverage", "popular_share")
    }
    assert rows.to_frame().shape == (2, 7)


def test_validation_keeps_what_was_tried():
    fit = sf.Recommender("auto", random_state=0).fit(X)
    assert [one.name for one in fit.validation_] == ["Recommender"] * 3 + ["popular items"]
    best = max(fit.validation_, key=lambda one: one.ndcg)
    assert (fit.unseen_weight_, fit.ridge_) == (best.unseen_weight, best.ridge)
    assert fit.n_components_ == 10  # an eighth of the items
    kept = sf.Recommender("auto", random_state=0, ridge=0.1).fit(X)
    assert {one.ridge for one in kept.validation_[:-1]} == {0.1}
    assert FITTED.validation_ == []


def test_popular_items_may_win():
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, 41) ** 2
    pairs = [(u, i) for u in range(60) for i in np.unique(rng.choice(40, 6, p=p / p.sum()))]
    with pytest.warns(UserWarning, match="Popular items have nDCG@10"):
        sf.Recommender("auto", random_state=0).fit(*np.array(pairs).T)


def test_the_same_bits_for_any_number_of_threads():
    fits = [model(n_threads=k, neighbors="auto").fit(X) for k in (1, 3)]
    for name in ("components_", "representation_", "item_weights_"):
        np.testing.assert_array_equal(*(getattr(fit, name) for fit in fits))
    np.testing.assert_array_equal(*(fit.recommend().items for fit in fits))


@pytest.mark.parametrize("neighbors", [False, "auto"])
def test_a_model_is_saved_and_pickled(neighbors, tmp_path):
    fit = sf.Recommender("auto", random_state=0, neighbors=neighbors).fit(X)
    sf.save(fit, tmp_path / "model.npz")
    for again in (sf.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(fit))):
        np.testing.assert_array_equal(again.recommend().items, fit.recommend().items)
        assert again.validation_ == fit.validation_


def test_parts_of_nonnegative_models_can_be_read():
    fit = sf.Recommender(4, nonnegative=True, random_state=0).fit(
        [f"u{u}" for u in USERS], [f"item {i}" for i in ITEMS]
    )
    assert (fit.components_ >= 0).all()
    kinds = [{int(term.split()[1]) % 4 for term in topic.terms} for topic in fit.topics(5)]
    assert sorted(kinds, key=str) == [{0}, {1}, {2}, {3}]
    refused("nonnegative=True", FITTED.topics)


def test_inputs_are_not_changed():
    before = X.copy()
    model().fit(X).recommend(X, n=2)
    assert (abs(before - X)).nnz == 0


def test_data_elsewhere_are_refused_by_name(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    refused("Recommender", model().fit, sf.io.open_csr(tmp_path / "X.npz"), error=TypeError)

    class Elsewhere:
        __module__ = "dask.array.core"

    refused("Dask", model().fit, Elsewhere(), error=TypeError)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: model().fit([1, 2], [1]), ValueError, "items has 1 entries"),
        (lambda: model().fit([1, None], [1, 2]), ValueError, r"users\[1\] is missing"),
        (lambda: model().fit([1, 2], [1, 2], [1, np.nan]), ValueError, r"values\[1\]"),
        (lambda: model().fit([1, 2], [1, 2], ["a", "b"]), ValueError, "values must be numbers"),
        (lambda: model().fit([1, 2]), TypeError, "without items"),
        (lambda: model().fit([], []), ValueError, "no pair"),
        (lambda: model().fit(pd.DataFrame({"a": [1], "b": [2]})), ValueError, "columns must name"),
        (lambda: model().fit([1], [1], [1e300]), ValueError, "too large"),
        (lambda: model().fit([1], [2], columns=("a", "b")), TypeError, "data frame"),
        (lambda: model(values="counts").fit([1], [1], [-1]), ValueError, "'graded'"),
        (lambda: model(values="likes").fit(X), ValueError, "values must be one of"),
        (lambda: model(ridge=0).fit(X), ValueError, "above 0"),
        (lambda: model(neighbors=True).fit(X), ValueError, "neighbors"),
        (lambda: sf.Recommender(0).fit(X), ValueError, "n_components"),
        (lambda: FITTED.recommend("nobody"), TypeError, "list of ids"),
        (lambda: FITTED.recommend(n=0), ValueError, "n must be"),
        (lambda: FITTED.recommend(items=["none"]), ValueError, "'none'"),
        (lambda: FITTED.recommend(popularity=-1), ValueError, "popularity"),
        (lambda: FITTED.recommend(X[:, :5]), ValueError, "5 columns"),
        (lambda: FITTED.fold_in({"a": "text"}), TypeError, "list of items"),
        (lambda: FITTED.similar_items("none"), ValueError, "'none'"),
        (lambda: FITTED.explain("none", 1), ValueError, "no item is known"),
        (lambda: FITTED.evaluate([0], [0], [1.0]), ValueError, "No pair is relevant"),
        (lambda: FITTED.evaluate(["0"], [1], [5]), ValueError, "No user .*'0', those of the fit"),
        (lambda: FITTED.evaluate([0], ["1"], [5]), ValueError, "No item .*'1', those of the fit"),
        (lambda: FITTED.evaluate(USERS, ITEMS, RATINGS), ValueError, "or all of these pairs are"),
        (lambda: FITTED.evaluate([0, 1], [1, "x"], k=0), ValueError, "k must be at least 1"),
        (lambda: FITTED.recommend(items=(j for j in (1, 99))), ValueError, "99"),
        (lambda: FITTED.recommend(items=3), TypeError, "items must be a list of ids"),
        (
            lambda: FITTED.recommend(items=np.array(3)),
            ValueError,
            r"items .* vector of ids; got .*\(\)",
        ),
        (lambda: FITTED.fold_in({"a": {1: "x"}}), ValueError, r"histories\['a'\] must be numbers"),
        (lambda: FITTED.fold_in({"a": {1: np.nan}}), ValueError, r"\['a'\]\[0\] is not finite"),
        (lambda: FITTED.fold_in({"a": [1], "b": [[1]]}), ValueError, r"histories\['b'\] must be"),
        (lambda: FITTED.explain(["a"], 1), ValueError, "users must be a vector of ids"),
        (lambda: model().fit([1], [1], np.ma.array([9.0], mask=True)), ValueError, "masked"),
        (lambda: model().fit([1], [1], np.array(["2020"], "M8[Y]")), ValueError, "be numbers"),
        (lambda: model().fit(pd.DataFrame({"x": [1, 0]})), ValueError, r"table\.stack\(\)"),
    ],
)
def test_errors_say_what_is_wrong(call, error, message):
    refused(message, call, error=error)
