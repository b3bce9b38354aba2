"""A completion that knows the ids of its rows and columns, and bounds."""

import pickle
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from completion_problems import structured
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf

USERS = np.array([f"u{k}" for k in range(30)][::-1])
ITEMS = np.array([f"film {k}" for k in range(20)])


@pytest.fixture(scope="module")
def holes():
    return structured(30, 20, 3, 0.5, 0.8)[1]


def named(holes, **options):
    fit = sf.complete(holes, n_components=3, random_state=0, **options)
    return replace(fit, row_ids=USERS, column_ids=ITEMS)


BIASED = {"gamma_min": "validate", "biases": True}


@pytest.mark.parametrize("options", [{}, BIASED])
def test_ids_are_positions(holes, options, tmp_path):
    fit = named(holes, **options)
    sf.save(fit, tmp_path / "fit.npz")
    for model in (fit, sf.load(tmp_path / "fit.npz")):
        expected = replace(model, row_ids=None, column_ids=None).predict([29, 3], [2, 19])
        np.testing.assert_array_equal(model.predict(USERS[[29, 3]], ITEMS[[2, 19]]), expected)
        objects = np.array(["u0", USERS[3]], object)
        np.testing.assert_array_equal(model.predict(objects, ITEMS[[2, 19]].tolist()), expected)
        half = replace(model, column_ids=None)
        np.testing.assert_array_equal(half.predict(objects, [2, 19]), expected)
        np.testing.assert_array_equal(model.row_ids, USERS)
        np.testing.assert_array_equal(model.column_ids, ITEMS)


def test_unknown_ids(holes):
    """They get what is known of the other side."""
    fit = named(holes, **BIASED)
    with pytest.warns(UserWarning, match="1 of 2 rows are not in the model .*'zoe'") as caught:
        found = fit.predict(["zoe", "u0"], ITEMS[[5, 5]])
    assert caught[0].filename == __file__
    expected = [fit.offset + fit.right[-1, 5], fit.predict(["u0"], ["film 5"])[0]]
    np.testing.assert_allclose(found, expected)
    with pytest.warns(UserWarning, match="1 of 1 columns are not in the model"):
        found = fit.predict(["u0"], ["new"])
    np.testing.assert_allclose(found, fit.offset + fit.left[29, -2])
    with pytest.warns(UserWarning, match="not in the model"):
        np.testing.assert_allclose(fit.predict(["zoe"], ["new"]), fit.offset)
    exact = named(holes)
    with pytest.warns(UserWarning, match="not in the model"):
        found = exact.predict(["zoe"], ["film 5"])
    np.testing.assert_allclose(found, exact.left.mean(axis=0) @ exact.right[:, 5])


