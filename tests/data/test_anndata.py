"""Objects of anndata are refused at once, with what to give in their place."""

import importlib
import sys

import numpy as np
import pytest
from helpers.absent_packages import hide
from helpers.optional_packages import need_anndata
from helpers.refused import refused

import ssnmf_fast as sf


class Annotated:
    """An object whose elements must not be read one by one."""

    shape = (4, 3)

    def __len__(self):
        raise AssertionError

    __iter__ = __getitem__ = __array__ = __len__


AnnData = type("AnnData", (Annotated,), {"__module__": "anndata._core.anndata"})
Backed = type("CSRDataset", (Annotated,), {"__module__": "anndata._core.sparse_dataset"})


@pytest.mark.parametrize(
    ("given", "way"),
    [
        (AnnData(), r"ssnmf_fast\.anndata\.nmf .*layers\['counts'\] or .*\.X"),
        (Backed(), r"ssnmf_fast\.anndata\.nmf .*to_memory\(\)"),
    ],
)
def test_refused(given, way):
    model = sf.NMF(n_components=1).fit(np.ones((4, 3)))
    for call in (
        lambda: sf.NMF(n_components=2).fit(given),
        lambda: model.transform(given),
        lambda: model.fit(np.ones((4, 3)), X_weights=given),
        lambda: sf.BayesianNMF(n_components=2).fit(given),
        lambda: sf.SSNMFClassifier().fit(given, [0, 1, 0, 1]),
        lambda: sf.papers.MarginNMF().fit(given, [0, 1, 0, 1]),
        lambda: sf.factorize(given, n_components=2),
        lambda: sf.represent(given, np.ones((1, 3))),
        lambda: sf.extend.objective(given, np.ones((4, 1)), np.ones((1, 3))),
        lambda: sf.linalg.randomized_svd(given, 1),
        lambda: sf.factorize_tensor(given, n_components=2),
        lambda: sf.complete(given),
        lambda: sf.LowRankImputer().fit(given),
        lambda: sf.DynamicTopics(2).fit(given, ["2001", "2002", "2003", "2004"]),
    ):
        refused(f"is an object of anndata.*{way}", call, error=TypeError)


def test_of_anndata_itself(tmp_path):
    anndata = need_anndata()
    data = anndata.AnnData(np.ones((4, 3), dtype=np.float32))
    with pytest.raises(TypeError, match=r"X is an object of anndata \(AnnData\).*X\.X"):
        sf.NMF(n_components=1).fit(data)
    assert sf.NMF(n_components=1).fit(data.X).components_.shape == (1, 3)


def test_without_anndata(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ssnmf_fast.anndata")]:
        monkeypatch.delitem(sys.modules, name)
    hide("anndata", monkeypatch)
    with pytest.raises(sf.MissingPackageError, match=r"pip install 'ssnmf-fast\[anndata\]'"):
        importlib.import_module("ssnmf_fast.anndata")
