"""Which samples have no label: one rule for estimators, metrics, pictures and the command."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ssnmf_fast._labels import ClassLabels, unlabeled_samples
from ssnmf_fast.cli._sample_labels import read_labels as of_files
from ssnmf_fast.metrics._memberships import read_labels as of_metrics
from ssnmf_fast.plotting._checks import check_labels as of_pictures

NAN = float("nan")

CASES = [
    ([0, -1, 2], "auto", [0, 1, 0]),
    ([3, -1, 3], "auto", [0, 1, 0]),
    ([3.0, -1.0, NAN], "auto", [0, 1, 1]),
    ([3, -1, None], None, [0, 0, 1]),
    ([1, -1, 1], -1, [0, 1, 0]),
    ([1, -1, 1], None, [0, 0, 0]),
    ([1, 0, 0], 0, [0, 1, 1]),
    (["a", "-1", "b"], "auto", [0, 0, 0]),
    (["a", "?", None], "?", [0, 1, 1]),
    (["a", -1, "b"], "auto", [0, 1, 0]),
    (["auto", "b", "b"], "auto", [0, 0, 0]),
    ([True, False, None], 0, [0, 0, 1]),
]


@pytest.mark.parametrize(("labels", "marker", "absent"), CASES)
def test_all_readers_agree(labels, marker, absent):
    labeled = ~np.array(absent, dtype=bool)
    assert np.array_equal(ClassLabels(labels, marker).labeled, labeled)
    assert np.array_equal(of_metrics(labels, "y", None, marker).labeled, labeled)
    indicators = of_pictures(labels, marker)[0]
    assert np.array_equal(indicators.sum(axis=1) > 0, labeled)


@pytest.mark.parametrize("labels", [[1, -1, 1], [1.0, -1.0, NAN], [-1, None, 1]])
def test_minus_one_and_one_are_classes_with_a_warning(labels):
    array = np.array(labels, dtype=float)
    with pytest.warns(UserWarning, match="only labels in y are -1 and 1"):
        assert np.array_equal(unlabeled_samples(array, "y", "auto"), np.isnan(array))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for classes, is_class in (([-1, 1], True), ([0, 1], False)):
            absent = unlabeled_samples(array, "y", "auto", np.array(classes))
            assert np.array_equal(absent, np.isnan(array) | (not is_class) * (array == -1))


def test_of_a_file():
    pandas = pytest.importorskip("pandas")
    found = of_files([None, NAN, pandas.NA, " ", " a ", -1], None)
    assert found.each == ((), (), (), (), ("a",), ("-1",))


@pytest.mark.parametrize("marker", [[1], np.array([1, 2]), {}])
def test_bad_markers(marker):
    with pytest.raises(TypeError, match='unlabeled must be "auto", None or a label'):
        unlabeled_samples(np.arange(3), "y", marker)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", 1, "b"], TypeError, "labels of one kind"),
        ([True, 2, None], TypeError, "labels of one kind"),
        ([0.5, 1.0, 2.0], ValueError, "holds 0.5; labels must be text or whole numbers"),
        ([1j, 2j], TypeError, "labels must be text or integers"),
    ],
)
def test_all_readers_refuse_alike(labels, error, message):
    for read in (
        lambda: ClassLabels(labels, None),
        lambda: of_metrics(labels, "y", None, None),
        lambda: of_pictures(labels, None),
    ):
        with pytest.raises(error, match=message):
            read()
