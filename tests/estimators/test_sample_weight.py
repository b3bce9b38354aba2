"""Weights of samples, as scikit-learn means them: 0 leaves a sample out, 2 counts it twice."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import ssnmf_fast as sf

pytestmark = pytest.mark.filterwarnings("ignore:The stopping rule was not met")
LOSSES = ("frobenius", "kullback-leibler")
N, M, RANK, K = 48, 16, 5, 3
OF_FIT = ("components_", "label_components_", "refitted_label_components_", "class_prior_")
OF_FIT += ("class_shares_", "supervision_weight_")
METHODS = ("predict", "predict_proba", "decision_function", "transform")
rng = np.random.default_rng(0)
KINDS = np.arange(N) % K
X = rng.poisson(30 * rng.dirichlet(np.full(M, 0.3), size=K)[KINDS] + 0.3).astype(float)
LABELS = np.where(np.arange(N) % 2 == 0, KINDS, -1)
SEVERAL = np.where((LABELS < 0)[:, None], -1, np.column_stack([KINDS == 0, KINDS > 0]))
TARGETS = np.where(LABELS < 0, np.nan, KINDS + 0.5)
WEIGHT = rng.integers(0, 4, N).astype(float)
REPEATED = np.repeat(np.arange(N), WEIGHT.astype(int))
S, A = rng.random((N, RANK)) + 0.1, rng.random((RANK, M)) + 0.1
UNIT = rng.random((N, M))


def numbers(model):
    """Return what a fit found, and what it gives for all samples."""
    found = {name: getattr(model, name) for name in OF_FIT if hasattr(model, name)}
    found |= {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}
    return found | {"objective": model.objective_[-1][1]}


def assert_equal(model, others, y, **given):
    """Compare a fit with weights and one to rows that are as often there as they weigh."""
    weighted, repeated = model(np.arange(N)), model(REPEATED)
    rows = {name: (lambda rows, part=part: part(rows)) for name, part in given.items()}
    at = {name: part(np.arange(N)) for name, part in rows.items()}
    one = numbers(weighted.fit(others(X), y, sample_weight=WEIGHT, **at))
    at = {name: part(REPEATED) for name, part in rows.items()}
    other = numbers(repeated.fit(others(X[REPEATED]), y[REPEATED], **at))
    assert one.keys() == other.keys()
    for name, value in one.items():
        largest = max(1.0, float(np.max(np.abs(other[name]))))
        np.testing.assert_allclose(value, other[name], rtol=0, atol=1e-10 * largest, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_classifier(form, loss):
    cases = product(LOSSES, ("balanced", 2.0, np.inf), ("logistic", "refit", "joint"))
    for supervision_loss, weight, readout in cases:
        settings = {"supervision_loss": supervision_loss, "supervision_weight": weight}
        settings |= {"loss": loss, "readout": readout, "max_iter": 40}

        for k, y in ((K, LABELS), (2, SEVERAL)):

            def model(rows, k=k, settings=settings):
                return sf.SSNMFClassifier(RANK, init=(S[rows], A, A[:, :k]), **settings)

            assert_equal(model, form, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_regressor_starts_and_weights_of_entries(loss):
    for readout in ("refit", "joint"):
        assert_equal(
            lambda rows, readout=readout: sf.SSNMFRegressor(
                RANK, init=(S[rows], A, A[:, :1]), loss=loss, readout=readout, max_iter=40
            ),
            np.asarray,
            TARGETS,
        )
    for weight in ("balanced", np.inf):  # from the means of the classes
        # Where a fit has converged, rounding decides of each step with momentum.
        settings = {"init": "labels", "supervision_weight": weight, "max_iter": 10, "loss": loss}
        settings |= {"random_state": 0}
        assert_equal(lambda _, given=settings: sf.SSNMFClassifier(K, **given), np.asarray, LABELS)
    for weights in (
        lambda rows: UNIT[rows],
        lambda rows: sf.weights.outer(rows=UNIT[rows, 0], columns=UNIT[0]),
        lambda rows: sf.weights.observed(sp.csr_array(UNIT[rows] * (UNIT[rows] > 0.3))),
        lambda rows: sf.weights.base(0.2, sp.csr_array(UNIT[rows] * (UNIT[rows] > 0.6))),
    ):
        assert_equal(
            lambda rows: sf.SSNMFClassifier(RANK, init=(S[rows], A, A[:, :K]), max_iter=40),
            np.asarray,
            LABELS,
            X_weights=weights,
        )


@pytest.mark.parametrize("kind", [sf.SSNMFClassifier, sf.SSNMFRegressor])
def test_batches(kind):
    halves, classes = (np.arange(N // 2), np.arange(N // 2, N)), {}
    y = LABELS if kind is sf.SSNMFClassifier else TARGETS
    for loss in LOSSES:
        found = []
        for weighted in (True, False):
            parts = halves if weighted else [np.repeat(h, WEIGHT[h].astype(int)) for h in halves]
            k = K if kind is sf.SSNMFClassifier else 1
            model = kind(RANK, loss=loss, init=(S[parts[0]], A, A[:, :k]))
            for part in parts:
                classes = {"classes": range(K)} if kind is sf.SSNMFClassifier else {}
                given = {"sample_weight": WEIGHT[part]} if weighted else {}
                model.partial_fit(X[part], y[part], **classes, **given)
            found.append(numbers(model))
        for name, value in found[0].items():
            np.testing.assert_allclose(value, found[1][name], rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("y", [LABELS, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize("loss", LOSSES)
def test_committee_leaves_samples_of_weight_zero_out(y, loss):
    kept = np.arange(N) % 7 > 0
    model = sf.FewLabelsClassifier(loss=loss, random_state=0, max_iter=40)
    one = numbers(model.fit(X, y, sample_weight=kept.astype(float)))
    assert not model.validation_folds_[~kept].any() or (model.validation_folds_[~kept] == -1).all()
    interval = model.validation_interval_
    other = numbers(model.fit(X[kept], y[kept]))
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-7, atol=1e-7, err_msg=name)
    assert interval == pytest.approx(model.validation_interval_, nan_ok=True)


@pytest.mark.slow
def test_committee_counts_weights_in_its_validation():
    """The same number for all samples is no other loss, but more samples."""
    y = np.where(np.arange(N) % 4 == 0, (KINDS + 1) % K, LABELS)  # some are wrong
    plain = sf.FewLabelsClassifier(random_state=0, self_training=0).fit(X, y)
    model = sf.FewLabelsClassifier(random_state=0, self_training=0)
    model.fit(X, y, sample_weight=np.full(N, 4.0))
    low, high = plain.validation_interval_
    assert model.validation_interval_[1] - model.validation_interval_[0] < 0.7 * (high - low)
    heavy = np.where(y == 0, 5.0, 1.0)
    prior = model.fit(X, y, sample_weight=heavy).class_prior_
    known = y >= 0
    expected = np.bincount(y[known], heavy[known]) / heavy[known].sum()
    np.testing.assert_allclose(prior, expected)


@pytest.mark.slow
def test_levels_of_a_hierarchy():
    names = np.array(["a/x", "a/y", "b"])[KINDS].astype(object)
    names[LABELS < 0] = None
    kept = np.arange(N) % 7 > 0
    model = sf.HierarchicalClassifier(sf.FewLabelsClassifier(random_state=0, max_iter=40))
    one = model.fit(X, names, sample_weight=kept.astype(float)).predict_proba(X)
    other = model.fit(X[kept], names[kept]).predict_proba(X)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_label_weight_leaves_topics_of_X_alone():
    weight = np.where(np.arange(N) < N // 2, 1.0, 0.0)
    hidden = np.where(weight > 0, LABELS, -1)
    for model in (sf.SSNMFClassifier(3, random_state=0), sf.FewLabelsClassifier(random_state=0)):
        one = model.fit(X, LABELS, label_weight=weight).predict_proba(X)
        np.testing.assert_array_equal(one, model.fit(X, hidden).predict_proba(X))
        assert len(model.representation_) == N


def test_samples_on_disk_have_no_weights(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X), compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz")
    for model in (sf.SSNMFClassifier(3), sf.FewLabelsClassifier(), sf.SSNMFRegressor(3)):
        y = TARGETS if isinstance(model, sf.SSNMFRegressor) else LABELS
        with pytest.raises(ValueError, match=r"sample_weight must be None.*label_weight"):
            model.fit(file, y, sample_weight=WEIGHT)
        model.fit(file, y, label_weight=WEIGHT)


def test_scikit_learns_check():
    """From a start without random numbers; its data are tiny, and its tolerance 1e-7."""
    model = sf.SSNMFClassifier(3, init="labels", random_state=0)
    check_sample_weight_equivalence_on_dense_data("SSNMFClassifier", model)
    check_sample_weight_equivalence_on_sparse_data("SSNMFClassifier", model)
