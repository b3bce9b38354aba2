"""Pictures of topics and of samples: what is drawn, where, and how it is labeled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.absent_packages import hide
from helpers.each import each
from helpers.refused import refused
from helpers.topic_tables import Topics, make_topics
from sklearn import decomposition

import ssnmf_fast as sf
import ssnmf_fast.sklearn as drop_in
from ssnmf_fast import plotting

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

B = np.array([[0.0, 3.0], [2.0, 0.0], [0.0, 0.0], [1.0, 3.0]])
S = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 0.0], [0.0, 5.0]])
LABELS = ["b", "b", "a", None]


def topics(n_topics: int = 3, n_terms: int = 4) -> Topics:
    A = np.random.default_rng(0).gamma(1.0, size=(n_topics, 6))
    A[0] = 0
    A[1, 2:] = 0
    names = ["$cost", "_hidden", "a very long term indeed, of many words", "x", "a_$b^c", "y"]
    return make_topics(A, names, n_terms, np.array(["u", "v"]), np.eye(n_topics, 2) * 2)


CALLS: dict[str, Callable[..., Figure]] = {
    "class_map": lambda **more: plotting.class_map(B, **more),
    "label_map": lambda **more: plotting.label_map(S, LABELS, **more),
    "representation_map": lambda **more: plotting.representation_map(S, LABELS, **more),
    "image_grid": lambda **more: plotting.image_grid(
        B, (1, 2), names=list("pqrs"), weights=[1, 2, 0, 1], sample=[1, 2], **more
    ),
    "objective_curve": lambda **more: plotting.objective_curve([(0, 9.0), (5, 2.0)], **more),
    "rank_curve": lambda **more: plotting.rank_curve(two_ranks(), **more),
    "topic_tree": lambda **more: plotting.topic_tree(small_tree(), **more),
    "topics_over_time": lambda **more: plotting.topics_over_time(dated_model(), **more),
    "consensus_matrix": lambda **more: plotting.consensus_matrix(few_starts(), **more),
    "stability_by_rank": lambda **more: plotting.stability_by_rank([few_starts()], **more),
}


def two_ranks() -> sf.results.RankChoice:
    X = np.random.default_rng(0).random((12, 8))
    return sf.choose_rank(X, [1, 2], max_iter=5, random_state=0)


def few_starts() -> sf.results.Consensus:
    X = np.kron(np.eye(2), np.ones((6, 3)))
    return sf.consensus(X, 2, n_starts=2, random_state=0)


def dated_model() -> sf.DynamicTopics:
    X = np.kron(np.eye(2), np.ones((6, 3)))
    return sf.DynamicTopics(2, random_state=0).fit(
        X, np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    )


def small_tree() -> sf.trees.TopicTree:
    X = np.kron(np.eye(3), np.ones((4, 2)))
    return sf.trees.topic_tree(
        X, [2, 3], feature_names=["$a", "_b", "c", "d", "e", "f"], random_state=0
    )


# What has no title, or no axes to be given.
WITHOUT_AXES: dict[str, Callable[..., Figure]] = {
    "clustergram": lambda: plotting.clustergram(few_starts()),
    "tensor_components": lambda: plotting.tensor_components([np.ones((3, 1)), np.ones((50, 1))]),
    "term_bars": lambda: plotting.term_bars(topics()),
    "singular_values": lambda: plotting.singular_values([1.0]),
}


def cells(drawn: Figure) -> np.ndarray:
    return np.asarray(drawn.axes[0].collections[0].get_array())


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


def test_every_function_is_listed_and_sorted() -> None:
    assert plotting.__all__ == sorted(plotting.__all__)
    assert {*CALLS, *WITHOUT_AXES} == set(plotting.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_into_axes_with_title(name: str, tmp_path: Path) -> None:
    drawn = Figure(layout="constrained")
    axes = drawn.add_subplot()
    assert CALLS[name](ax=axes, title="A title") is drawn
    assert axes.get_title().startswith("A title")
    drawn.savefig(tmp_path / "drawn.png")


@pytest.mark.slow
def test_import_is_lazy_and_needs_no_matplotlib() -> None:
    code = (
        "import sys, ssnmf_fast as sf; assert 'ssnmf_fast.plotting' not in sys.modules; "
        "assert 'plotting' in dir(sf); assert sf.plotting.class_map; "
        "from ssnmf_fast import plotting; assert plotting is sf.plotting; "
        "assert not {'matplotlib', 'sklearn', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", [*CALLS, *WITHOUT_AXES])
def test_without_matplotlib(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide("matplotlib", monkeypatch)
    with pytest.raises(Exception, match=r"ssnmf-fast\[plot\]"):
        (CALLS | WITHOUT_AXES)[name]()


@pytest.mark.slow
def test_needs_no_display_and_leaks_no_figure() -> None:
    code = (
        "import sys; from ssnmf_fast import plotting as p; p.class_map([[1.0]]); "
        "p.objective_curve([(0, 1.0)]).canvas.draw(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": _path()})


def _path() -> str:
    return str(Path(sf.__file__).parents[1])


class TestClassMap:
    def test_rows_are_shares_and_neighbors_by_class(self) -> None:
        kept = B.copy()
        drawn = plotting.class_map(B, ["u", "v"])
        axes, bar = drawn.axes
        np.testing.assert_allclose(cells(drawn), [[1, 0], [0, 1], [0.25, 0.75], [0, 0]])
        assert texts(axes.get_yticklabels()) == ["topic 1", "topic 0", "topic 3", "topic 2"]
        assert texts(axes.get_xticklabels()) == ["u", "v"]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("class", "topic")
        assert bar.get_ylabel() == "share of the class\nin the topic"
        assert texts(axes.texts) == ["100%", "100%", "25%", "75%"]
        assert axes.get_ylim() == (3.5, -0.5)  # the first row is on top
        np.testing.assert_array_equal(B, kept)

    def test_order_is_kept(self) -> None:
        drawn = plotting.class_map(B, sort=False, topics=list("pqrs"))
        assert texts(drawn.axes[0].get_yticklabels()) == list("pqrs")
        np.testing.assert_allclose(cells(drawn)[2], 0)

    def test_topics_are_named_by_their_terms(self) -> None:
        drawn = plotting.class_map(B[:3], topics=topics(), sort=False)
        names = texts(drawn.axes[0].get_yticklabels())
        assert names[0] == "0: (no terms)"
        assert sorted(names[1][3:].split(", ")) == ["$cost", "_hidden"]
        assert len(names[2]) <= 60

    def test_darkest(self) -> None:
        for given, wanted in ((None, 0.6), (0.9, 0.9)):
            drawn = plotting.class_map([[1.0, 1.0]], darkest=given)
            assert drawn.axes[0].collections[0].norm.vmax == wanted
        refused("darkest must be above 0 and at most 1; got 0", plotting.class_map, B, darkest=0)

    def test_of_data(self) -> None:
        """B that is 0 or 1 everywhere does not hide that a topic occurs in all classes."""
        rng = np.random.default_rng(0)
        X = rng.random((60, 8)) * np.kron([[1, 0.1], [0.1, 1]], np.ones((30, 4)))
        y = np.repeat(["u", "v"], 30)
        model = sf.SSNMFClassifier(n_components=3, random_state=0, max_iter=200).fit(X, y)
        unseen = rng.random((40, 8))  # of no class
        drawn = plotting.class_map(model, X=unseen, y=["v"] * 30 + ["u"] * 10, sort=False)
        explained = model.transform(unseen) * model.components_.sum(axis=1)
        explained /= explained.sum(axis=1, keepdims=True)
        means = np.array([explained[30:].mean(axis=0), explained[:30].mean(axis=0)]).T
        np.testing.assert_allclose(cells(drawn), means / means.sum(axis=1, keepdims=True))
        assert cells(drawn).max() < 0.7
        assert texts(drawn.axes[0].get_xticklabels()) == ["u", "v"]
        # Without data it is what the labeled samples of the fit show without their labels.
        own = plotting.class_map(model, sort=False)
        same = plotting.class_map(model, X=X, y=y, sort=False)
        np.testing.assert_allclose(cells(own), cells(same), atol=0.02)
        assert cells(own).max() < 0.999
        B = plotting.class_map(model.label_components_, model.classes_, sort=False)
        assert cells(B).max() == 1  # components belong to classes
        assert texts(own.axes[0].get_xticklabels()) == ["u", "v"]

    def test_of_a_model_without_classes(self) -> None:
        X = np.random.default_rng(0).random((9, 5))
        model = sf.NMF(n_components=2, random_state=0).fit(X)
        labels = ["a", None] * 4 + ["b"]
        assert cells(plotting.class_map(model, X=X, y=labels)).shape == (2, 2)
        indicators = np.eye(3)[np.arange(9) % 3]
        drawn = plotting.class_map(model, ["p", "q", "r"], X=X, y=indicators)
        assert texts(drawn.axes[0].get_xticklabels()) == ["p", "q", "r"]
        refused("NMF has no matrix of topics over classes", plotting.class_map, model)
        refused("X needs y", plotting.class_map, model, X=X)
        refused("y has 2 rows and S has 9", plotting.class_map, model, X=X, y=["a", "b"])
        with pytest.raises(TypeError, match="model must be a fitted estimator"):
            plotting.class_map(B, X=X, y=labels)

    def test_of_a_model_that_names_its_topics(self) -> None:
        X = np.random.default_rng(0).random((9, 5))
        y = ["sea", "air", None] * 3
        model = sf.TopicSupervisedNMF(n_free_topics=1, random_state=0, predicts=False).fit(X, y)
        drawn = plotting.class_map(model, X=X, y=y, sort=False)
        assert texts(drawn.axes[0].get_yticklabels()) == ["air", "sea", "free0"]
        numbered = plotting.class_map(model, X=X, y=y, topics=range(3), sort=False)
        assert texts(numbered.axes[0].get_yticklabels()) == ["0", "1", "2"]

    @pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e300])
    def test_extreme_numbers(self, scale: float) -> None:
        np.testing.assert_allclose(
            cells(plotting.class_map(B * scale, sort=False))[3], [0.25, 0.75], rtol=0.01
        )

    @pytest.mark.slow
    @pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (50, 20)])
    def test_names_do_not_overlap(self, rows: int, columns: int) -> None:
        names = [f"class.of.a.long.name.{k}" for k in range(columns)]
        values = np.random.default_rng(0).random((rows, columns))
        drawn = plotting.class_map(values, names, topics=["a topic " * 20] * rows)
        drawn.draw_without_rendering()
        axes = drawn.axes[0]
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert len(boxes) == rows
        assert all(low.y1 <= high.y0 for high, low in pairwise(boxes))
        assert min(box.x0 for box in boxes) >= 0
        assert cells(drawn).size == rows * columns


class TestLabelMap:
    @pytest.mark.slow
    def test_sums_over_samples_of_a_label(self) -> None:
        drawn = plotting.label_map(S, LABELS)
        np.testing.assert_allclose(cells(drawn), [[0, 1], [0, 1]])
        np.testing.assert_allclose(
            cells(plotting.label_map(S, LABELS, share="largest"))[1, 1], 0.25
        )
        by_label = cells(plotting.label_map(S, LABELS, share="label"))
        np.testing.assert_allclose(by_label, [[0, 0.8], [0, 0.2]])
        assert texts(drawn.axes[0].get_xticklabels()) == ["a", "b"]
        assert drawn.axes[0].get_xlabel() == "label"

    def test_several_labels_of_a_sample(self) -> None:
        indicators = [[1, 1], [0, 1], [1, 0], [-1, -1]]
        drawn = plotting.label_map(S, indicators, label_names=["p", "q"], share="largest")
        np.testing.assert_allclose(cells(drawn), [[0.25, 1], [0, 0.25]])
        assert texts(drawn.axes[0].get_xticklabels()) == ["p", "q"]

    def test_sparsity_in_the_title(self) -> None:
        one_each = plotting.label_map(np.eye(4), [0, 1, 2, 3]).axes[0].get_title()
        assert one_each == "sparsity of S 0.67, between labels 0.67"  # (4 - 2) / (4 - 1)
        equal = plotting.label_map(np.ones((2, 2)), [0, 1], title="T").axes[0].get_title()
        assert equal == "T\nsparsity of S 0.00, between labels 0.00"
        zeros = plotting.label_map(np.zeros((2, 2)), [0, 1]).axes[0].get_title()
        assert zeros == "sparsity of S -, between labels -"


class TestRepresentationMap:
    def test_sorted_by_class(self) -> None:
        drawn = plotting.representation_map(S, LABELS, sort=False)
        axes = drawn.axes[0]
        assert texts(axes.get_yticklabels()) == ["a (1)", "b (2)", "(no label) (1)"]
        np.testing.assert_allclose(cells(drawn), [[0, 0], [1, 0], [0.75, 0.25], [0, 1]])
        assert texts(axes.get_xticklabels()) == ["0", "1"]
        borders = [path[0][1] for path in axes.collections[1].get_segments()]
        np.testing.assert_allclose(borders, [0.25, 0.75])

    def test_many_samples_are_averaged(self) -> None:
        rng = np.random.default_rng(0)
        y = np.array(["many"] * 4990 + ["few"] * 10)
        many = rng.random((5000, 3))
        drawn = plotting.representation_map(many, y, max_rows=100, class_names=["F", "M"])
        axes = drawn.axes[0]
        assert texts(axes.get_yticklabels()) == ["F (10)", "M (4,990)"]
        assert 2 <= len(cells(drawn)) <= 101
        np.testing.assert_allclose(cells(drawn).sum(axis=1), 1)
        heights = np.diff([0, *[path[0][1] for path in axes.collections[1].get_segments()], 1])
        assert heights.min() > 0.02  # the small class can be seen
        assert axes.collections[0].get_rasterized()

    def test_topics_are_sorted_by_class(self) -> None:
        drawn = plotting.representation_map([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]], [0, 1, 2])
        assert texts(drawn.axes[0].get_xticklabels()) == ["1", "0", "2"]
        np.testing.assert_allclose(cells(drawn), np.eye(3))

    def test_several_labels_are_refused(self) -> None:
        refused("use label_map", plotting.representation_map, S, np.ones((4, 2)))


class TestTermBars:
    def test_no_room_for_terms_of_weight_0(self) -> None:
        rows = [plotting.term_bars(make_topics(np.eye(2, 9)), n_terms=n) for n in (1, 9)]
        assert rows[0].get_size_inches()[1] == rows[1].get_size_inches()[1]

    def test_bars_and_names(self, tmp_path: Path) -> None:
        drawn = plotting.term_bars(topics(), n_terms=3, title="Terms")
        assert [len(axes.patches) for axes in drawn.axes] == [0, 2, 3]
        assert texts(drawn.axes[0].texts) == ["topic 0: u 100%", "no terms"]
        widths = [bar.get_width() for bar in drawn.axes[2].patches]
        assert widths == list(topics()[2].weights[:3])
        assert widths[0] == drawn.axes[2].get_xlim()[1]
        low, high = drawn.axes[2].get_ylim()
        assert low > high  # the largest is on top
        assert texts(drawn.axes[1].texts) == ["topic 1: v 100%"]
        assert drawn.get_suptitle() == "Terms"
        below = "weight of the term in the topic; each chart on its own scale"
        assert drawn.get_supxlabel() == below
        drawn.savefig(tmp_path / "terms.png")

    def test_a_class_is_named_if_it_stands_out(self) -> None:
        even = make_topics(np.eye(2), None, 2, np.array(["u", "v"]), np.array([[5.0, 6], [1, 6]]))
        written = [texts(axes.texts) for axes in plotting.term_bars(even).axes]
        assert written == [["topic 0"], ["topic 1: v 86%"]]

    def test_names_of_topics_come_first(self) -> None:
        drawn = plotting.term_bars(topics(2).named(["sea", "$air"]))
        assert [axes.texts[0].get_text() for axes in drawn.axes] == [
            "topic 0: sea",
            "topic 1: $air",
        ]

    def test_common_scale(self) -> None:
        drawn = plotting.term_bars(topics(), common_scale=True)
        assert len({axes.get_xlim() for axes in drawn.axes}) == 1

    @pytest.mark.slow
    def test_long_terms_stay_on_the_page(self) -> None:
        named = make_topics(np.ones((50, 2)), ["W" * 60, "i" * 60], 2)
        drawn = plotting.term_bars(named)
        assert len(drawn.axes) == 50
        drawn.draw_without_rendering()
        boxes = [axes.get_tightbbox() for axes in drawn.axes]
        assert min(box.x0 for box in boxes) >= 0
        assert all(a.x1 <= b.x0 for a, b in pairwise(boxes[:5]))

    @each(
        ("given", "more", "error", "message"),
        [
            (["a"], {}, TypeError, "topics must be the result of topics"),
            (Topics([]), {}, ValueError, "topics is empty"),
            (topics(), {"n_terms": 0}, ValueError, "n_terms must be at least 1"),
            (topics(), {"columns": 0}, ValueError, "columns must be at least 1"),
            (make_topics(np.array([[np.nan]])), {}, ValueError, "weights of topic 0"),
        ],
    )
    def test_errors(self, given: Any, more: dict, error: type, message: str) -> None:
        refused(message, plotting.term_bars, given, error=error, **more)


class TestTables:
    @each(
        ("call", "error", "message"),
        [
            (lambda: plotting.class_map([1.0]), ValueError, r"label_components has shape \(1,\)"),
            (lambda: plotting.class_map([[1, -1]]), ValueError, r"label_components\[0, 1\] = -1"),
            (lambda: plotting.class_map([["a"]]), TypeError, "label_components has dtype"),
            (lambda: plotting.class_map(B, ["u"]), ValueError, "classes holds 1 names"),
            (lambda: plotting.class_map(B, "uv"), TypeError, "classes must be a sequence"),
            (lambda: plotting.class_map(B, topics=topics()), ValueError, "topics holds 3 topics"),
            (
                lambda: plotting.label_map(S + np.inf, LABELS),
                ValueError,
                r"S contains infinity at \[0, 0\]",
            ),
            (lambda: plotting.label_map(S, ["b"]), ValueError, "y has 1 rows and S has 4"),
            (lambda: plotting.label_map(S, [None] * 4), ValueError, "no labeled sample"),
            (lambda: plotting.label_map(S, LABELS, share="x"), ValueError, "share must be one of"),
            (lambda: plotting.representation_map(S, 3), TypeError, "y must hold a label"),
        ],
    )
    def test_errors(self, call: Callable[[], Any], error: type, message: str) -> None:
        refused(message, call, error=error)


class TestTopicTree:
    def test_a_box_for_each_topic_beside_its_parts(self) -> None:
        tree = small_tree()
        drawn = plotting.topic_tree(tree, n_terms=1)
        axes = drawn.axes[0]
        assert [text.split()[0] for text in texts(axes.texts)] == [n.name for n in tree.nodes]
        frames = [box for box in axes.patches if box.get_facecolor()[3] == 0]
        whole, *parts = frames if tree.nodes[1].parent == tree.nodes[0].name else frames[1:]
        assert whole.get_height() == pytest.approx(1.9)
        assert [box.get_height() for box in parts[:2]] == pytest.approx([0.9, 0.9])
        assert whole.get_y() == pytest.approx(parts[0].get_y())
        drawn.canvas.draw()  # names are no formulas

    def test_refuses_what_is_no_tree(self) -> None:
        with pytest.raises(TypeError, match="tree must be a TopicTree"):
            plotting.topic_tree(small_tree().model)


DATA = np.random.default_rng(0).poisson(1.0, (40, 12)) + 0.1
FIT = {"max_iter": 3, "random_state": 0}
MODELS = {
    "NMF": lambda: sf.NMF(2, tol=0, **FIT).fit(DATA),
    "sklearn.NMF": lambda: drop_in.NMF(2, tol=0, **FIT).fit(DATA),
    "their NMF": lambda: decomposition.NMF(2, tol=0, max_iter=9).fit(DATA),
    "LDA": lambda: decomposition.LatentDirichletAllocation(2, max_iter=3).fit(DATA),
    "imputer": lambda: sf.LowRankImputer(2).fit(np.where(DATA > 3, np.nan, DATA)),
    "CP": lambda: sf.NonnegativeCP(2, tol=0, **FIT).fit(DATA),
    "classifier": lambda: sf.SSNMFClassifier(2, tol=0, **FIT).fit(DATA, np.arange(40) % 2),
    "recommender": lambda: sf.Recommender(2).fit(list("aabbccdd"), list("xyxzyzwx")),
    "factorization": lambda: sf.factorize(DATA, n_components=2, tol=0, **FIT),
    "tree": lambda: sf.trees.topic_tree(DATA, [2, 3], random_state=0),
    "unfitted": lambda: sf.NMF(2),
    "None": lambda: None,
}
WITH_CLASSES = ("NMF", "sklearn.NMF", "their NMF", "LDA", "classifier")
PICTURES = {
    **{name: getattr(plotting, name) for name in plotting.__all__},
    "label_map": lambda model: plotting.label_map(model, np.arange(40) % 2),
    "representation_map": lambda model: plotting.representation_map(model, np.arange(40) % 2),
    "image_grid": lambda model: plotting.image_grid(model, (3, 4)),
    "class_map of samples": lambda m: plotting.class_map(m, X=DATA, y=np.arange(40) % 2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@each("kind", MODELS)
def test_models_are_drawn_or_refused(kind):
    model = MODELS[kind]()
    for name, draw in PICTURES.items():
        try:
            drawn = draw(model)
        except (TypeError, ValueError) as error:
            text = str(error)
            assert any(word in text for word in ("must", "expected", "has no", "give")), text
            assert name != "class_map of samples" or kind not in WITH_CLASSES
        else:
            assert drawn.axes
