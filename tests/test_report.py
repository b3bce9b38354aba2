"""The report: what every part of the page holds, and that all of it fits on the page."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.absent_packages import hide
from helpers.each import each
from helpers.topic_tables import make_topics

from ssnmf_fast import report as _page
from ssnmf_fast.cli import main
from ssnmf_fast.report import Example, Picture, Summary, read
from ssnmf_fast.report.evaluation import Evaluation, Measure, confusion
from ssnmf_fast.report.shares import ClassShare
from ssnmf_fast.results import Topics

EVIL = "<script>alert('x')</script>"


def in_order(names: list[Any]) -> list[Any]:
    """The classes of a confusion table stand in natural order."""
    return list(confusion(names, names, names).classes)


class TestNaturalOrder:
    def test_numbers_by_value(self) -> None:
        assert in_order(["1", "10", "11", "2"]) == ["1", "2", "10", "11"]
        assert in_order(["-1", "0.5", "-10", "2e1"]) == ["-10", "-1", "0.5", "2e1"]

    def test_numbers_within_names(self) -> None:
        names = ["part 10", "part 2", "Part 1", "10", "9 b", "nan", "1" * 5000, ""]
        wanted = ["", "9 b", "10", "1" * 5000, "nan", "Part 1", "part 2", "part 10"]
        assert in_order(names) == wanted
        assert in_order(["b", "B", "a"]) == ["a", "B", "b"]


class TestTopics:
    @each(
        ("shares", "leading"),
        [
            ([0.5, 0.5], []),
            ([0.59, 0.41], []),
            ([0.61, 0.39], [0]),
            ([0.45, 0.55, 0, 0], [1]),
            ([0.5, 0.5, 0, 0], [0, 1]),
            ([0.19] + [0.81 / 29] * 29, []),
            ([0.21] + [0.79 / 29] * 29, [0]),
            ([], []),
        ],
    )
    def test_leading_classes(self, shares: list[float], leading: list[int]) -> None:
        topics = make_topics(np.ones((1, 2)))
        if shares:
            topics = topics.with_shares(list(range(len(shares))), np.array([shares]))
        assert [label for label, _ in topics[0].leading] == leading

    def test_sizes(self) -> None:
        topics = make_topics(np.ones((3, 2))).with_sizes(np.array([3.0, 0.0, 1.0]))
        assert [topic.size for topic in topics] == [0.75, 0, 0.25]
        assert make_topics(np.ones((1, 2)))[0].size is None


def topics_of(n_topics: int, names: list[str]) -> Topics:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(len(names), 0.1), n_topics)
    topics = make_topics(rng.random((n_topics, 9)), n_terms=4).with_shares(names, shares)
    return topics.with_sizes(rng.random(n_topics))


def summary(**parts: Any) -> Summary:
    return Summary("Title", "lead", {"samples": 9}, {"seed": 0}, **parts)


class TestTables:
    @each("count", [2, 5, 12, 20, 30, 40, 60])
    @each("name", ["{}", "class.of.a.long.name.{}"])
    def test_fit_on_the_page(self, count: int, name: str) -> None:
        names = [name.format(k) for k in range(count)]
        truth = [names[k % count] for k in range(300)]
        for heat in (
            _page.share_table(summary(topics=topics_of(10, names), class_counts=[7] * count)),
            _page.confusion_table(confusion(truth, truth[::-1], names)),
        ):
            assert heat is not None
            assert heat.room + count * heat.width <= 996
            assert heat.numbers or count > 40
            # What is written across is not wider than its column: 8 pixels a letter.
            assert heat.upright or all(8 * len(head) <= heat.width for head in heat.classes)

    def test_many_long_names_stand_upright(self) -> None:
        short, few = ["a", "b", "c"], ["comp.sys.mac.hardware", "b"]
        many = [f"class {k}" for k in range(60)]
        tables = [
            _page.confusion_table(confusion(names * 200, names * 200, names))
            for names in (short, few, many)
        ]
        assert [table.upright for table in tables if table] == [False, False, True]
        assert [table.numbers for table in tables if table] == [
            True,
            True,
            False,
        ]  # 200 is too wide

    def test_no_table_beyond_a_hundred_classes(self) -> None:
        for count, drawn in ((100, True), (101, False)):
            names = [f"class {k}" for k in range(count)]
            shares = _page.share_table(summary(topics=topics_of(3, names)))
            assert (shares is not None) == drawn
            assert (_page.confusion_table(confusion(names, names, names)) is not None) == drawn
        pairs = _page.most_confused(confusion(names, names[1:] + names[:1], names))
        assert len(pairs) == 30

    def test_shares(self) -> None:
        B = np.array([[1.0, 0, 0], [0, 0, 3], [1, 3, 0], [2, 0, 0]])
        topics = make_topics(np.eye(4, 5), n_terms=3).with_shares(["b", "a", "c"], B)
        heat = _page.share_table(summary(topics=topics, class_counts=[10, 20, 30]))
        assert heat is not None
        assert heat.classes == ["b (10)", "a (20)", "c (30)"]
        # Topics of one class are neighbors, unless they have names.
        assert [name[0] for name in heat.names] == ["0", "3", "2", "1"]
        assert [cell.text for cell in heat.cells[2]] == ["25", "75", ""]
        assert heat.cells[2][1].about.endswith(": 75.0%")
        named = _page.share_table(summary(topics=topics.named(list("pqrs"))))
        assert named is not None
        assert named.names == list("pqrs")
        assert _page.share_table(summary(topics=make_topics(np.eye(2)))) is None
        assert _page.share_table(summary()) is None

    def test_colors_use_the_whole_scale(self) -> None:
        topics = make_topics(np.eye(1, 5)).with_shares(list(range(10)), np.ones((1, 10)))
        heat = _page.share_table(summary(topics=topics))
        assert heat is not None
        assert {cell.ground for cell in heat.cells[0]} == {0.5}  # 0.1 of 0.2

    def test_classes_are_in_natural_order(self) -> None:
        table = confusion(["10", "9", "2"], ["2", "9", "2"], ["10", "2", "9"])
        assert table.classes == ["2", "9", "10"]
        np.testing.assert_array_equal(table.counts, [[1, 0, 0], [0, 1, 0], [1, 0, 0]])
        assert confusion(["new"], ["a"], ["a"]).classes == ["a", "new"]

    def test_most_confused(self) -> None:
        truth = ["a"] * 4 + ["b"] * 3 + ["c"]
        table = confusion(truth, ["a", "b", "b", "c", "c", "b", "b", "c"], "abc")
        assert _page.most_confused(table) == [
            ("a", "b", 2, "50%"),
            ("a", "c", 1, "25%"),
            ("b", "c", 1, "33%"),
        ]
        assert _page.most_confused(confusion(["a"], ["b"], "ab")) == []
        assert _page.most_confused(confusion(list("abc"), list("abc"), "abc")) == []
        assert _page.most_confused(None) == []


def page(**parts: Any) -> str:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    return replace(summary(), **parts).html({})


def test_remarks_end_with_one_dot() -> None:
    text = page(remarks=["few words.", "few texts"])
    assert "<summary>Few words.</summary>" in text
    assert "<summary>Few texts.</summary>" in text


def judged(truth: list[str], guessed: list[str], classes: list[str]) -> dict[str, Any]:
    return Evaluation(np.array(truth), {"model": np.array(guessed)}, classes, False).shown


def rows_of(text: str) -> list[str]:
    """Rows of topics."""
    return re.split(r'class="topic"', text.partition('<section id="settings">')[0])[1:]


class TestTopicRows:
    def test_ids_name_the_examples(self) -> None:
        some = [[Example(3, 0.9, id="art-3"), Example(4, 0.9)]]
        text = page(topics=make_topics(np.eye(1, 5)), examples=some)
        assert re.findall("90 % of ([^<]*)<", text) == ["art-3", "sample 4"]

    def test_sizes_words_tags_and_examples(self) -> None:
        A = np.array([[1, 4, 2, 0, 0], [0, 0, 0, 3.0, 0], [0, 0, 0, 0, 0]])
        B = np.array([[9.0, 1], [1, 1], [0, 0]])
        topics = make_topics(A).with_shares(["u", "v"], B)
        topics = topics.with_sizes(np.array([0.9, 0.0996, 0.0004]))
        rows = rows_of(page(topics=topics, examples=[[Example(3, 0.987, "u", "words")], [], []]))
        tags = [re.findall('class="tag" title="(.*?)"', row) for row in rows]
        assert tags == [["u 90%"], [], []]
        assert [re.findall('class="size">(.*?)<', row)[0] for row in rows] == [
            "90 %",
            "10 %",
            "0 %",
        ]
        words = [re.findall('class="words">(.*?)<', row)[0] for row in rows]
        assert words == ["x1, x2, x0", "x3", "empty"]
        assert "99 % of sample 3,</span> u<br>words" in rows[0]
        assert [row.count("<summary") for row in page(topics=topics).split("<b>Topic")[1:3]] == [
            0,
            0,
        ]

    @each(("guessed", "tagged"), [("uuvv", ["u 90%", "v 80%"]), ("uuuu", ["u 90%"])])
    def test_a_class_that_is_not_predicted_is_no_tag(self, guessed: str, tagged: list[str]) -> None:
        topics = make_topics(np.eye(2, 5)).with_shares(["u", "v"], np.array([[9.0, 1], [2, 8]]))
        found = judged(list("uuvv"), list(guessed), ["u", "v"])
        text = page(topics=topics, **found)
        assert re.findall('class="tag" title="(.*?)"', text) == tagged

    def test_images(self) -> None:
        image = np.array([[0, 1.0, 2], [3, np.nan, 4]])
        topics, examples = make_topics(np.eye(1, 6)), [[Example(0, 0.5, image=image)]]
        text = page(topics=topics, parts=[image], examples=examples)
        assert 'class="words"' not in text
        address, again = re.findall('<img class="pixels" src="(.*?)"', text)
        assert address == again
        read_image = pytest.importorskip("matplotlib.image").imread
        content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
        shown = 4 * (1 - read_image(io.BytesIO(content))[:, :, 0])
        np.testing.assert_allclose(shown, np.nan_to_num(image), atol=0.02)

    def test_topics_by_size(self) -> None:
        topics = topics_of(13, ["a", "b"]).with_sizes(np.arange(13.0))
        text = page(topics=topics, examples=[[Example(k, 0.5)] for k in range(13)])
        assert re.findall("<b>Topic (\\d+)<", text) == [str(k) for k in range(12, -1, -1)]
        assert re.findall("of sample (\\d+)<", text) == [str(k) for k in range(12, -1, -1)]


class TestPage:
    def test_what_matters_comes_first(self) -> None:
        names = ["a", "b", "c"]
        text = page(
            facts={"samples": 9},
            settings={"rank": 5},
            other_settings={"tol": 1e-4},
            details={"residual": "1e-3"},
            topics=topics_of(2, names),
            **judged(names, ["b", "a", "c"], names),
            measures=[Measure("accuracy", "accuracy", 0.3, "30% (so)", "Right ones.", (0.1, 0.6))],
            codes=[
                ClassShare("rare", 1, 2, 0.1, 0.02, 0.3),
                ClassShare("all", 3, 4, 0.6, 0.5, 0.7),
            ],
            steps=[("Label more:", ["ssnmf-fast suggest", "ssnmf-fast fit"])],
            tables=[("Check by hand", "The 1 least sure", ["Text"], [["what?"]])],
            warnings=["much " * 90],
        )
        order = [">9<", "Warning: much", ">all<", "50 to 70", ">rare<", ">30%<", "Label more:"]
        order += [
            "ssnmf-fast suggest\nssnmf-fast fit<",
            'id="topics"',
            "what?",
            "Right ones.",
            ">rank<",
        ]
        places = [text.index(part) for part in [*order, "Other settings", ">tol<", ">residual<"]]
        assert places == sorted(places)

    def test_a_tree_of_topics(self) -> None:
        text = page(tree="0 60%: a<b\n    0/0 30%: c")
        assert '<pre class="scroll">0 60%: a&lt;b\n    0/0 30%: c</pre>' in text
        assert 'id="tree"' not in page()

    def test_everything_is_escaped_and_needs_no_script(self) -> None:
        names = [EVIL, "b", "c"]
        text = page(
            topics=topics_of(2, names).named([EVIL, "q"]),
            examples=[[Example(0, 0.9, EVIL, EVIL)], []],
            class_counts=[1, 2, 3],
            **judged(names, ["b", EVIL, "c"], names),
        )
        assert "<script" not in text
        assert "http" not in text
        assert text.count("&lt;script&gt;") >= 8
        assert "predicted class" in text
        assert "Most often confused" in text

    @pytest.mark.slow
    def test_parts_are_left_out(self) -> None:
        text = page(topics=make_topics(np.eye(2)))
        for part in ("Examples", "of the data", "no class in particular", "Confusion"):
            assert part not in text
        text = page(topics=topics_of(2, ["a", "b"]).named(["p", "q"]))
        assert "no class in particular" not in text  # a name tells what the topic is
        assert "Topic 0: p" in text

    def test_an_objective_of_few_points_is_folded(self) -> None:
        assert "<details open>" not in page(objective=[(0, 9.0), (1, 2.0)])
        assert "<details open>" in page(objective=[(k, 9.0 - k) for k in range(4)])

    def test_many_classes_are_told_in_words(self) -> None:
        names = [f"class {k}" for k in range(120)]
        guessed = [*names[1::-1], *names[2:]]
        text = page(topics=topics_of(3, names), **judged(names, guessed, names))
        assert text.count("too many classes to show here, 120") == 2
        assert "see topic_classes.csv." in text
        assert 'class="tag"' in text
        assert "Most often confused" in text
        assert "<td style=" not in text

    def test_shares_without_intervals(self) -> None:
        text = page(codes=[ClassShare("a", 1, 2, 0.25, np.nan, np.nan)])
        assert "<b>25 %</b></td><td>-</td>" in text
        assert 'style="width:100.0%"' in text
        assert "nan" not in text

    def test_made_again_from_its_content(self) -> None:
        names = ["a", "b", "c"]
        full = replace(
            summary(
                class_counts=[1, 2, 3],
                parts=[np.eye(2), np.array([[0, np.nan]])],
                remarks=["so"],
                tree="t",
            ),
            topics=topics_of(2, names),
            examples=[[Example(0, 0.9, "a", image=np.eye(2))], []],
            **judged(names, ["b", "a", "c"], names),
            measures=[Measure("accuracy", "accuracy", 0.3, "30% (so)", "Right ones.", (0.1, 0.6))],
            codes=[ClassShare("a", 1, 2, 0.25, np.nan, np.nan)],
            pictures=[Picture("Title", "caption", "a.png"), Picture("Absent", "", "b.png")],
        )
        images = {"a.png": b"a picture"}
        assert read(full.content()).html(images) == (text := full.html(images))
        assert base64.b64encode(b"a picture").decode() in text
        assert "Absent" not in text


@pytest.fixture
def images(tmp_path: Path) -> tuple[Path, Path]:
    """Bars of two kinds in images of 4 x 3 pixels."""
    rng = np.random.default_rng(0)
    X = 0.05 * rng.random((24, 4, 3))
    X[::2, 0] += 1
    X[1::2, :, 2] += 1
    np.save(tmp_path / "images.npy", X.reshape(24, 12))
    (tmp_path / "labels.txt").write_text("10\n9\n" * 12, encoding="utf-8")
    return tmp_path / "images.npy", tmp_path / "labels.txt"


class TestImages:
    def fit(self, data: Path, out: Path, *more: str) -> int:
        return main(["fit", str(data), "--rank", "2", "--out", str(out), *more])

    @pytest.mark.slow
    def test_grid_and_examples(
        self, images: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        data, labels = images
        out = tmp_path / "out"
        more = ["--model", "ssnmf", "--labels", str(labels)]
        assert self.fit(data, out, *more, "--image-shape", "4x3") == 0
        assert (out / "components.png").read_bytes().startswith(b"\x89PNG")
        printed = capsys.readouterr().out
        assert "components.png" in printed
        assert "x11" not in printed  # names of pixels
        page = (out / "report.html").read_text(encoding="utf-8")
        # Two components with three examples each, the grid and the objective.
        assert page.count("data:image/png;base64,") == 2 * (1 + 3) + 2
        assert "<td>4x3</td>" in page
        with (out / "topic_classes.csv").open(encoding="utf-8-sig") as file:
            assert next(csv.reader(file)) == ["topic", "9", "10"]
        # A later run without it leaves no old picture behind.
        assert self.fit(data, out) == 0
        assert not (out / "components.png").exists()

    def test_without_matplotlib(
        self,
        images: tuple[Path, Path],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        hide("matplotlib", monkeypatch)
        assert self.fit(images[0], tmp_path / "out", "--image-shape", "4x3") == 0
        assert "left out: components.png, report.html" in capsys.readouterr().out
        assert (tmp_path / "out" / "topic_examples.csv").exists()

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ("5x3", "has 15 pixels"),
            ("4", "height and width as in 28x28"),
            ("0x3", "height and width as in 28x28"),
            ("4x3x1", "height and width as in 28x28"),
        ],
    )
    def test_errors(
        self,
        shape: str,
        message: str,
        images: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert self.fit(images[0], tmp_path / "out", "--image-shape", shape) == 2
        assert message in capsys.readouterr().err

    def test_of_a_table(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "t.csv").write_text("text\na b\n", encoding="utf-8")
        assert self.fit(tmp_path / "t.csv", tmp_path / "out", "--image-shape", "4x3") == 2
        assert "is for a matrix of images" in capsys.readouterr().err


def test_sizes_and_examples_of_texts(tmp_path: Path) -> None:
    """Texts reach the report, beginning alike they are shown once, and sizes sum to 1."""
    pets = ["cat dog pet", "dog cat mat", "pet cat vet", "dog  vet\npet"] * 3
    money = ["stock bank", "bank price stock"] * 3
    lines = [json.dumps({"text": text}) for text in [*pets, *money]]
    (tmp_path / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "out"
    given = ["--rank", "2", "--min-df", "1", "--seed", "1", "--out", str(out)]
    assert main(["fit", str(tmp_path / "t.jsonl"), *given]) == 0
    sizes = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["topic_sizes"]
    assert sum(sizes) == pytest.approx(1, abs=1e-5)
    assert 0.6 < max(sizes) < 0.75
    with (out / "topic_examples.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["topic", "rank", "sample", "share", "text"]
    texts = [row["text"] for row in rows if row["topic"] == str(int(np.argmax(sizes)))]
    assert len(texts) == len(set(texts)) == 3
    assert {"stock bank", "bank price stock"} < {row["text"] for row in rows}
    page = (
        (out / "report.html").read_text(encoding="utf-8") if (out / "report.html").exists() else ""
    )
    if page:
        assert all(re.search(re.escape(text), page) for text in texts)
