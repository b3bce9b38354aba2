"""How texts become terms, and that `predict` repeats what `fit` did."""

from __future__ import annotations

import csv
import html
import json
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from absent_packages import hide
from outputs import error_line

import ssnmf_fast as sf
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


@pytest.fixture(scope="module")
def preprocess(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """What the vectorizer of the command does to a text before it is cut into terms."""
    folder = tmp_path_factory.mktemp("markup")
    assert fit(written(folder / "a.csv", TEXTS), folder / "out") == 0
    return sf.io.load_vectorizer(folder / "out").build_preprocessor()


class TestMarkup:
    @pytest.mark.parametrize("text", STRIPPED)
    def test_is_stripped(self, text: str, preprocess: Callable[[str], str]) -> None:
        assert " ".join(preprocess(text).split()) == STRIPPED[text]

    @pytest.mark.parametrize("part", ["<", "<a ", '<a href="', "<!--", "<script>", "http://", "&"])
    def test_long_texts_of_nothing_else(self, part: str, preprocess: Callable[[str], str]) -> None:
        assert isinstance(preprocess(part * 20_000), str)  # within the limit of a test

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
    @pytest.mark.slow
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

    @pytest.mark.slow
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

    def test_stop_words_of_a_language(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("stopwordsiso", reason="needs ssnmf-fast[languages]")
        texts = ["Der Hund und die Katze", "die Katze, der Hund", "the dog und der Hund"] * 3
        table = tmp_path / "texts.csv"
        table.write_text("text\n" + "\n".join(f'"{text}"' for text in texts), encoding="utf-8")
        more = "--max-df", "1", "--stop-words"
        for lists in ("german", "DE", "english,german"):
            assert fit(table, tmp_path / "out", *more, lists) == 0
            kept = {"hund", "katze", "dog"} | ({"the"} if "english" not in lists else set())
            assert set(terms(tmp_path / "out")) == kept
        assert fit(table, tmp_path / "no", *more, "klingon") == 2
        assert (
            "no list 'klingon'; expected a file, english, none, arabic" in capsys.readouterr().err
        )
        hide("stopwordsiso", monkeypatch)
        assert fit(table, tmp_path / "no", *more, "german") == 2
        assert "pip install 'ssnmf-fast[languages]'" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--ngram", "2,1"], "the larger last"),
            (["--ngram", "0"], "numbers of words"),
            (["--ngram", "1,2,3"], "numbers of words"),
            (["--ngram", "x"], "numbers of words"),
            (["--token-pattern", "["], "not a regular expression"),
            (["--token-pattern", "(a)(b)"], "at most one group"),
            (["--token-pattern", "a*"], "must not match empty text"),
            (["--token-pattern", "zzz"], "--token-pattern zzz"),
            (["--delimiter", "::"], "one character, or tab"),
            (["--encoding", "rot13"], "must be an encoding such as utf-8"),
            (["--stop-words", "none,english"], "none excludes other lists"),
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
    assert main(["predict", str(tmp_path / "out"), str(table), "--out", out]) == 0
    assert fit(table, tmp_path / "new", "--token-pattern", "[") == 2
    assert "not a regular expression" in error_line(capsys)


# Words of one syllable and of several, with marks that no letter has in the form NFC of Unicode.
SCRIPTS = {
    "Hindi": "अंतरिक्ष की",
    "Bengali": "উপগ্রহ খেলোয়াড়",
    "Tamil": "நிலவு",
    "Arabic": "قَمَر مُباراة",
    "Hebrew": "מִלָּה",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Thai": "ประเทศ ที่",
    "French": "e\u0301toile plane\u0300te ete\u0301",
    "Lithuanian": "ba\u0307\u0301ras",
    "Turkish": "İstanbul",
}


def test_words_keep_their_marks(tmp_path: Path) -> None:
    words = " ".join(SCRIPTS.values()).split()
    table = written(tmp_path / "a.csv", [" ".join(words[k::3]) + " tail, x" for k in range(3)] * 4)
    assert fit(table, tmp_path / "out", "--stop-words", "none", "--max-df", "1") == 0
    composed = [unicodedata.normalize("NFC", word).lower() for word in words]
    assert sorted(terms(tmp_path / "out")) == sorted([*composed, "tail"])
    forms = [[unicodedata.normalize(form, " ".join(words[:5]))] for form in ("NFC", "NFD")]
    one, other = (predicted(tmp_path / "out", texts) for texts in forms)
    np.testing.assert_array_equal(one, other)
    vectorizer = pickle.loads(pickle.dumps(sf.io.load_vectorizer(tmp_path / "out")))
    one, other = (vectorizer.transform(texts).toarray() for texts in forms)
    np.testing.assert_array_equal(one, other)
    assert np.count_nonzero(one) == 5
    words_file = tmp_path / "stop.txt"
    words_file.write_text("\n".join(unicodedata.normalize("NFD", w) for w in words[1:]), "utf-8")
    assert fit(table, tmp_path / "few", "--stop-words", str(words_file), "--max-df", "1") == 0
    assert sorted(terms(tmp_path / "few")) == sorted([composed[0], "tail"])


UNSPACED = {
    "Chinese": "火箭 轨道 月球 发射 航天员",
    "Japanese": "ロケット の 打ち上げ 月 を",
    "Thai": "จรวด ดวงจันทร์ ที่ ปล่อย",
    "Lao": "ຈະລວດ ດວງຈັນ ປ່ອຍ",
    "Khmer": "រ៉ុកកែត ព្រះចន្ទ បាញ់",
    "Burmese": "ဒုံးပျံ လ အာကာသ ယာဉ် ဂြိုဟ်",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", UNSPACED)
def test_texts_without_spaces_are_told(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spaced, english = UNSPACED[script], "the rocket reached its orbit"
    joined = spaced.replace(" ", "")
    told = ([joined] * 6, [joined, english] * 3, [f"{joined} NASA 2024. {joined}"] * 6)
    for texts in (*told, [spaced] * 6, [spaced, english] * 3, [english] * 40 + [joined]):
        given = ["--max-df", "1", "--token-pattern", r"\S+"]
        assert fit(written(tmp_path / "a.csv", texts), tmp_path / "out", *given) == 0
        assert ("script without spaces" in capsys.readouterr().err) == (texts in told)


def test_scripts_with_spaces_are_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    korean = "로켓이 발사되었습니다"
    katakana = "コンピューター"  # one long word
    texts = [*SCRIPTS.values()] * 2 + [korean, katakana, "ab"]
    assert fit(written(tmp_path / "a.csv", texts), tmp_path / "out", "--max-df", "1") == 0
    assert "script without spaces" not in capsys.readouterr().err


def test_texts_without_spaces_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joined = UNSPACED["Chinese"].replace(" ", "")
    table = written(tmp_path / "a.csv", [f"{joined} {joined[::-1]}", joined] * 3)
    assert fit(table, tmp_path / "out") == 0
    assert "6 of 6 texts are in a script without spaces" in capsys.readouterr().err
    table = written(tmp_path / "b.csv", [f"{k} {joined}{k}" for k in range(6)])
    assert fit(table, tmp_path / "no", "--min-df", "2") == 2  # nothing is left, and why
    assert "6 of 6 texts are in a script without spaces" in capsys.readouterr().err
    given = ("--token-pattern", r"[^\W\d]", "--max-df", "1", "--stop-words", "none")
    assert fit(table, tmp_path / "characters", *given) == 0
    assert "without spaces" not in capsys.readouterr().err
