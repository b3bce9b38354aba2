"""Write the page of benchmarks, docs/evidence/benchmarks.md, from measurements on this machine.

Every part is a script of this folder, run in a process of its own; its results stay in the folder
`records`, and a part that is there is not measured again (remove its results to do so).  A package
that is missing is left out: `benchmarks/README.md` says how to install all.  About 40 minutes.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cases import OURS, WITHIN, Point, first_within, readable, time_cell
from common import ROOT, load_average
from count_likelihood import PUBLISHED
from few_labels import amount_name, means, methods_of, results_of
from records import Options, Record, markdown, read_records, say
from run import command

PAGE = ROOT / "docs" / "evidence" / "benchmarks.md"
PACKAGES = (
    "ssnmf-fast numpy scipy scikit-learn ssnmf tsnmf nmf-torch torchnmf torch gensim tensorly "
    "pyttb pygenten"
)
NOTICEABLE = 1.05  # less is noise of the machine
LETTER = {"frobenius": "F", "kullback-leibler": "D"}


# A case in which another package is ahead: the case, who, our figure and theirs.
Loss = tuple[str, str, str, str]


class Part(NamedTuple):
    """A section: a script with arguments, where its results lie, what the page says of them."""

    title: str
    script: str
    arguments: str
    quick: str | None  # None: it has no quick form
    text: Callable[[Any], tuple[str, list[Loss]]]


def best_in_bold(cells: list[str], values: list[float]) -> list[str]:
    least = min(values)
    return [
        f"**{cell}**" if v == least and v < float("inf") else cell
        for cell, v in zip(cells, values, strict=True)
    ]


def two_digits(value: float) -> str:
    """Return "2.2", "29" or "2300"."""
    return f"{float(f'{value:.2g}'):g}"


def several(count: int, what: str) -> str:
    """Return "1 start" or "3 starts"."""
    return f"{count} {what}" + ("s" if count > 1 else "")


def iterations(records: list[Record]) -> tuple[str, list[Loss]]:
    rows, lost = [], []
    for r in records:
        case = f"{r['model']}, rank {r['rank']}"
        peer = r["peer"] + (f", freed memory {r['memory']}" if r.get("memory") else "")
        mine, theirs = readable(r["seconds"]), readable(r["peer_seconds"])
        rows.append([case, peer, mine, theirs, two_digits(r["ratio"])])
        if r["ratio"] * NOTICEABLE < 1:
            lost.append((f"an iteration, {case}", peer, mine, theirs))
    text = (
        "Time of one iteration of the same updates from the same start, 20 Newsgroups (8980 posts "
        "x 5000 words, TF-IDF). glibc can keep the memory that scikit-learn frees in each "
        "iteration, or return it to the system; the first is kinder to scikit-learn."
    )
    header = ["model", "compared with", OURS, "theirs", "times faster"]
    return f"{text}\n\n{markdown(header, rows)}", lost


def convergence(found: dict[str, Any]) -> tuple[str, list[Loss]]:
    cap, lost = found["cap"], []
    goals = [1 + share for share in WITHIN]
    columns = [
        (f"{c['data']}, rank {c['rank']}, {LETTER[c['loss']]}", c, goal)
        for c in found["cases"]
        for goal in goals
    ]
    solvers = list(dict.fromkeys(name for c in found["cases"] for name in c["points"]))
    rows = [[solver] for solver in solvers]
    for title, c, goal in columns:
        traces = {name: [Point(**p) for p in points] for name, points in c["points"].items()}
        best = c["best"]
        times = {n: first_within(points, goal * best) for n, points in traces.items()}
        took = {n: point.seconds if point else float("inf") for n, point in times.items()}
        cells = {n: time_cell(points, goal * best, best, cap) for n, points in traces.items()}
        for name, their in took.items():
            if OURS not in name and their * NOTICEABLE < took[OURS]:
                where = f"{title}, to {100 * (goal - 1):g} % of the best loss"
                lost.append((where, name, cells[OURS], cells[name]))
        bold = best_in_bold(list(cells.values()), list(took.values()))
        marked = dict(zip(cells, bold, strict=True))
        for row in rows:
            row.append(marked.get(row[0], ""))
    header = ["solver", *(f"{title}: {100 * (goal - 1):g} %" for title, _, goal in columns)]
    tables = []
    for c in range(0, len(columns), 4):  # a table as wide as a page
        part = [[row[0], *row[1 + c : 5 + c]] for row in rows if any(row[1 + c : 5 + c])]
        tables.append(markdown([header[0], *header[1 + c : 5 + c]], part))
    text = (
        "Time of whole fits with their set-up until the loss is within 1 % and 0.1 % of the best "
        f"loss of all packages, from the same start (* draws its own), at most {cap:g} s each; "
        "iterations in parentheses. F is the squared error, D the Kullback-Leibler divergence. "
        f'"> {cap:g} s" means not within that time, "never" that the loss settled '
        "above; behind it is how far above the best loss the fit stayed."
    )
    return "\n\n".join([text, *tables]), lost


def likelihood(records: list[Record]) -> tuple[str, list[Loss]]:
    ours = [r for r in records if r["solver"] == OURS]
    top = max(r["log_likelihood"] for r in records if r["solver"].startswith(OURS))
    rows, lost = [], []
    for count in sorted({r["iterations"] for r in ours}):
        fits = [r for r in ours if r["iterations"] == count]
        values = [r["log_likelihood"] for r in fits]
        spread = f"{max(values):,.0f}" + (f" to {min(values):,.0f}" if len(fits) > 1 else "")
        longest = max(r["seconds"] for r in fits)
        name = f"{OURS}, {several(len(fits), 'random start')}"
        rows.append([name, str(count), spread, f"{longest:.1f}"])
    rows += [
        [r["solver"], str(r["iterations"]), f"{r['log_likelihood']:,.0f}", f"{r['seconds']:.1f}"]
        for r in records
        if r["solver"] != OURS
    ]
    for name, value in PUBLISHED.items():
        rows.append([f"*fastTopics, {name}: as published*", "2000", f"{value:,}", "about 10,500"])
        if value > top:
            who = f"fastTopics, {name}"
            lost.append(("log-likelihood of counts", who, f"{top:,.0f}", f"{value:,}"))
    text = (
        "18,774 posts x 55,911 words, 2.4 million counts, 10 topics: the data of fastTopics' "
        "experiments. The divergence is the negative Poisson log-likelihood up to a constant; a "
        "higher likelihood is better. Its authors published the figures of fastTopics (version "
        "0.5-24, 8 CPUs, another machine, `stephenslab/fastTopics-experiments`); they were not "
        "measured here."
    )
    return f"{text}\n\n{markdown(['fit', 'iterations', 'log-likelihood', 'seconds'], rows)}", lost


def tensors(found: list[Record]) -> tuple[str, list[Loss]]:
    by_case: dict[str, dict[str, Any]] = defaultdict(dict)
    for record in found:
        by_case[record["case"]][record["peer"]] = record if "seconds" in record else None
    peers = list(dict.fromkeys(peer for results in by_case.values() for peer in results))
    rows, lost = [[peer] for peer in peers], []
    for case, results in by_case.items():
        took = {p: r["seconds"] if r else float("inf") for p, r in results.items()}
        cells = {
            p: f"{readable(r['seconds'])}, {r['memory']:.0f} MB" if r else "-"
            for p, r in results.items()
        }
        for peer, result in results.items():
            mine = f"{OURS} {'D' if '(D)' in peer else 'F'}"
            if not result or peer.startswith(OURS) or not results.get(mine):
                continue
            if took[peer] * NOTICEABLE < took[mine]:
                lost.append((f"a sweep, {case}", peer, cells[mine], cells[peer]))
            if result["memory"] * 1.2 < results[mine]["memory"]:
                lost.append((f"memory of a sweep, {case}", peer, cells[mine], cells[peer]))
        for row in rows:
            row.append(cells.get(row[0], "-"))
    text = (
        "Time of one sweep, which updates the factors of all modes once, and the peak of memory "
        "above the tensor. F is the squared error, D the divergence. `cp_als` has factors of any "
        "sign, an easier problem. A dash: not possible, failed, or no result in time."
    )
    return f"{text}\n\n{markdown(['solver', *by_case], rows)}", lost


def completion(found: list[Record]) -> tuple[str, list[Loss]]:
    records = next(record["tables"][0] for record in found if record["part"] == "a")
    mine = next(r for r in records if r["solver"].startswith("ours"))
    lost = [
        ("completion", r["solver"], readable(mine["seconds"]), readable(r["seconds"]))
        for r in records
        if not r["solver"].startswith("ours")
        and r["seconds"] < mine["seconds"]
        and r["error"] <= 2 * mine["error"]
    ]
    rows = [
        [r["solver"].replace("ours", OURS), readable(r["seconds"]), f"{r['error']:.1e}"]
        for r in records
    ]
    text = (
        "A 1000 x 1000 matrix of rank 10 from 30 % of its entries. The programs in NumPy do the "
        "same iterations on dense matrices; shrinkage limits SoftImpute's accuracy."
    )
    return f"{text}\n\n{markdown(['solver', 'seconds', 'error at missing entries'], rows)}", lost


def labels(records: list[Record]) -> tuple[str, list[Loss]]:
    found = means(results_of(records), "accuracy")
    own, *others = methods = methods_of(found)
    rows, lost = [], []
    for (data, amount), by in sorted(found.items()):
        where = f"{data}, {amount_name(amount)} labeled"
        cells = [f"{by[m]:.1f}" if m in by else "" for m in methods]
        order = [-by[m] if m in by else float("inf") for m in methods]
        rows.append([where, *best_in_bold(cells, order)])
        lost += [
            (f"accuracy, {where}", m, f"{by[own]:.1f} %", f"{by[m]:.1f} %")
            for m in others
            if m in by and by[m] > by[own] + 0.5
        ]
    draws = len({record["draw"] for record in records})
    text = (
        f"Accuracy on test samples in percent, mean of {several(draws, 'draw')} of the labels. "
        "All methods choose their settings from these labels alone. [Few labels](few_labels.md) "
        "has more data."
    )
    return f"{text}\n\n{markdown(['data', OURS, *others], rows)}", lost


PARTS = [
    Part(
        "An iteration",
        "iterations",
        "--peers ssnmf sklearn",
        "--peers sklearn --synthetic 500 --iterations 5",
        iterations,
    ),
    Part(
        "To the best loss",
        "convergence",
        "--cap 3 --rounds 1 --ranks 20",
        "--peers scikit-learn --data text signatures --solvers mu hals",
        convergence,
    ),
    Part("Counts", "count_likelihood", "", "", likelihood),
    Part("Tensors", "tensors", "--patience 90", "--rounds 1", tensors),
    Part("Completion", "completion_speed", "--parts a", None, completion),
    Part(
        "Few labels",
        "few_labels",
        "--draws 2 --amounts 0.01 0.05 0.2 --data digits BBC",
        "--draws 1",
        labels,
    ),
]


def machine() -> dict[str, Any]:
    """Return the processor, the number of its cores, and the versions of all packages."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = lines[0].partition(":")[2].strip() if lines else processor
    found = {
        each.metadata["Name"].lower().replace("_", "-"): each.version
        for each in importlib.metadata.distributions()
    }
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": time.strftime("%d %B %Y"),
        "versions": {name: found[name] for name in PACKAGES.split() if name in found},
    }


