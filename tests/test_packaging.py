"""What a release needs: versions agree, and workflows run what is pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ssnmf_fast

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("packaging/conda/recipe.yaml", r'^  version: "(.+)"$'),
        ("CHANGELOG.md", r"^## \[?(\d[\w.]*)"),
    ],
)
def test_versions_agree(file: str, pattern: str) -> None:
    path = ROOT / file
    if not path.exists():
        pytest.skip("away from the source tree")
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    assert found[1] == ssnmf_fast.__version__


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned(workflow: Path) -> None:
    """A tag can be moved, a commit cannot."""
    used = re.findall(r"uses: (\S+)( # v\d[\d.]*)?", workflow.read_text(encoding="utf-8"))
    assert used
    assert [
        action
        for action, version in used
        if not version or not re.search(r"@[0-9a-f]{40}$", action)
    ] == []
