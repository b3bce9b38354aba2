"""How texts become terms, and that `predict` repeats what `fit` did."""

from __future__ import annotations

import csv
import html
import json
from pathlib import Path

import numpy as np
import pytest
from internals import _text
from outputs import error_line

from ssnmf_fast.cli import main

TEXTS = [
    "Oil&#39;s price of oil &quot;falls&quot; &lt;b&gt;again&lt;/b&gt;",
    "the cat #39;s pet quot;cat&amp;quot; C3PO",
] * 5


def written(path: Path, texts: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "a.csv", TEXTS)


def fit(table: Path, out: Path, *more: str) -> int:
    return main(["fit", str(table), "--rank", "2", "--min-df", "1", "--out", str(out), *more])


def predicted(out: Path, texts: list[str]) -> np.ndarray:
    """Return the representation of new texts by `predict`."""
    new = written(out / "new.csv", texts)
    assert main(["predict", str(out), str(new), "--out", str(out / "p.csv"), "--quiet"]) == 0
    with (out / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(row[f"component{k}"]) for k in range(2)] for row in rows])


def terms(out: Path) -> list[str]:
    return list(json.loads((out / "vectorizer.json").read_text(encoding="utf-8"))["terms"])


UNESCAPED = {
    "plain": "plain",
    "a &lt; b &amp; c": "a < b & c",
    "&amp;quot;so&amp;quot;": '"so"',
    "Bush #39;s quot;plan quot;": 'bush \'s "plan "',
    "see issue #12; and A#39;": "see issue #12; and a#39;",
    "default; result; salt;": "default; result; salt;",
    "caf&eacute; &#8212;": "café —",
}


def test_unescaped(tmp_path: Path) -> None:
    """Between spaces stand the words that the characters of the entities make."""
    words = ["--token-pattern", r"\S+", "--stop-words", "none", "--max-df", "1"]
    assert fit(written(tmp_path / "a.csv", list(UNESCAPED)), tmp_path / "out", *words) == 0
    assert {*terms(tmp_path / "out")} == {*" ".join(UNESCAPED.values()).split()}


class TestEntities:
    def test_are_no_terms(self, table: Path, tmp_path: Path) -> None:
        assert fit(table, tmp_path / "out") == 0
        assert not {"39", "lt", "gt", "quot", "amp"} & set(terms(tmp_path / "out"))
        first, second = predicted(tmp_path / "out", [TEXTS[0], html.unescape(TEXTS[0])])
        assert np.array_equal(first, second)
        assert first.any()

    def test_may_be_kept(self, table: Path, tmp_path: Path) -> None:
        assert fit(table, tmp_path / "out", "--keep-markup", "--max-df", "1") == 0
        assert {"39", "lt", "quot"} <= set(terms(tmp_path / "out"))
        first, second = predicted(tmp_path / "out", ["quot lt", "quot; lt;"])
        assert np.array_equal(first, second)
        assert first.any()


NEWS = (
    'Ticker &lt;A HREF="http://www.quotes.org/FullQuote.aspx?ticker=GDT.N target=/stocks"&gt;'
    "Guidant&lt;/A&gt; rose, see https://news.org/x?y=1, or www.news.org."
)
STRIPPED = {
    "see <i>it</i><br/>now": "see it now",
    "x <!-- hidden --> <script>var a = 1 < 2;</script> y": "x y",
    '<?xml version="1"?> <!DOCTYPE html> z': "z",
    # What only looks like markup is text.
    "#include <stdio.h> by <name@host.edu> <Key>": "#include <stdio.h> by <name@host.edu> <key>",
    "a < b and c > d, <a unclosed": "a < b and c > d, <a unclosed",
    "<A judge once wrote\n<B and so on": "<a judge once wrote <b and so on",
    "<!-- open <![ www. http:// end": "<!-- open <![ www. http:// end",
}


