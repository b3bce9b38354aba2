"""Scikit-learn's own tests of NMF on this engine, as a plugin of pytest.

``python -m pytest -p scikit_learn_suite --pyargs sklearn.decomposition.tests.test_nmf`` with this
folder in PYTHONPATH.  No case is left out.  The session fails if other cases than those named here
run on scikit-learn's own code.
"""

import pytest

import ssnmf_fast.sklearn

ssnmf_fast.sklearn.patch()

# Of these the engine serves only some calls.
FALL_BACK = {
    "test_nmf_negative_beta_loss": "negative beta losses, and zeros with beta_loss=0: an error",
    "test_nmf_multiplicative_update_sparse": "beta_loss=-1.2",
    "test_minibatch_nmf_negative_beta_loss": "negative beta losses, and zeros with beta_loss=0",
    "test_nmf_decreasing": "beta_loss=-1.2",
    "test_nmf_minibatchnmf_equivalence": "",
    "test_nmf_dtype_match": "alpha_W=1.0: the L2 penalty dominates",
    "test_nmf_sparse_input": "alpha_W=1.0",
    "test_non_negative_factorization_consistency": "alpha_W=1.0, alpha_H=1.0",
}
fell_back = set()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    before = ssnmf_fast.sklearn.call_counts()["scikit-learn"]
    yield
    if ssnmf_fast.sklearn.call_counts()["scikit-learn"] > before:
        fell_back.add(item.name.split("[")[0])


def pytest_sessionfinish(session):
    served = ssnmf_fast.sklearn.call_counts()
    print(f"\nfactorizations: {served}; of some cases by scikit-learn: {sorted(fell_back)}")
    if fell_back != {*FALL_BACK}:
        print(f"expected: {sorted(FALL_BACK)}")
        session.exitstatus = 1