ACCENTS = [f"e\u0301{k}" for k in range(30)]  # decomposed
KINDS = {
    "list": USERS.tolist(),
    "objects": USERS.astype(object),
    "int64": np.arange(130, 100, -1),
    "uint8": np.arange(30, dtype=np.uint8)[::-1],
    "large": (np.arange(30) + 2**62).tolist(),
    "objects of integers": np.arange(30).astype(object),
    "accents": np.array(ACCENTS),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_ids_is_kept(kind, holes, tmp_path):
    plain, ids = sf.complete(holes, n_components=3, random_state=0), KINDS[kind]
    fit = replace(plain, row_ids=ids)
    sf.save(fit, tmp_path / "fit.npz")
    expected = plain.predict([29, 3, 0], [2, 19, 0])
    asked = [ids[29], ids[3], ids[0]]
    for model in (fit, sf.load(tmp_path / "fit.npz"), pickle.loads(pickle.dumps(fit))):
        for given in (asked, np.array(asked), np.array(asked, dtype=object)):
            np.testing.assert_array_equal(model.predict(given, [2, 19, 0]), expected)
        if kind == "accents":
            composed = [unicodedata.normalize("NFC", one) for one in asked]
            np.testing.assert_array_equal(model.predict(composed, [2, 19, 0]), expected)


def test_columns_of_pandas_are_ids(holes):
    pandas = pytest.importorskip("pandas")
    users, _ = np.unique(pandas.Series(USERS, dtype=object), return_inverse=True)
    plain = sf.complete(holes, n_components=3, random_state=0)
    for ids in (users, pandas.Index(users), pandas.Series(users, dtype="string")):
        found = replace(plain, row_ids=ids).predict(pandas.Series(["u9", "u0"]), [0, 1])
        np.testing.assert_array_equal(found, plain.predict([29, 0], [0, 1]))


@pytest.mark.slow
@each(
    ("ids", "error", "message"),
    [
        (USERS[:29], ValueError, r"row_ids has shape \(29,\); expected \(30,\)"),
        (USERS[:, None], ValueError, r"row_ids has shape \(30, 1\)"),
        ([*USERS[:29], "u29"], ValueError, "row_ids holds 'u29' more than once"),
        ([7] * 30, ValueError, "row_ids holds 7 more than once"),
        ([*ACCENTS[:29], "\u00e90"], ValueError, "row_ids holds '\u00e90' more than once"),
        ([*USERS[:29], 3], TypeError, "row_ids must be ids, all text or all integers"),
        ([*USERS[:29], None], TypeError, "row_ids must be ids, all text or all integers"),
        (np.arange(30.0), TypeError, "row_ids must be .* got dtype float64. Convert them"),
        (np.arange(30).astype("M8[D]"), TypeError, "row_ids must be .* got dtype datetime64"),
        (np.arange(30) > 3, TypeError, "row_ids must be ids, .* got dtype bool"),
    ],
)
def test_bad_ids_are_refused_when_they_are_set(ids, error, message, holes):
    with pytest.raises(error, match=message):
        replace(sf.complete(holes, n_components=3, random_state=0), row_ids=ids)


def test_what_are_no_ids(holes):
    fit = named(holes)
    with pytest.raises(TypeError, match="rows must be ids of the completion, which are text"):
        fit.predict([1], ["film 0"])
    with pytest.raises(TypeError, match="rows must be ids, all text or all integers"):
        fit.predict([1.5], ["film 0"])
    with pytest.raises(TypeError, match="columns must be ids, all text or all integers"):
        fit.predict(["u1"], np.array(["film 1", None], object))
    with pytest.raises(TypeError, match="rows must be ids of the completion, which are integers"):
        replace(fit, row_ids=np.arange(30)).predict(["1"], ["film 0"])
    refused("rows and columns must have the same shape", fit.predict, ["u0", "u1"], ITEMS[:3])
    refused("rows has rows of different lengths", fit.predict, [["u0"], ["u1", "u2"]], ["film 0"])
    with pytest.raises(IndexError, match="rows must be from 0 to 29; got -1"):
        replace(fit, row_ids=None).predict([-1], ["film 0"])
    with pytest.raises(TypeError, match="rows must be integers; got dtype <U2"):
        replace(fit, row_ids=None).predict(["u1"], ["film 0"])


def test_bounds(holes, tmp_path):
    fit = replace(named(holes), lower=0.1, upper=0.2)
    sf.save(fit, tmp_path / "fit.npz")
    for model in (fit, sf.load(tmp_path / "fit.npz")):
        dense = model.to_dense()
        assert (dense.min(), dense.max()) == (0.1, 0.2)
        rows, columns = np.indices(dense.shape)
        np.testing.assert_allclose(model.predict(USERS[rows], ITEMS[columns]), dense)


NAMES = ("user", "item", "rating")


@pytest.fixture(scope="module")
def ratings():
    """A table of ratings from 1 to 5 in long form, and the triplets of the same."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    full = 3 + 1.5 * rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    rows, columns = np.nonzero(rng.random(full.shape) < 0.5)
    stars = full[rows, columns].round().clip(1, 5).astype(int)
    ids = np.char.mod("u%02d", rows), 100 + columns
    table = pandas.DataFrame({"when": 0, **dict(zip(NAMES, (*ids, stars), strict=True))})
    return table, (rows, columns, stars)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"max_iter": 4}, BIASED])
def test_a_table_in_long_form_is_triplets_with_ids(ratings, options, tmp_path):
    table, triplets = ratings
    before, shuffled = table.copy(), table.sample(frac=1, random_state=0)
    options = {"n_components": 2, "random_state": 0, **options}
    expected = sf.complete(triplets, **options).to_dense()
    nullable = table.astype({"user": "category", "item": "Int64", "rating": "Int64"})
    for form in (table, shuffled, nullable, table.rename(columns={"when": 7})):
        fit = sf.complete(form, columns=NAMES, **options)
        assert fit.row_ids.tolist() == sorted(set(table["user"]))
        assert fit.column_ids.tolist() == list(range(100, 120))
        np.testing.assert_array_equal(fit.to_dense(), expected)
    sf.save(fit, tmp_path / "fit.npz")
    found = sf.load(tmp_path / "fit.npz").predict(["u07", "u29"], [103, 119])
    np.testing.assert_allclose(found, expected[[7, 29], [3, 19]])
    assert table.equals(before)


def test_a_wide_table_has_ids(ratings):
    table, triplets = ratings
    options = {"n_components": 2, "random_state": 0, "max_iter": 4}
    expected = sf.complete(triplets, **options).to_dense()
    wide = table.pivot(index="user", columns="item", values="rating")
    found = sf.complete(wide, **options).predict(["u07", "u29"], [103, 119])
    np.testing.assert_allclose(found, expected[[7, 29], [3, 19]])
    several = pytest.importorskip("pandas").MultiIndex.from_product([[1], range(30)])
    for index in (None, [0.5] * 30, ["u"] * 30, several):
        plain = wide.reset_index(drop=True) if index is None else wide.set_axis(index)
        fit = sf.complete(plain, **options)
        assert fit.row_ids is None
        np.testing.assert_allclose(fit.predict([7], [103]), expected[7, [3]])


LONG_TABLES = {
    "no column": (
        lambda table: table,
        ("user", "film", "rating"),
        "M must have one column 'film'; it has 'when', 'user'",
    ),
    "two columns": (
        lambda table: table.rename(columns={"when": "item"}),
        NAMES,
        "M must have one column 'item'; it has 'item', 'user'",
    ),
    "two names": (
        lambda table: table,
        NAMES[:2],
        "three different names; got .'user', 'item'.[.]$",
    ),
    "a name twice": (lambda table: table, ("user", "user", "rating"), "three different names"),
    "text": (lambda table: table, "user", "three different names; got 'user'"),
    "repeats": (
        lambda table: table.iloc[[*range(9), 4]],
        NAMES,
        r"holds the entry \['u00', 1\d\d\] more than once; merge",
    ),
    **{
        f"missing {name}": (
            lambda table, name=name: table.assign(
                **{name: table[name].astype(object).where(table.index != 4)}
            ),
            NAMES,
            f"column '{name}' of M has no value in 1 of \\d+ rows, first in row 4; .*dropna",
        )
        for name in NAMES
    },
    "dates": (
        lambda table: table.assign(user=table["when"].astype("M8[ns]")),
        NAMES,
        "column 'user' of M must be ids, all text or all integers",
    ),
    "words": (
        lambda table: table.assign(rating="good"),
        NAMES,
        r"column 'rating' of M\[0\] is 'good', not a number",
    ),
}


@pytest.mark.parametrize("kind", LONG_TABLES)
def test_bad_tables_in_long_form(kind, ratings):
    change, names, message = LONG_TABLES[kind]
    refused(message, sf.complete, change(ratings[0]), columns=names, error=(TypeError, ValueError))


def test_columns_are_those_of_a_table(ratings, holes):
    refused("a pandas DataFrame M; got ndarray", sf.complete, holes, columns=NAMES, error=TypeError)
    refused("shape follows from columns", sf.complete, ratings[0], columns=NAMES, shape=(30, 20))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ratings_stay_on_their_scale(dtype, ratings):
    rows, columns, stars = ratings[1]
    options = {"n_components": 3, "random_state": 0, "dtype": dtype, "max_iter": 8}
    free = sf.complete((rows, columns, stars), clip=False, **options)
    assert (free.lower, free.upper) == (0, np.inf)  # of the method
    assert free.to_dense().max() > 5
    for values in (stars, stars / 2, stars * 0.1 - 0.3):  # scales, of any step and origin
        fit = sf.complete((rows, columns, values.astype(dtype)), **options)
        dense = fit.to_dense()
        assert dense.min() == fit.lower == values.astype(dtype).min()
        assert dense.max() == fit.upper == values.astype(dtype).max()
    np.testing.assert_array_equal(
        sf.complete((rows, columns, stars), **options).to_dense(), free.to_dense().clip(1, 5)
    )


def test_what_is_clipped(holes, ratings):
    rows, columns, stars = ratings[1]
    options = {"n_components": 2, "random_state": 0, "max_iter": 3}
    noise = stars + np.random.default_rng(0).random(len(stars))
    counted = np.arange(len(stars))
    gapped = np.where(stars == 5, 300, stars)
    for values in (noise, counted, gapped):  # no ratings
        assert sf.complete((rows, columns, values), **options).upper == np.inf
    fit = sf.complete((rows, columns, noise), clip=True, **options)
    assert (fit.lower, fit.upper) == (noise.min(), noise.max())
    assert sf.complete((rows, columns, stars), method="structured-sirls", **options).upper == np.inf
    with pytest.warns(UserWarning, match="1 row; .* completed by fill_value = 0, clipped"):
        fit = sf.complete((rows + 1, columns, stars), **options)
    np.testing.assert_array_equal(fit.to_dense()[0], 1)
    fit = sf.complete((rows, columns, stars - 3), nonnegative=True, **options)
    assert (fit.lower, fit.upper) == (0, 2)
    with pytest.raises(TypeError, match="clip must be True or False; got 'yes'"):
        sf.complete(holes, clip="yes")
