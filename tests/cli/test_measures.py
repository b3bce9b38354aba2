"""What the measures of ``ssnmf-fast fit`` read: labels, counts and representations."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
from command import Result, run, write_json, write_lines
from labeled_texts import MONEY, PETS
from sklearn.metrics.pairwise import cosine_similarity

import ssnmf_fast as sf

SHORT = "--max-iter 5 --tol 0"
PLAIN = f"--model ssnmf --supervision-weight 1 --readout joint {SHORT}"
NAMED = f"--model ts-nmf {SHORT}"


def fit_texts(rows: list[dict[str, Any]], more: str) -> Result:
    """Fit a file of JSON lines."""
    return run(f"fit --out out --min-df 1 {more}", write_json("texts.jsonl", rows))


def labeled(values: list[Any]) -> list[dict[str, Any]]:
    texts = PETS + MONEY
    return [{"text": texts[k % 20], "kind": value} for k, value in enumerate(values)]


class TestLabels:
    @pytest.mark.slow
    def test_reading(self) -> None:
        values = ["a; b;a", "", None, float("nan"), ["b", None, " c "], [], 3]
        more = f"--labels kind --test-size 0 {NAMED}"
        found = fit_texts(labeled(values), f"{more} --label-separator ';'")
        assert found.column("label") == ["a;b", "", "", "", "b;c", "", "3"]
        assert found.json()["label_separator"] == ";"
        assert list(found.model.topic_names_) == ["3", "a", "b", "c"]
        assert fit_texts(labeled(["a; b", "c"]), more).column("label") == ["a; b", "c"]

    def test_what_is_missing(self) -> None:
        values = [None, float("nan"), " ", " a ", -1]
        found = fit_texts(labeled(values), f"--labels kind --test-size 0 {NAMED}")
        assert found.column("label") == ["", "", "", "a", "-1"]
        assert [one == "given" for one in found.column("source")] == [False] * 3 + [True] * 2

    @pytest.mark.slow
    @pytest.mark.parametrize("share", [0.2, 0.9])
    def test_every_label_stays_seen(self, share: float) -> None:
        rng = np.random.default_rng(0)
        lists = [list(rng.choice(list("abcdef"), 2, replace=False)) for _ in range(40)]
        more = f"--labels kind --test-size {share} --seed 3 {NAMED}"
        rows = fit_texts(labeled([*lists, ["rare", "a"], []]), more).rows()
        training = [row["label"] for row in rows if row["source"] == "given"]
        assert {name for label in training for name in label.split(";")} == {*"abcdef", "rare"}
        assert "held out" not in [row["source"] for row in rows[-2:]]
        if share == 0.2:
            assert [row["source"] for row in rows].count("held out") == round(0.2 * 41)
        rows = fit_texts(labeled(["a", "a", *"bbb", "c"]), more).rows()
        training = {row["label"] for row in rows if row["source"] == "given"}
        assert training == {"a", "b", "c"}


class TestMeasures:
    @pytest.mark.slow
    def test_bound_and_sparsities(self) -> None:
        rows = labeled(["pets"] * 10 + ["money"] * 10)
        fitted = fit_texts(rows, f"--labels kind --model supervised-vbnmf --rank 2 {SHORT}")
        found, model = fitted.measures, fitted.model
        known = np.array(fitted.column("source")) == "given"
        assert 0 < known.sum() < 20
        labels = np.array(fitted.column("label"))[known]
        wanted = sf.metrics.inter_label_sparsity(model.representation_[known], labels).score
        assert found["inter_label_sparsity"] == pytest.approx(wanted)
        assert found["lower_bound"] == model.lower_bound_
        assert "sparsity" not in found
        fitted = fit_texts(rows, f"--model vbnmf --rank 2 {SHORT}")
        found, model = fitted.measures, fitted.model
        assert found["sparsity"] == pytest.approx(sf.metrics.hoyer_sparsity(model.representation_))
        assert found["lower_bound"] == model.lower_bound_

    @pytest.mark.slow
    @pytest.mark.parametrize(("model", "rank"), [("nmf", 4), ("vbnmf", 2), ("vbnmf", 8)])
    def test_terms_of_topics_that_have_some(self, model: str, rank: int) -> None:
        rows = labeled([""] * 20) + [{"text": "zebra"}] * 9  # a topic of one term
        found = fit_texts(rows, f"--model {model} --rank {rank} --max-iter 100")
        X = sf.io.load_vectorizer(found.path).transform([row["text"] for row in rows])
        A = found.model.components_
        active = getattr(found.model, "active_components_", np.full(rank, True))
        used = A[active & ((A > 0).sum(axis=1) >= 2)]
        wanted = {"coherence": sf.metrics.topic_coherence(X, used).score}
        if len(used) > 1:
            wanted["diversity"] = sf.metrics.topic_diversity(used).score
            wanted["exclusivity"] = sf.metrics.topic_exclusivity(used).score
        measures = found.measures
        of_terms = {name: measures.get(name) for name in ("coherence", "diversity", "exclusivity")}
        assert {name: v for name, v in of_terms.items() if v is not None} == pytest.approx(wanted)


def shares_of(model: Any, X: Any, guided: bool = True) -> Any:
    """Return how much of each sample each topic explains, represented without labels."""
    S = model.transform(X) if guided else model.representation_
    amounts = S * model.components_.sum(axis=1)
    return amounts / amounts.sum(axis=1, keepdims=True)


class TestSharesOfData:
    def fit(self, labels: list[str], more: str) -> tuple[Any, Result, str]:
        """Fit a matrix; return it, what was written, and the report."""
        rng = np.random.default_rng(0)
        kinds = {name: k for k, name in enumerate(dict.fromkeys(labels))}
        X = rng.random((len(labels), 8)) + 2 * np.eye(8)[[kinds[name] for name in labels]]
        np.save("X.npy", X)
        found = run(f"fit X.npy --out out {more} --labels", write_lines("y.txt", labels))
        return X, found, " ".join(found.read().split())

    def check(self, found: Result, shares: Any, names: list[str], members: Any) -> None:
        """Check shares of classes, whose members are weights (n, k) of the samples read."""
        rows = found.rows("topic_classes.csv")
        assert [*rows[0]][-len(names) :] == names
        means = shares.T @ members / members.sum(axis=0)  # a large class does not dominate
        wanted = means / means.sum(axis=1, keepdims=True)
        shown = np.array([[row[name] for name in names] for row in rows], dtype=float)
        np.testing.assert_allclose(shown, wanted, rtol=1e-3, atol=1e-5)

    @pytest.mark.slow
    def test_held_out_samples_where_they_are_enough(self) -> None:
        labels = ["a"] * 90 + ["b"] * 30
        X, found, page = self.fit(labels, f"{PLAIN} --rank 2 --test-size 0.5")
        held_out = np.array(found.column("source")) == "held out"
        members = (np.array(labels)[:, None] == ["a", "b"]) * held_out[:, None]
        assert members.sum(axis=0).tolist() == [45, 15]
        self.check(found, shares_of(found.model, X), ["a", "b"], members)
        assert "the 60 samples whose labels were hidden from the fit" in page

    @pytest.mark.slow
    def test_all_labeled_samples_where_few_are_held_out(self) -> None:
        labels = ["10", "9", "2", ""] * 10
        X, found, page = self.fit(labels, f"{PLAIN} --rank 3 --test-size 0.2")
        assert found.column("source").count("held out") == 6
        names = ["2", "9", "10"]  # in natural order
        self.check(found, shares_of(found.model, X), names, np.array(labels)[:, None] == names)
        assert "Computed from the 30 samples with labels" in page

    @pytest.mark.slow
    def test_several_labels(self) -> None:
        labels = ["a", "a;b", "b", ""] * 3
        X, found, page = self.fit(labels, f"{NAMED} --label-separator ';' --test-size 0")
        members = np.array([["a" in one, "b" in one] for one in labels]).astype(float)
        members /= np.maximum(members.sum(axis=1, keepdims=True), 1)
        self.check(found, shares_of(found.model, X), ["a", "b"], members)
        assert "A sample with several labels is split evenly between them." in page

    @pytest.mark.slow
    def test_fit_that_saw_no_label(self) -> None:
        labels = ["a", "b", "a", ""] * 3
        X, found, page = self.fit(labels, f"--model nmf --rank 2 {SHORT}")
        shares = shares_of(found.model, X, guided=False)
        self.check(found, shares, ["a", "b"], np.array(labels)[:, None] == ["a", "b"])
        assert "Computed from the 9 samples with labels" in page


class TestExamples:
    def check(self, found: Result, X: Any) -> list[list[dict[str, str]]]:
        """Check that examples are those of their topics most alike; return them by topic."""
        shares = shares_of(found.model, X, guided=False)
        alike = cosine_similarity(X, found.model.components_)
        rows = found.rows("topic_examples.csv")
        topics = [[row for row in rows if row["topic"] == str(k)] for k in range(shares.shape[1])]
        for k, some in enumerate(topics):
            samples = [int(row["sample"]) for row in some]
            least = max(0.01, shares[:, k].max() / 2)
            main_samples = np.flatnonzero(shares[:, k] >= least * (1 + 1e-6))
            assert samples
            assert (shares[samples, k] >= least * (1 - 1e-6)).all()
            assert [float(row["share"]) for row in some] == pytest.approx(
                shares[samples, k].tolist(), rel=1e-3
            )
            cosines = alike[samples, k]
            assert (np.diff(cosines) <= 1e-6).all()
            assert cosines[0] >= alike[main_samples, k].max() - 1e-6
        return topics

    @pytest.mark.slow
    def test_most_alike_first_of_those_of_the_topic(self) -> None:
        rng = np.random.default_rng(0)
        # Long samples, pure and mixed, are more alike than short ones of one topic.
        A = np.array([[2.0, 2, 2, 2, 3, 1, 0, 0], [2, 2, 2, 2, 0, 0, 1, 3]])
        shares = np.array([[1, 0], [0, 1], [0.68, 0.32], [0.32, 0.68]])
        short = rng.poisson(0.2 * np.repeat(A, 6, axis=0)) + np.repeat(np.eye(2, 8, 4), 6, axis=0)
        X = np.vstack([short, 50 * shares @ A])
        np.save("X.npy", X)
        found = run(f"fit X.npy --model nmf --rank 2 {SHORT} --image-shape 2x4 --out out")
        topics = self.check(found, X)
        assert [len(some) for some in topics] == [3, 3]
        image = pytest.importorskip("matplotlib.image")
        coded = re.findall(r"data:image/png;base64,([\w+/=]{30,})", found.read())
        shown = [image.imread(io.BytesIO(base64.b64decode(one))) for one in coded]
        shown = [1 - one[:, :, 0] for one in shown if one.shape == (2, 4, 4)]
        for row in X[[int(row["sample"]) for some in topics for row in some]]:
            assert min(abs(one.ravel() - row / row.max()).max() for one in shown) < 0.01

    @pytest.mark.slow
    def test_texts_that_begin_alike_are_shown_once(self) -> None:
        long = "cat dog pet " * 20
        texts = [long + "x", long + "y", " stock\n bank\t market ", "stock price", "v" * 300]
        rows = [{"text": text, "name": f"n{k}"} for k, text in enumerate(texts)]
        fitted = fit_texts(rows, "--model nmf --rank 2 --id name --max-iter 50")
        found = fitted.rows("topic_examples.csv")
        shown = {row["id"]: row["text"] for row in found}
        (begin,) = (text for text in shown.values() if text.startswith("cat"))
        assert len(begin) <= 200
        assert begin.endswith(("cat…", "dog…", "pet…"))
        assert shown.get("n2") == "stock bank market"
        assert all(row["id"] == f"n{row['sample']}" for row in found)
