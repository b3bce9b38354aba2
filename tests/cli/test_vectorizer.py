"""How texts become terms, and that `predict` repeats what `fit` did."""

from __future__ import annotations

import html
import json
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import Result, run, write_lines, write_table
from helpers.absent_packages import hide

import ssnmf_fast as sf

TEXTS = [
    "Oil&#39;s price of oil &quot;falls&quot; &lt;b&gt;again&lt;/b&gt;",
    "the cat #39;s pet quot;cat&amp;quot; C3PO",
] * 5


def written(texts: list[str], path: str | Path = "a.csv") -> Path:
    return write_table(path, [["text"], *([text] for text in texts)])


@pytest.fixture
def table() -> Path:
    return written(TEXTS)


def fit(table: object, more: str = "", code: int = 0) -> Result:
    return run(f"fit {table} --rank 2 --min-df 1 --out out {more}", code=code)


def predicted(texts: list[str]) -> np.ndarray:
    """Return the representation of new texts by `predict`."""
    found = run("predict out --out p.csv --quiet", written(texts, "new.csv"))
    return np.array([[float(row[f"component{k}"]) for k in range(2)] for row in found.rows()])


UNESCAPED = {
    "plain": "plain",
    "a &lt; b &amp; c": "a < b & c",
    "&amp;quot;so&amp;quot;": '"so"',
    "Bush #39;s quot;plan quot;": 'bush \'s "plan "',
    "see issue #12; and A#39;": "see issue #12; and a#39;",
    "default; result; salt;": "default; result; salt;",
    "caf&eacute; &#8212;": "café —",
}


def test_unescaped() -> None:
    """Between spaces stand the words that the characters of the entities make."""
    words = r"--token-pattern '\S+' --stop-words none --max-df 1"
    found = fit(written(list(UNESCAPED)), words)
    assert found.terms == {*" ".join(UNESCAPED.values()).split()}


class TestEntities:
    def test_are_no_terms(self, table: Path) -> None:
        assert not {"39", "lt", "gt", "quot", "amp"} & fit(table).terms
        first, second = predicted([TEXTS[0], html.unescape(TEXTS[0])])
        assert np.array_equal(first, second)
        assert first.any()

    def test_may_be_kept(self, table: Path) -> None:
        assert {"39", "lt", "quot"} <= fit(table, "--keep-markup --max-df 1").terms
        first, second = predicted(["quot lt", "quot; lt;"])
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
    fitted = fit(written(TEXTS, folder / "a.csv"), f"--out {folder}/out")
    return sf.io.load_vectorizer(fitted.path).build_preprocessor()