class TestMarkup:
    @pytest.mark.parametrize("text", STRIPPED)
    def test_is_stripped(self, text: str) -> None:
        assert " ".join(_text.strip_markup(text).lower().split()) == STRIPPED[text]

    @pytest.mark.parametrize("part", ["<", "<a ", '<a href="', "<!--", "<script>", "http://", "&"])
    def test_long_texts_of_nothing_else(self, part: str) -> None:
        assert isinstance(_text.strip_markup(part * 20_000), str)  # within the limit of a test

    def test_in_terms_and_examples_alike(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert fit(written(tmp_path / "a.csv", [NEWS, "oil price"] * 4), out) == 0
        assert set(terms(out)) == {"ticker", "guidant", "rose", "oil", "price"}
        shown = (out / "topic_examples.csv").read_text(encoding="utf-8")
        assert "Ticker Guidant rose, see , or ." in shown
        first, second = predicted(out, [NEWS, "ticker guidant rose"])
        assert np.array_equal(first, second)

    def test_may_be_kept(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert fit(written(tmp_path / "a.csv", [NEWS, "oil price"] * 4), out, "--keep-markup") == 0
        assert {"href", "http", "fullquote"} <= set(terms(out))
        assert "&lt;A HREF" in (out / "topic_examples.csv").read_text(encoding="utf-8")


class TestTerms:
    @pytest.mark.parametrize(
        ("ngram", "present", "absent"),
        [
            ("1", {"price"}, {"price oil"}),
            ("1,2", {"price", "price oil"}, {"oil price oil"}),
            ("2", {"price oil"}, {"price"}),
        ],
    )
    def test_ngram(
        self, ngram: str, present: set[str], absent: set[str], table: Path, tmp_path: Path
    ) -> None:
        assert fit(table, tmp_path / "out", "--ngram", ngram) == 0
        found = set(terms(tmp_path / "out"))
        assert present <= found
        assert not absent & found
        # The stop word "of" is left out before pairs are made, in `predict` too.
        first, second = predicted(tmp_path / "out", ["the price of oil", "price oil"])
        assert np.array_equal(first, second)
        assert first.any()

    def test_predict_repeats_all(self, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        options = ["--ngram", "1,2", "--token-pattern", "[A-Za-z]+[0-9]?", "--stop-words", "none"]
        assert fit(table, out, *options) == 0
        assert "c3" in terms(out)
        assert "of oil" in terms(out)
        assert main(["predict", str(out), str(table), "--out", str(tmp_path / "p.csv")]) == 0
        with (tmp_path / "p.csv").open(newline="") as file:
            again = [float(row["component0"]) for row in csv.DictReader(file)]
        S = np.load(out / "representation.npy")
        np.testing.assert_allclose(again, S[:, 0], rtol=0.02, atol=0.02 * S.max())

    @pytest.mark.parametrize(
        ("given", "left_out"),
        [
            ("english", {"the", "of"}),
            ("{file}", {"cat"}),
            ("english,{file}", {"the", "of", "cat"}),
            ("{file}, english", {"the", "of", "cat"}),
            ("none", set()),
        ],
    )
    def test_stop_words(self, given: str, left_out: set[str], table: Path, tmp_path: Path) -> None:
        words = tmp_path / "words.txt"
        words.write_text("Cat\n\n", encoding="utf-8")
        option = given.format(file=words)
        assert fit(table, tmp_path / "out", "--stop-words", option) == 0
        assert {"the", "of", "cat"} - set(terms(tmp_path / "out")) == left_out

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--ngram", "2,1"], "the larger one last"),
            (["--ngram", "0"], "numbers of words"),
            (["--ngram", "1,2,3"], "numbers of words"),
            (["--ngram", "x"], "numbers of words"),
            (["--token-pattern", "["], "no regular expression"),
            (["--token-pattern", "(a)(b)"], "at most one group"),
            (["--token-pattern", "a*"], "must not match the empty text"),
            (["--token-pattern", "zzz"], "--token-pattern zzz"),
            (["--delimiter", "::"], "one character, or tab"),
            (["--encoding", "rot13"], "must be an encoding such as utf-8"),
            (["--stop-words", "none,english"], "none goes with no other list"),
            (["--stop-words", "english,nowhere.txt"], "nowhere.txt: no such file"),
        ],
    )
    def test_bad_options(
        self,
        more: list[str],
        message: str,
        table: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert fit(table, tmp_path / "out", *more) == 2
        assert message in error_line(capsys)


def test_damaged_files_are_refused(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(table, tmp_path / "out") == 0
    path = tmp_path / "out" / "vectorizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    deep = "[" * 200_000
    another = json.dumps({**content, "version": content["version"] + 1})
    for text in (json.dumps({**content, "token_pattern": "["}), another, deep, "{}", ""):
        path.write_text(text, encoding="utf-8")
        out = str(tmp_path / "predictions.csv")
        assert main(["predict", str(tmp_path / "out"), str(table), "--out", out]) == 2
        assert "is not a vectorizer of `ssnmf-fast fit`" in error_line(capsys)
    path.write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "out" / "metrics.json").write_text(deep, encoding="utf-8")
    assert main(["predict", str(tmp_path / "out"), str(table), "--out", out]) == 2
    assert "metrics.json is not of `ssnmf-fast fit`: lists or objects too deep" in error_line(
        capsys
    )
    assert fit(table, tmp_path / "new", "--token-pattern", "[") == 2
    assert "no regular expression" in error_line(capsys)
