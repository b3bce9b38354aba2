"""Invent a survey: answers.csv, 3,000 answers of which 200 are coded, and new_answers.csv.

    python make_survey.py
    python make_survey.py --fill to-label.csv
    python make_survey.py --check results/predictions.csv

The second form writes the true codes into a table of answers to code, as a person would; the
third compares predictions with the true codes.
"""

import csv
import datetime
import random
import sys

# Codes, their shares, and what answers with them are about, the frequent things first.
CODES = """
transport: 27: buses, the bus, cycle lanes, trains, the tram, parking, traffic, the station, bus stops, timetables, road works, the ring road, crossings, tickets, night buses, sidewalks, potholes
housing: 22: rents, housing, flats, affordable homes, landlords, new houses, social housing, empty buildings, my rent, apartments, waiting lists, mortgages, holiday lets, student rooms, damp homes
safety: 13: crime, the police, street lights, safety, burglaries, dark streets, drugs, patrols, speeding, vandalism, the underpass, bike theft, gangs, cameras
parks: 11: parks, trees, the playground, green spaces, benches, litter, the river bank, dog mess, flowers, the lake, football pitches, bins
schools: 10: schools, teachers, nurseries, classes, child care, school meals, the college, school places, homework clubs, textbooks, youth clubs
noise: 8: noise, loud bars, night flights, car horns, building sites, motorbikes, parties, the airport, music, leaf blowers, barking dogs
costs: 6: taxes, prices, fees, water bills, heating, the cost of living, charges, shops, food prices
digital services: 3: the website, online forms, broadband, wifi, the app, appointments, mobile signal
"""
# {0}, {1}: things of the code; {2}: a thing of any code.
SHAPES = "{0} {good}; more {0}; {0} and {1}; {start} {0} {good}; {0}, {1} {good}; {bad} {0}, {bad} {1}; {start} {0}, {end}; {bad} {0}; {bad} {0} {where}; {0} {where} {good}; {start} {0} and {1} {where}, {end}; not {2} but {0}; {0}, also {2}; {start} {1}. {0} {good}, more than {2}"
WORDS = {
    "good": "need to be better; should improve; must change; are a problem; could be cheaper; need money; get worse; need more staff; should be free",
    "bad": "bad; terrible; not enough; expensive; unreliable; too few; old; i am tired of; do something about",
    "start": "i think; please; well,; honestly; in my view; as a parent,; for old people,; the town should look after; first of all",
    "where": "in the center; near the station; around the school; by the park; in my street; on the estate; at night; at weekends; outside the shops",
    "end": "thanks; as everyone knows; it is a shame; we pay enough for it; nobody listens; other towns can do it",
}
LINES = [line.split(": ") for line in CODES.strip().split("\n")]
SHARES = {code: float(share) for code, share, _ in LINES}
THINGS = {code: things.split(", ") for code, _, things in LINES}


def answer(code, rng):
    """Return an answer with a code; it may mention another, and have a typo."""
    mine, other = THINGS[code], THINGS[rng.choice(list(THINGS))]
    things = [
        some[int(len(some) * rng.random() ** 2)]
        for some in (mine, mine, other)
    ]
    if rng.random() < 0.05:
        things[0] = things[2]  # about this code, in words of the other
    words = {
        name: rng.choice(some.split("; ")) for name, some in WORDS.items()
    }
    letters = list(rng.choice(SHAPES.split("; ")).format(*things, **words))
    if rng.random() < 0.2:
        k = rng.randrange(1, len(letters) - 1)
        letters[k : k + 2] = reversed(letters[k : k + 2])
    text = "".join(letters)
    return rng.choice([text, text.capitalize(), f"{text}!"])


def survey(numbers, rng):
    """Return rows with their true codes, and empty ones for no answer."""
    rows = []
    for number in numbers:
        day, region = (
            rng.randrange(270),
            rng.choice(["north", "south", "center"]),
        )
        shares = dict(SHARES)
        shares["housing"] *= 0.6 + 0.8 * day / 270  # ever more
        shares["transport"] *= {"north": 1.4, "south": 0.9, "center": 0.6}[
            region
        ]
        code = rng.choices(list(shares), list(shares.values()))[0]
        text = answer(code, rng)
        if rng.random() < 0.02:
            code, text = "", rng.choice(["n/a", "-", ""])
        row = {
            "respondent": f"R{number:04}",
            "date": str(datetime.date(2025, 1, 6) + datetime.timedelta(day)),
            "region": region,
            "age": rng.choice(["18-29", "30-49", "50-64", "65+"]),
            "answer": text,
            "code": code,
        }
        rows.append(row)
    return rows


def write(path, rows):
    """Write a table that spreadsheet programs open."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def read(path):
    """Read a table."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def check(path, truth):
    """Print how right predictions are, and the true shares of the codes."""
    rows = [row for row in read(path) if row["source"] == "predicted"]
    sure = [row for row in rows if not row["check"]]
    unsure = [row for row in rows if row["check"]]
    for name, some in [("all", rows), ("sure", sure), ("to check", unsure)]:
        right = sum(row["code"] == truth[row["respondent"]] for row in some)
        print(f"right: {right / max(len(some), 1):.1%} of {len(some)} {name}")
    codes = [code for code in truth.values() if code]
    for code in sorted(SHARES):
        print(f"  {code:16}  {codes.count(code) / len(codes):6.1%}")


def main():
    """Write the survey, fill in a table, or check predictions."""
    rng = random.Random(63)
    rows, new = survey(range(1, 3001), rng), survey(range(3001, 3201), rng)
    truth = {row["respondent"]: row["code"] for row in rows}
    if sys.argv[1:2] == ["--fill"]:
        asked = read(sys.argv[2])
        for row in asked:
            row["code"] = truth[row["respondent"]]
        write(sys.argv[2], asked)
    elif sys.argv[1:2] == ["--check"]:
        check(sys.argv[2], truth)
    else:
        coded = set(rng.sample([name for name in truth if truth[name]], 200))
        for row in rows:
            row["code"] = row["code"] if row["respondent"] in coded else ""
        for row in new:
            del row["code"]
        write("answers.csv", rows)
        write("new_answers.csv", new)


if __name__ == "__main__":
    main()
