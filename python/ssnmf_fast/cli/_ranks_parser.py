"""The arguments of ``ssnmf-fast choose-rank``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ._options import add, runner

CRITERIA = ("held-out", "block", "bound", "stability")
_FIRST = {
    "--ranks RANKS=2:20": "numbers of topics to try, as 5,10,20 or 2:30:2 (from 2 to 30 by twos)",
    f"--criterion {'|'.join(CRITERIA)}=held-out": "what tells which is best: predictions of hidden "
    "entries or of a block, the bound of a Bayesian model, or how well many starts agree",
    "--loss LOSS": "loss of the data: frobenius, kullback-leibler, itakura-saito, or the beta of a "
    "beta-divergence, from 0 to 2 (default: frobenius; not for bound)",
    "--out DIR": "folder for the results (default: the name of DATA with -ranks)",
}
_HOW = {
    "--rule one-se|best=one-se": "the smallest rank within one standard error of the best (for "
    "stability the largest that is about as stable), or the best; not for bound",
    "--splits COUNT=5": "times that entries, or a block, are held out; not for bound, stability",
    "--starts COUNT": "starts of every rank in every split (default: 3, for stability 20)",
    "--held-out SHARE=0.1": "share of the entries that are held out; not for bound, stability",
    "--only-nonzeros": "hold out no zeros: for data whose zeros stand for what is not known",
    "--max-iter COUNT": "most iterations of a fit (default: 500, for bound 200)",
    "--tol FRACTION": "stop a fit when the objective falls by less per iteration, relative to its "
    "first value (default: 1e-6 for frobenius, else 1e-5)",
}


def add_choose_rank(commands: Any, data: str, text: Mapping[str, str]) -> Any:
    """Add the subcommand; return its parser, for what it has in common with others."""
    parser = commands.add_parser(
        "choose-rank",
        help="choose the number of topics by what models predict",
        description="Fit models with several numbers of topics, and see which is best: unless\n"
        "--criterion is given, how well those of parts of DATA predict the rest. A curve is in\n"
        "report.html.\n\n"
        "  ssnmf-fast choose-rank posts.csv --text body --ranks 2:30:2",
        usage="ssnmf-fast choose-rank DATA [--ranks RANKS] [--criterion CRITERION] [--loss LOSS]\n"
        "                              [--text COLUMN] [--out DIR] [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=data)
    add(parser.add_argument_group("used most"), {**_FIRST, **text})
    add(parser.add_argument_group("choice"), _HOW)
    parser.set_defaults(run=runner("_choose_rank"))
    return parser
