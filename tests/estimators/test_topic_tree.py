"""Trees of topics: what they are made of, and that levels agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.absent_packages import hide
from helpers.data import parted_texts
from helpers.refused import refused
from sklearn.metrics import normalized_mutual_info_score

import ssnmf_fast as sf

WORDS = [f"w{k}" for k in range(24)]


@pytest.fixture(scope="module")
def tree() -> sf.trees.TopicTree:
    X, _ = parted_texts()
    return sf.trees.topic_tree(
        X, [3, 6], loss="kullback-leibler", feature_names=WORDS, random_state=0
    )


def test_topics_and_their_parts_are_found(tree: sf.trees.TopicTree) -> None:
    X, kinds = parted_texts()
    assert tree.depth == 2
    for level, truth in enumerate((kinds // 2, kinds)):
        found = tree.topic_proportions(X, level).argmax(axis=1)
        assert normalized_mutual_info_score(truth, found) > 0.75
    assert [topic.name for topic in tree.topics(0)] == ["0", "1", "2"]


def test_a_topic_is_the_sum_of_its_parts(tree: sf.trees.TopicTree) -> None:
    X, _ = parted_texts()
    nodes = {node.name: node for node in tree.nodes}
    names = [[topic.name for topic in tree.topics(level)] for level in range(2)]
    G = np.array([[part.startswith(f"{name}/") for name in names[0]] for part in names[1]]) * 1.0
    assert G.sum() == 6
    assert tree.topic_proportions(X, 0) == pytest.approx(tree.topic_proportions(X, 1) @ G)
    assert tree.topic_proportions(X, 0).sum(axis=1) == pytest.approx(1)
    shares = [np.array([nodes[name].share for name in level]) for level in names]
    assert shares[0] == pytest.approx(shares[1] @ G)
    explained = []
    for level in range(2):
        A = np.array([nodes[name].components for name in names[level]])
        explained.append(tree.transform(X, level) * A.sum(axis=1))
    assert explained[0] == pytest.approx(explained[1] @ G)
    assert np.array_equal(tree.transform(X), tree.model.transform(X))


def test_the_same_bits_again() -> None:
    X, _ = parted_texts()
    one, other = (sf.trees.topic_tree(X, [2, 5], random_state=3) for _ in range(2))
    assert str(one) == str(other)
    assert np.array_equal(one.model.components_, other.model.components_)


def test_numbers_by_level() -> None:
    X, _ = parted_texts()
    tree = sf.trees.topic_tree(X, [2, 3, 7], random_state=0)
    assert [len(tree.topics(level)) for level in range(tree.depth)] == [2, 3, 7]


def test_printed_and_as_a_table(tree: sf.trees.TopicTree, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = str(tree).splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("0 ")
    assert lines[1].startswith("    0/0 ")
    assert "w" in lines[1].partition(": ")[2]
    frame = tree.to_frame(n_terms=2)
    assert frame.columns.tolist() == ["name", "parent", "level", "share", "terms"]
    assert frame["name"].tolist() == [node.name for node in tree.nodes]
    hide("pandas", monkeypatch)
    refused("to_rows", tree.to_frame, error=sf.MissingPackageError)


def test_kept_in_a_file(tree: sf.trees.TopicTree, tmp_path: Path) -> None:
    sf.save(tree.model, tmp_path / "tree.npz")
    again = sf.trees.TopicTree(sf.load(tmp_path / "tree.npz"), WORDS)
    assert str(again) == str(tree)


def test_of_labels_with_levels() -> None:
    X, kinds = parted_texts()
    labels = [f"{kind // 2}/{kind}" for kind in kinds]
    tree = sf.trees.TopicTree(sf.TopicSupervisedNMF(random_state=0).fit(X, labels))
    assert [topic.name for topic in tree.topics(0)] == ["0", "1", "2"]
    assert len(tree.topics()) == 6


def test_bad_calls(tree: sf.trees.TopicTree) -> None:
    X, kinds = parted_texts()
    refused("level is 2; there are 2", tree.topics, 2)
    refused("increasing numbers", sf.trees.topic_tree, X, [5, 5])
    refused("increasing numbers", sf.trees.topic_tree, X, [])
    for levels in (5, "ab"):
        with pytest.raises(TypeError, match=r"levels must be a sequence, such as \[5, 20\]"):
            sf.trees.topic_tree(X, levels)
    both = np.where(kinds == 0, "a", "a/b")
    with pytest.raises(ValueError, match="'a' and also subtopics of it"):
        sf.trees.TopicTree(sf.TopicSupervisedNMF(random_state=0).fit(X, both))
    refused("representation_", sf.trees.TopicTree, sf.NMF(2).partial_fit(X))
    refused("feature_names holds 1", sf.trees.TopicTree, tree.model, ["a"])