class TestMarkup:
    @pytest.mark.parametrize("text", STRIPPED)
    def test_is_stripped(self, text: str, preprocess: Callable[[str], str]) -> None:
        assert " ".join(preprocess(text).split()) == STRIPPED[text]

    @pytest.mark.parametrize("part", ["<", "<a ", '<a href="', "<!--", "<script>", "http://", "&"])
    def test_long_texts_of_nothing_else(self, part: str, preprocess: Callable[[str], str]) -> None:
        assert isinstance(preprocess(part * 20_000), str)  # within the limit of a test

    def test_in_terms_and_examples_alike(self) -> None:
        found = fit(written([NEWS, "oil price"] * 4))
        assert found.terms == {"ticker", "guidant", "rose", "oil", "price"}
        assert "Ticker Guidant rose, see , or ." in found.read("topic_examples.csv")
        first, second = predicted([NEWS, "ticker guidant rose"])
        assert np.array_equal(first, second)

    def test_may_be_kept(self) -> None:
        found = fit(written([NEWS, "oil price"] * 4), "--keep-markup")
        assert {"href", "http", "fullquote"} <= found.terms
        assert "&lt;A HREF" in found.read("topic_examples.csv")


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
    def test_ngram(self, ngram: str, present: set[str], absent: set[str], table: Path) -> None:
        terms = fit(table, f"--ngram {ngram}").terms
        assert present <= terms
        assert not absent & terms
        # The stop word "of" is left out before pairs are made, in `predict` too.
        first, second = predicted(["the price of oil", "price oil"])
        assert np.array_equal(first, second)
        assert first.any()

    def test_predict_repeats_all(self, table: Path) -> None:
        options = "--ngram 1,2 --token-pattern '[A-Za-z]+[0-9]?' --stop-words none"
        assert {"c3", "of oil"} <= fit(table, options).terms
        S = np.load("out/representation.npy")
        np.testing.assert_allclose(predicted(TEXTS)[:, 0], S[:, 0], rtol=0.02, atol=0.02 * S.max())

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
    def test_stop_words(self, given: str, left_out: set[str], table: Path) -> None:
        option = given.format(file=write_lines("words.txt", ["Cat", ""]))
        assert {"the", "of", "cat"} - fit(table, f"--stop-words '{option}'").terms == left_out

    def test_stop_words_of_a_language(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("stopwordsiso", reason="needs ssnmf-fast[languages]")
        texts = ["Der Hund und die Katze", "die Katze, der Hund", "the dog und der Hund"] * 3
        table, more = written(texts), "--max-df 1 --stop-words"
        for lists in ("german", "DE", "english,german"):
            kept = {"hund", "katze", "dog"} | ({"the"} if "english" not in lists else set())
            assert fit(table, f"{more} {lists}").terms == kept
        expected = "no list 'klingon'; expected a file, english, none, arabic"
        assert expected in fit(table, f"{more} klingon", code=2).err
        hide("stopwordsiso", monkeypatch)
        refused = fit(table, f"{more} german", code=2)
        assert "pip install 'ssnmf-fast[languages]'" in refused.err

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ("--ngram 2,1", "the larger last"),
            ("--ngram 0", "numbers of words"),
            ("--ngram 1,2,3", "numbers of words"),
            ("--ngram x", "numbers of words"),
            ("--token-pattern [", "not a regular expression"),
            ("--token-pattern '(a)(b)'", "at most one group"),
            ("--token-pattern a*", "must not match empty text"),
            ("--token-pattern zzz", "--token-pattern zzz"),
            ("--delimiter ::", "one character, or tab"),
            ("--encoding rot13", "must be an encoding such as utf-8"),
            ("--stop-words none,english", "none excludes other lists"),
            ("--stop-words english,nowhere.txt", "nowhere.txt: no such file"),
        ],
    )
    def test_bad_options(self, more: str, message: str, table: Path) -> None:
        assert message in fit(table, more, code=2).error


def test_damaged_files_are_refused(table: Path) -> None:
    fitted = fit(table)
    path, content = Path("out/vectorizer.json"), fitted.json("vectorizer.json")
    deep = "[" * 200_000
    another = json.dumps({**content, "version": content["version"] + 1})
    for text in (json.dumps({**content, "token_pattern": "["}), another, deep, "{}", ""):
        path.write_text(text, encoding="utf-8")
        refused = run(f"predict out {table} --out predictions.csv", code=2)
        assert "is not a vectorizer of `ssnmf-fast fit`" in refused.error
    path.write_text(json.dumps(content), encoding="utf-8")
    Path("out/metrics.json").write_text(deep, encoding="utf-8")
    run(f"predict out {table} --out predictions.csv")


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


