"""The command: :mod:`random_calls` says what it does."""

from __future__ import annotations

import argparse
import sys

import random_calls
from random_calls import doors, driver


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m random_calls",
        description=random_calls.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("way", nargs="?", default="calls", choices=driver.WAYS)
    parser.add_argument("--cases", type=int, help="how many (default: until the time is over)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to begin no more")
    parser.add_argument("--workers", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one, with its messages")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        driver.child(options.way, options.seed, *options.child)
        return 0
    if options.case is not None:
        driver.child(options.way, options.seed, options.case, options.case + 1)
        return 0
    cases = options.cases
    if options.way == "forms":
        cases = min(cases or sys.maxsize, len(doors.chosen(options.seed)))
    elif cases is None and options.seconds == float("inf"):
        parser.error("give --cases or --seconds")
    given = (options.way, options.seed, cases, options.seconds, options.workers)
    counts, failed = driver.run(*given)
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
