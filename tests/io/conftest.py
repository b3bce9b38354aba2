"""Data that every test of model files fits, and the path of its file."""

import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:90] / 16, y[:90]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"