def measure(part: Part, folder: Path, options: Options) -> None:
    """Run the script of a part; what it prints stays with its results."""
    out = folder / part.script
    given = f"--quick {part.quick}" if options.quick else part.arguments
    order = command(part.script, *shlex.split(given), "--out", out)
    if part.script != "few_labels":
        order += ["--threads", str(options.threads)]
    load = load_average()
    say(f"{part.title}: {part.script} (load {load})")
    subprocess.run(order, stdout=subprocess.DEVNULL, check=True)
    facts = machine() | {"arguments": given, "threads": options.threads, "load": load}
    (folder / f"{part.title}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def page(folder: Path) -> str:
    sections, lost, machines = [], [], []
    for part in PARTS:
        path = next((folder / part.script).glob(f"{part.script}*.json*"), None)
        if path is None:
            continue
        facts = json.loads((folder / f"{part.title}.json").read_text(encoding="utf-8"))
        machines.append(facts)
        found = read_records(path) if path.suffix == ".jsonl" else json.loads(path.read_text())
        text, ahead = part.text(found)
        lost += ahead
        command = f"python benchmarks/run.py {part.script} {facts['arguments']}".rstrip()
        note = f"`{command}`, {facts['threads']} threads; load before it {facts['load']}."
        sections.append(f"## {part.title}\n\n{text}\n\n{note}")
    versions = {name: v for facts in machines for name, v in facts["versions"].items()}
    where = "; ".join(dict.fromkeys(f"{f['processor']}, {f['cores']} cores" for f in machines))
    dates = "; ".join(dict.fromkeys(f["date"] for f in machines))
    ahead = markdown(["where", "who", OURS, "theirs"], [list(row) for row in lost])
    introduction = (
        "All packages in one run on one machine, float64; each time is the least of several. A "
        "program measures and writes this page (`python benchmarks/run.py write_page --records "
        "records`). Its tables are complete, and the best figure of a row or column is in bold, "
        f"whichever package it belongs to.\n\n{where}; Python {machines[0]['python']}; {dates}. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + "."
    )
    beaten = (
        "All cases on this page where another package is ahead by more than "
        f"{100 * (NOTICEABLE - 1):.0f} % in time, 20 % in memory, or half a point of accuracy."
        f"\n\n{ahead}"
        if lost
        else "No other package is ahead in any case on this page."
    )
    published = (
        "## Tables of papers\n\n[The papers](papers.md) compares their tables with the same "
        "experiments here. `benchmarks/README.md` says how to compare two commits."
    )
    blocks = ["# Benchmarks", introduction, "## Where others win", beaten, *sections, published]
    return "\n\n".join(blocks) + "\n"


OPTIONS = {
    "records": (Path("records"), "folder of the results"),
    "page": (PAGE, "file; default: the page of this repository"),
    "parts": ([part.title for part in PARTS], "", [part.title for part in PARTS]),
    "threads": 2,
}
QUICK: dict[str, Any] = {}


def main(options: Options) -> None:
    options.records.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        facts = options.records / f"{part.title}.json"
        possible = part.quick is not None or not options.quick
        if part.title in options.parts and possible and not facts.exists():
            measure(part, options.records, options)
    options.page.write_text(page(options.records), encoding="utf-8")
    print(f"written: {options.page}")
