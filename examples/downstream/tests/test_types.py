"""Types that mypy sees through the installed package.

`python -m mypy` checks this file in strict mode. An unused `type: ignore` is an error, so a name
that turns into Any is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ssnmf_fast as sf

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import assert_type

    def check_types(X: npt.NDArray[np.float64]) -> None:
        assert_type(sf.NMF(3).fit(X), sf.NMF)
        assert_type(sf.NMF(3).transform(X), npt.NDArray[Any])
        assert_type(sf.SSNMFClassifier().fit(X, [0, 1]), sf.SSNMFClassifier)
        assert_type(sf.factorize(X, n_components=2), sf.results.Factorization)
        assert_type(sf.factorize(X, n_components=2).A, npt.NDArray[Any])
        assert_type(sf.complete(X, n_components=2), sf.results.Completion)
        assert_type(sf.__version__, str)
        sf.NMF("5")  # type: ignore[arg-type]
        sf.NMF(5, beta_loss=3)  # type: ignore[call-arg]
        sf.NMF(5, loss="kl")  # type: ignore[arg-type]
        sf.DynamicTopics(5, method="lda")  # type: ignore[arg-type]
        sf.LowRankImputer(5, gamma_min="auto")  # type: ignore[arg-type]
        assert_type(sf.NMF(3, loss="frobenius", random_state=0).score(X), float)

    def check_that_wrong_parameters_are_errors(X: npt.NDArray[np.float64]) -> None:
        sf.NMF("5")  # type: ignore[arg-type]
        sf.NMF(5, beta_loss=3)  # type: ignore[call-arg]
        sf.NMF(5, loss="kl")  # type: ignore[arg-type]
        sf.NMF(5, solver="cd")  # type: ignore[arg-type]
        sf.NMF(5, random_state="a")  # type: ignore[arg-type]
        sf.SSNMFClassifier("5")  # type: ignore[arg-type]
        sf.SSNMFClassifier(5, loss="kl")  # type: ignore[arg-type]
        sf.SSNMFClassifier(5, supervision_weight="auto")  # type: ignore[arg-type]
        sf.FewLabelsClassifier(loss="kl")  # type: ignore[arg-type]
        sf.SSNMFRegressor(5, loss="kl")  # type: ignore[arg-type]
        sf.TopicSupervisedNMF(loss="kl")  # type: ignore[arg-type]
        sf.SeededTopics({}, loss="kl")  # type: ignore[arg-type]
        sf.papers.MarginNMF(5, loss="kl")  # type: ignore[arg-type]
        sf.papers.ConstrainedNMF(5, loss="kl")  # type: ignore[arg-type]
        sf.consensus(X, 2, loss="kl")  # type: ignore[arg-type]
        sf.choose_rank(X, [1, 2], loss="kl")  # type: ignore[arg-type]
        sf.FewLabelsClassifier(n_components=5)  # type: ignore[call-arg]
        sf.BayesianNMF("5")  # type: ignore[arg-type]
        sf.NonnegativeCP(5, loss="kl")  # type: ignore[arg-type]
        sf.DynamicTopics(5, loss="kl")  # type: ignore[arg-type]
        sf.LowRankImputer(5, tol="a")  # type: ignore[arg-type]
        sf.papers.SupervisedBayesianNMF("5")  # type: ignore[arg-type]
        sf.factorize(X, n_components=2, loss="kl")  # type: ignore[arg-type]
        sf.factorize(X, n_components=2, solver="cd")  # type: ignore[arg-type]
        sf.factorize_tensor(X, n_components=2, loss="kl")  # type: ignore[arg-type]
        sf.represent(X, X, loss="kl")  # type: ignore[arg-type]
        sf.complete(X, method="als")  # type: ignore[arg-type]
        sf.extend.relation("samples", "terms", X, loss="kl")  # type: ignore[arg-type]


def test_wrong_types_are_errors_when_checked_and_when_run() -> None:
    X = np.eye(4)
    with pytest.raises(TypeError, match="n_component"):
        sf.factorize(X, n_component=2)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="n_components"):
        sf.NMF(n_components=[2]).fit(X)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="factorise"):
        sf.factorise(X, n_components=2)  # type: ignore[attr-defined]
