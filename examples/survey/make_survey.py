"""Invent a survey: answers.csv with 3,000 answers, 200 of them coded, and new_answers.csv.

    python make_survey.py
    python make_survey.py --fill to-label.csv

The second form writes the true codes into a table of answers to code, where a person would.
"""

import csv
import datetime
import random
import sys

# A code: its share, and what answers with it are about, the frequent things first.
CODES = {
    "transport": (
        0.27,
        "buses,the bus,cycle lanes,trains,the tram,parking,traffic,the station,bus stops,timetables,road works,"
        "the ring road,crossings,tickets,night buses,pavements,potholes,commuting",
    ),
    "housing": (
        0.22,
        "rents,housing,flats,affordable homes,landlords,new houses,social housing,empty buildings,my rent,"
        "apartments,waiting lists,mortgages,holiday lets,student rooms,damp homes",
    ),
    "safety": (
        0.13,
        "crime,the police,street lights,safety,burglaries,dark streets,drugs,patrols,speeding,vandalism,"
        "the underpass,bike theft,gangs,cameras",
    ),
    "parks": (
        0.11,
        "parks,trees,the playground,green spaces,benches,litter,the river bank,dog mess,flowers,the lake,football "
        "pitches,allotments,bins",
    ),
    "schools": (
        0.1,
        "schools,teachers,nurseries,classes,child care,school meals,the college,school places,homework clubs,"
        "textbooks,the kindergarten,youth clubs",
    ),
    "noise": (
        0.08,
        "noise,loud bars,night flights,car horns,building sites,motorbikes,parties,the airport,music,leaf blowers,"
        "barking dogs",
    ),
    "costs": (
        0.06,
        "taxes,prices,fees,council tax,water bills,heating,the cost of living,charges,shops,food prices",
    ),
    "digital services": (
        0.03,
        "the website,online forms,broadband,wifi,the app,appointments,mobile signal,digital services",
    ),
}
SHAPES = (
    "{0} {good}|more {0}|{0}|too much trouble with {0}|{0} and {1}|{start} {0} {good}|{0}, {1} {good}|"
    "{start} {0}, {end}|{bad} {0}|{bad} {0} {where}|{0} {where} {good}|{start} {0} and {1} {where}, {end}|"
    "not {2} but {0}|{0}, also {2}|{start} {1}. {0} {good}, more than {2}"
).split("|")
WORDS = {
    "good": "need to be better|should improve|must change|are a problem|could be cheaper|need money|get worse|"
    "need more staff|are not good enough|should be free",
    "bad": "bad|terrible|not enough|expensive|unreliable|too few|old|i am tired of|do something about",
    "start": "i think|please|well,|honestly|in my view|as a parent,|for old people,|the town should look after|"
    "first of all|since we moved here:",
    "where": "in the centre|near the station|around the school|by the park|in my street|on the estate|at night|"
    "at weekends|for families|outside the shops",
    "end": "thanks|as everyone knows|it is a shame|we pay enough for it|nobody listens|other towns can do it",
}
NOTHING = ["n/a", "-", "", "N/A", "none"]
FIELDS = ["respondent", "date", "region", "age", "answer", "code"]


def answer(code: str, rng: random.Random) -> str:
    """Return an answer of a code, which often mentions another one, with a slip of the pen."""
    mine, other = (CODES[name][1].split(",") for name in (code, rng.choice(list(CODES))))
    things = [own[int(len(own) * rng.random() ** 1.4)] for own in (mine, mine, other)]
    if rng.random() < 0.12:
        things[0] = things[2]  # about this code, in words of the other
    words = {name: rng.choice(values.split("|")) for name, values in WORDS.items()}
    letters = list(rng.choice(SHAPES).format(*things, **words))
    if rng.random() < 0.3:
        k = rng.randrange(1, len(letters) - 1)
        letters[k : k + 2] = reversed(letters[k : k + 2])
    text = "".join(letters)
    return rng.choice([text, text.capitalize(), text + "!", text.capitalize() + "."])


def survey(first: int, count: int, rng: random.Random) -> list[dict[str, str]]:
    """Return answers with their true codes, empty where there is none to give."""
    rows = []
    for number in range(first, first + count):
        day, region = rng.randrange(270), rng.choice(["north", "north", "south", "centre"])
        shares = {name: share for name, (share, _) in CODES.items()}
        shares["housing"] *= 0.6 + 0.8 * day / 270  # more and more often
        shares["transport"] *= {"north": 1.4, "south": 0.8, "centre": 0.6}[region]
        code = rng.choices(list(shares), list(shares.values()))[0]
        text = answer(code, rng)
        if rng.random() < 0.02:
            code, text = "", rng.choice(NOTHING)
        date = datetime.date(2025, 1, 6) + datetime.timedelta(day)
        age = rng.choice(["18-29", "30-49", "50-64", "65+"])
        rows.append(dict(zip(FIELDS, [f"R{number:04}", str(date), region, age, text, code])))
    return rows


def write(path: str, rows: list[dict[str, str]]) -> None:
    """Write a table."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    """Write the survey, or fill in a table."""
    rng = random.Random(63)
    rows, new = survey(1, 3000, rng), survey(3001, 200, rng)
    truth = {row["respondent"]: row["code"] for row in rows}
    if sys.argv[1:2] == ["--fill"]:
        with open(sys.argv[2], encoding="utf-8-sig", newline="") as file:
            asked = list(csv.DictReader(file))
        write(sys.argv[2], [row | {"code": truth[row["respondent"]]} for row in asked])
        return
    coded = set(rng.sample([name for name, code in truth.items() if code], 200))
    write("answers.csv", [r if r["respondent"] in coded else r | {"code": ""} for r in rows])
    write("new_answers.csv", [{k: v for k, v in row.items() if k != "code"} for row in new])


if __name__ == "__main__":
    main()
