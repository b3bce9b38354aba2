"""Which rule minimises the Kullback-Leibler divergence with the fewest passes over the data?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import DATA_SETS, start
import kl_steps as steps
from ssnmf_fast._backend.layout import padded

RULES = {
    "mm": steps.mm(),
    "relaxed": steps.mm(0.9),
    "relaxed x2": steps.mm(0.9, 2),
    "momentum": steps.momentum(),
    "momentum mm": steps.momentum(0.0),
    "certified": steps.certified(),
    "certified mm": steps.certified(0.0),
    "certified fast": steps.certified(growth=2.0, most=2.0),
    "squarem": steps.squarem(),
    "squarem mm": steps.squarem(0.0),
    "anderson": steps.anderson(),
    "anderson mm": steps.anderson(0.0),
}

def follow(X, rank, seed, rule, passes, seconds):
    S, A, _ = start(X, 1, rank, seed)
    factors = [padded(S, "float64"), padded(np.ascontiguousarray(A.T), "float64")]
    work = steps.Work(X, 1)
    trace = [(0.0, work.loss(factors, count=False))]
    begin = perf_counter()
    for value in rule(work, factors):
        trace.append((work.passes, work.loss(factors, count=False) if value is None else value))
        if work.passes >= passes or perf_counter() - begin > seconds:
            break
    return trace

if __name__ == "__main__":
    p = argparse.ArgumentParser(); p.add_argument("--data"); p.add_argument("--rank", type=int); p.add_argument("--seed", type=int, default=0)
    p.add_argument("--passes", type=float, default=400); p.add_argument("--seconds", type=float, default=60); p.add_argument("--rules", nargs="+", default=list(RULES))
    o = p.parse_args()
    X = sp.csr_array(DATA_SETS[o.data]())
    z = X.data; const = float(np.sum(z * np.log(z) - z))
    T = {}
    for name in o.rules:
        t0=perf_counter(); T[name] = follow(X, o.rank, o.seed, RULES[name], o.passes, o.seconds)
        rises = sum(b[1] > a[1]*(1+1e-12) for a, b in zip(T[name], T[name][1:]))
        print(f"{name:16s} its {len(T[name])-1} passes {T[name][-1][0]:.0f} loss {T[name][-1][1]:.6g} rises {rises} {perf_counter()-t0:.0f}s", flush=True)
    best = min(v for t in T.values() for _, v in t)
    for name, t in T.items():
        own = min(v for _, v in t)
        print(f"{name:16s}", [next((round(p) for p, v in t if v <= best*(1+w)), None) for w in (.01,.003,.001,1e-4)], "own:", [next((round(p) for p, v in t if v <= own*(1+w)), None) for w in (.01,.003,.001,1e-4)], f"{own/best-1:.5f}")
