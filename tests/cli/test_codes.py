"""Tables of codes: the final code of every sample, what to check by hand, and shares."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from command import Result, empty_pictures, rows_of, run

from ssnmf_fast.report.evaluation import MODEL, Evaluation

WORDS = {
    "=fruit": "apple pear plum fig grape lemon melon peach cherry mango",
    "tools": "saw drill nail screw hammer pliers wrench file chisel plane",
    "vögel": "crow raven robin finch swan goose duck heron stork gull",
}
EMPTY, GIVEN, N = (100, 101), 60, 150
CHECK = "check by hand"


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What the command makes of answers, some of them with codes, which are in `a.csv`."""
    folder, rng, rows = tmp_path_factory.mktemp("codes"), np.random.default_rng(0), []
    for k in range(N):
        code, other = rng.permutation([*WORDS])[:2]
        mine, others = (rng.choice(WORDS[name].split(), 3) for name in (code, other))
        words = [*mine, *others[: 3 * (k % 3 == 0)]]
        text = "n/a" if k in EMPTY else f'"{" ".join(rng.permutation(words))}";\nÄ'
        rows.append((f"r{k}", text, code if k < GIVEN else "", ("N", "S", "")[k % 3]))
    frame = pd.DataFrame(rows, columns=["id", "answer", "kind", "region"])
    frame.to_csv(folder / "a.csv", index=False)
    given = "--text answer --labels kind --by region --target-accuracy 0.9"
    with empty_pictures():
        return run(f"fit {folder}/a.csv {given} --out {folder}/out")


def test_every_sample_has_a_code_or_a_reason(coded: Result) -> None:
    rows = coded.rows()
    assert [row["source"] for row in rows[:GIVEN]] == ["given"] * GIVEN
    assert rows[0]["text"].endswith('"; Ä')  # on one line
    for k, row in enumerate(rows):
        assert row["code"] == (row["label"] or row["prediction"])
        assert (row["code"] == "") == (k in EMPTY) == (row["reason"] != "")
        assert (row["probability"] == row["second"] == "") == (row["source"] != "predicted")
        assert row["second"] != row["code"] or k in EMPTY
    predicted = [row for row in rows if row["source"] == "predicted"]
    sure = [float(row["probability"]) for row in predicted if row["check"] == ""]
    unsure = [float(row["probability"]) for row in predicted if row["check"] == CHECK]
    assert min(sure) >= max(unsure)
    assert len(sure) > len(unsure) > 0
    remarks = coded.json()["remarks"]
    (line,) = (one for one in remarks if one.startswith("at least 90% right"))
    assert f": {len(sure)} of {len(predicted)} predictions (" in line
    assert line.endswith(f"; {len(unsure)} to check by hand")
    for row, full in zip(rows, coded.rows("probabilities.csv"), strict=True):
        chances = {name.removeprefix("probability "): one for name, one in full.items()}
        assert row["probability"] in ("", chances[row["prediction"] or "tools"])


def test_shares_count_what_is_given_and_predicted(coded: Result) -> None:
    rows, codes, by = (coded.rows(f"{one}.csv") for one in ("predictions", "codes", "codes_by"))
    assert [row["code"] for row in codes] == [*WORDS]
    assert [row["value"] for row in by[::3]] == ["(empty)", "N", "S"]
    for source, head in {"given": "labeled", "predicted": "predicted"}.items():
        counts = Counter(row["code"] for row in rows if row["source"] == source)
        assert [int(row[head]) for row in codes] == [counts[code] for code in WORDS]
        for k, code in enumerate(WORDS):
            assert sum(int(row[head]) for row in by[k::3]) == counts[code]
    for row in codes + by:
        assert float(row["low"]) <= float(row["share"]) <= float(row["high"])
    assert sum(float(row["share"]) for row in codes) == pytest.approx(1, abs=0.02)


def test_new_samples_are_marked(coded: Result) -> None:
    new = run("predict --out new.csv", coded.path, coded.path.parent / "a.csv")
    rows = [row for row in new.rows() if row["reason"] == ""]
    unsure = [row for row in rows if row["check"] == CHECK]
    assert f"to check by hand: {len(unsure)}" in new.out
    sure = [float(row["probability"]) for row in rows if row["check"] == ""]
    assert min(sure) >= max(float(row["probability"]) for row in unsure)


def test_tables_come_back(coded: Result) -> None:
    """The command reads its tables again, as it wrote them, and so does pandas."""
    given = "--labels label --text text --out again"
    again = run(f"fit {given}", coded.path / "predictions.csv")
    for name in ("id", "text", "label"):
        assert again.column(name) == coded.column(name)
    for table in coded.path.glob("*.csv"):
        rows = pd.read_csv(table, dtype=str, keep_default_na=False).to_dict("records")
        assert rows == rows_of(table)


@pytest.mark.parametrize(
    ("chances", "right", "weights", "expected"),
    [
        ([0.925] * 40 + [0.2] * 40, [1] * 40 + [0] * 40, None, 0.925),
        ([0.925] * 40 + [0.2] * 40, [1] * 40 + [0] * 40, [3] * 40 + [1] * 40, 0.925),
        ([0.94] * 20, [1] * 20, None, 0.94),
        ([0.94] * 10, [1] * 10, None, 2.0),  # may be chance
        ([0.99] * 9, [1] * 9, None, 2.0),  # too few
        ([0.7] * 40, [1] * 40, None, 2.0),  # not sure itself
        ([0.99] * 40, [1, 0] * 20, None, 2.0),  # too sure
    ],
)
def test_surest_predictions(chances: list[float], right: list[int], weights, expected) -> None:
    truth, names = np.array(["yes"] * len(right)), np.array(["no", "yes"])
    more = {"weights": weights and np.array(weights), "chances": np.array(chances)}
    judged = Evaluation(truth, {MODEL: names[right]}, ["no", "yes"], True, **more)
    least, accuracy = judged.sure(0.9)
    assert least == pytest.approx(expected)
    assert (accuracy is None) == (least > 1)
    assert accuracy is None or accuracy.low < 1 == accuracy.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--labels kind --target-accuracy 90", "must be a number above 0 and below 1; got '90'"),
        ("--labels both --label-separator ; --target-accuracy 0.9", "is for one label per sample"),
        ("--target-accuracy 0.9", "--target-accuracy is for codes; give --labels"),
        ("--labels kind --model nmf --rank 2 --by region", "--by is for codes; give --labels"),
        ("--labels kind --by id", "--by id: 148 different values, such as 'r0'; expected at most"),
        ("--labels kind --by town", "no column 'town'"),
    ],
)
def test_errors(options: str, message: str, coded: Result) -> None:
    frame = pd.read_csv(coded.path.parent / "a.csv").assign(both=["a;b", "a", "b"] * (N // 3))
    frame.dropna(subset=["answer"]).to_csv("b.csv", index=False)
    given = options.replace(";", "';'")
    assert message in run(f"fit b.csv --text answer {given} --out out", code=2).error