def test_words_keep_their_marks() -> None:
    words = " ".join(SCRIPTS.values()).split()
    table = written([" ".join(words[k::3]) + " tail, x" for k in range(3)] * 4)
    composed = [unicodedata.normalize("NFC", word).lower() for word in words]
    assert fit(table, "--stop-words none --max-df 1").terms == {*composed, "tail"}
    forms = [[unicodedata.normalize(form, " ".join(words[:5]))] for form in ("NFC", "NFD")]
    np.testing.assert_array_equal(*map(predicted, forms))
    vectorizer = pickle.loads(pickle.dumps(sf.io.load_vectorizer("out")))
    one, other = (vectorizer.transform(texts).toarray() for texts in forms)
    np.testing.assert_array_equal(one, other)
    assert np.count_nonzero(one) == 5
    stop = write_lines("stop.txt", [unicodedata.normalize("NFD", word) for word in words[1:]])
    assert fit(table, f"--stop-words {stop} --max-df 1").terms == {composed[0], "tail"}


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
def test_texts_without_spaces_are_told(script: str) -> None:
    spaced, english = UNSPACED[script], "the rocket reached its orbit"
    joined = spaced.replace(" ", "")
    told = ([joined] * 6, [joined, english] * 3, [f"{joined} NASA 2024. {joined}"] * 6)
    for texts in (*told, [spaced] * 6, [spaced, english] * 3, [english] * 40 + [joined]):
        found = fit(written(texts), r"--max-df 1 --token-pattern '\S+'")
        assert ("script without spaces" in found.err) == (texts in told)


def test_scripts_with_spaces_are_not_told() -> None:
    korean = "로켓이 발사되었습니다"
    katakana = "コンピューター"  # one long word
    texts = [*SCRIPTS.values()] * 2 + [korean, katakana, "ab"]
    assert "script without spaces" not in fit(written(texts), "--max-df 1").err


def test_texts_without_spaces_of_the_command() -> None:
    joined, told = UNSPACED["Chinese"].replace(" ", ""), "6 of 6 texts are in a script without"
    assert told in fit(written([f"{joined} {joined[::-1]}", joined] * 3)).err
    table = written([f"{k} {joined}{k}" for k in range(6)])
    assert told in fit(table, "--min-df 2", code=2).err  # nothing is left, and why
    given = r"--token-pattern '[^\W\d]' --max-df 1 --stop-words none"
    assert "without spaces" not in fit(table, given).err


# ---------------------------------------------------------------------------------- from Python

POSTS = ["<b>rocket</b> to the moon", "moon orbit", "hockey team", "the TEAM won a game"] * 5


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", "--keep-markup"])
def test_vectorizer_gives_what_the_command_has_fitted(option: str) -> None:
    rows = [f'"{text}",{"space" if "moon" in text else "sport"}' for text in POSTS]
    write_lines("posts.csv", ["text,topic", *rows])
    run(f"fit posts.csv --labels topic --quiet {option}")
    results = Path("posts-ssnmf-fast")  # the default of --out
    vectorizer, model = sf.io.load_vectorizer(results), sf.load(results)
    X = pickle.loads(pickle.dumps(vectorizer)).transform(POSTS)
    assert model.transform(X).shape == np.load(results / "representation.npy").shape
    assert "b" not in vectorizer.get_feature_names_out()
    found = run(f"predict {results} posts.csv --out new.csv --quiet")
    assert found.column("prediction") == model.predict(vectorizer.transform(POSTS)).tolist()


def test_other_files_are_no_vectorizers() -> None:
    with pytest.raises(FileNotFoundError):
        sf.io.load_vectorizer(".")
    path = Path("vectorizer.json")
    content = {
        "format": "ssnmf-fast vectorizer", "version": 3, "column": "text", "token_pattern": "a+",
        "ngram_range": [1, 1], "stop_words": [], "markup": "keep", "terms": ["a", "aa"],
        "idf": [1.0, 2.0],
    }  # fmt: skip
    path.write_text(json.dumps(content), encoding="utf-8")
    assert sf.io.load_vectorizer(path).transform(["a aa"]).shape == (1, 2)
    wrong = [{**content, name: other} for name in content for other in (7, "(", None, [7], {})]
    wrong += [{**content, "ngram_range": [2, 1]}, {**content, "idf": [1.0, float("nan")]}]
    for other in ([], *wrong):
        if other == {**content, "column": "("}:
            continue
        path.write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(ValueError, match=r"vectorizer\.json is not a vectorizer"):
            sf.io.load_vectorizer(".")
