import pytest
from completion_problems import structured


@pytest.fixture(scope="module")
def easy():
    return structured(40, 30, 3, 0.5, 0.8)
