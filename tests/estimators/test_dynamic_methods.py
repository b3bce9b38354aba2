"""DynamicTopics: methods that find topics."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import dated_documents as dated
from helpers.refused import refused

import ssnmf_fast as sf

X, TIMES, TOPICS = dated.documents()
MONTH = (TIMES.astype("datetime64[M]") - dated.FIRST).astype(int)


def fit(method, X=X, times=TIMES, n_components=4, **options):
    return sf.DynamicTopics(n_components, method=method, random_state=0, **options).fit(X, times)


@pytest.fixture(scope="module")
def tied():
    return fit("tied")


def means(values):
    return np.stack([values[t == MONTH].mean(axis=0) for t in range(dated.MONTHS)])


def correlations(model):
    """Correlation of every planted topic with the component that has most of its terms."""
    truth = dated.shares()
    at = [model.components_[:, 10 * k : 10 * k + 10].sum(axis=1).argmax() for k in range(4)]
    return [np.corrcoef(model.prevalence_[:, a], truth[:, k])[0, 1] for k, a in enumerate(at)]


LOSSES = "frobenius", "kullback-leibler"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["neighbors", "tied"])
def test_topics_in_time(method, loss):
    model = fit(method, loss=loss)
    assert sorted(correlations(model))[1] > 0.75
    np.testing.assert_allclose(model.prevalence_.sum(axis=1), 1)
    assert model.method_ == method
    assert model.between_slices_ > 0.2
    if loss != "frobenius":
        assert model.n_iter_ <= 40


class TestAuto:
    def test_slices_of_several_topics(self, capsys):
        model = fit("auto", X[MIXED], verbose=1)
        assert model.method_ == "neighbors"
        assert abs(model.between_slices_) < 0.05
        same = fit("neighbors", X[MIXED])
        np.testing.assert_array_equal(model.components_, same.components_)
        line = f"method neighbors: slices differ by {model.slice_differences_:.2f} more than"
        assert line in capsys.readouterr().err

    @pytest.mark.parametrize("loss", LOSSES)
    def test_slices_of_one_topic_each(self, loss):
        model = fit("auto", X[ORDER], TIMES, loss=loss)
        assert model.method_ == "tied"
        assert model.between_slices_ > 0.5
        same = fit("tied", X[ORDER], TIMES, loss=loss)
        np.testing.assert_array_equal(model.components_, same.components_)

    @pytest.mark.parametrize("kind", ["event", "trend", "season", "steady"])
    def test_events_make_slices_differ(self, kind):
        """Thirty slices of 40 documents of 5 topics; the share of the last one changes."""
        t, rng = np.arange(30), np.random.default_rng(3)
        part = {
            "event": np.where((t >= 8) & (t < 11), 0.5, 0),
            "trend": t / 45,
            "season": 0.25 + 0.2 * np.sin(np.pi * t / 6),
            "steady": np.full(30, 0.2),
        }[kind]
        of = np.repeat(t, 40)
        topics = np.where(rng.random(1200) < part[of], 4, rng.integers(0, 4, 1200))
        documents = rng.poisson(0.3 + np.kron(np.eye(5), np.ones(10))[topics]).astype(float)
        times = np.datetime64("2000-01") + of
        model = fit("auto", documents, times, 5)
        assert model.method_ == ("tied" if kind == "event" else "neighbors")
        assert (model.slice_differences_ >= 0.045) == (kind == "event")
        sparse = fit("auto", sp.csr_array(documents), times, 5)
        assert sparse.slice_differences_ == pytest.approx(model.slice_differences_, abs=1e-12)
        assert fit("auto", documents, times, 25).method_ == "neighbors"

    def test_equal_documents_do_not_differ(self):
        model = fit("auto", np.ones((40, 3)), np.datetime64("2000-01") + np.arange(40) % 8, 2)
        assert (model.method_, model.slice_differences_) == ("neighbors", 0)

    def test_what_was_taken_is_kept(self, tmp_path):
        model = fit("auto", X[MIXED])
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        for name in ("method_", "between_slices_", "slice_differences_"):
            assert getattr(loaded, name) == getattr(model, name)
        loaded.partial_fit(X[:40], TIMES[:40])
        np.testing.assert_allclose(loaded.prevalence_.sum(axis=1), 1)

    def test_starts_may_be_given(self):
        start = np.ones((len(X), 4)), np.ones((4, 40)) + np.eye(4, 40)
        for init in ("random", "nndsvda", start):
            model = fit("auto", init=init)
            assert np.isfinite(model.prevalence_).all()


MIXED = np.random.default_rng(0).permutation(len(X))
ORDER = np.argsort(TOPICS, kind="stable")[np.argsort(np.argsort(TIMES, kind="stable"))]


def test_prevalence_is_the_mean_of_shares():
    model = fit("nmf")
    squares = (model.representation_ * np.linalg.norm(model.components_, axis=1)) ** 2
    shares = squares / squares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.prevalence_, means(shares))


def test_neighbors_of_large_slices_are_drawn():
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=5000)
    counts = sp.csr_array(rng.poisson(np.kron(np.eye(3), np.ones(5))[kinds]).astype(float))
    model = fit("neighbors", counts, np.repeat(["2001", "2002"], 2500), 3, freq="year")
    assert len(set(zip(kinds, model.representation_.argmax(axis=1), strict=True))) < 9
    np.testing.assert_allclose(model.prevalence_.sum(axis=1), 1)


@pytest.mark.slow
def test_every_method_takes_any_floats():
    for method in ("tensor", "neighbors", "nmf", "tied"):
        for form in (np.array, sp.csr_array):
            model = fit(method, form(X.astype(np.float32)), TIMES)
            arrays = model.components_, model.prevalence_, model.representation_
            assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


def test_one_thread_or_two():
    for method in ("neighbors", "nmf"):
        one, two = (fit(method, n_threads=number) for number in (1, 2))
        assert np.array_equal(one.prevalence_, two.prevalence_)


class TestIntervals:
    @pytest.mark.slow
    def test_an_event_is_sure(self, tied):
        for over in ("documents", "starts"):
            table = tied.intervals(X, TIMES, over=over, n_fits=8)
            assert [row.topic for row in table] == [0, 1, 2, 3]
            for row, peak, length in zip(table, tied.peaks(), tied.lengths(), strict=True):
                assert (row.slice, row.length) == (peak.slice, length)
                assert row.low_slice <= row.high_slice
                assert row.low_length <= row.high_length
                assert 0.9 < row.similarity <= 1
            event = table[tied.components_[:, :10].sum(axis=1).argmax()]
            assert {event.low_slice, event.high_slice} <= set(dated.FIRST + np.array([10, 11]))
            assert (event.low_length, event.high_length) == (2, 2)

    @pytest.mark.slow
    def test_more_level_is_wider_and_seeds_repeat(self, tied):
        narrow, wide = (tied.intervals(X, TIMES, n_fits=6, level=level) for level in (0.1, 0.99))
        for one, other in zip(narrow, wide, strict=True):
            assert other.low_slice <= one.low_slice <= one.high_slice <= other.high_slice
            assert other.low_length <= one.low_length <= one.high_length <= other.high_length
        assert wide == tied.intervals(X, TIMES, n_fits=6, level=0.99)

    @pytest.mark.parametrize("method", ["tensor", "neighbors"])
    def test_other_methods(self, method):
        model = fit(method)
        before = model.prevalence_.copy()
        table = model.intervals(X, TIMES, n_fits=3)
        assert len(table) == 4
        assert np.array_equal(model.prevalence_, before)

    def test_errors(self, tied):
        with pytest.raises(ValueError, match="over must be one of 'documents', 'starts'"):
            tied.intervals(X, TIMES, over="slices")
        refused("n_fits must be at least 2", tied.intervals, X, TIMES, n_fits=1)
        refused("level must be above 0 and below 1", tied.intervals, X, TIMES, level=1)
        late = MONTH > 3
        with pytest.raises(ValueError, match="32 slices starting at 2001-05, and the fit had 36"):
            tied.intervals(X[late], TIMES[late])
