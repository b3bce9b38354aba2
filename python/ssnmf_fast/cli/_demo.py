"""``ssnmf-fast demo``: the main job on real data, beside LinearSVC."""

from __future__ import annotations

import time
from typing import Any

from ._demo_common import FILES
from ._folder import results_folder


def run(options: Any) -> None:
    """Run the subcommand."""
    begin = time.perf_counter()
    if options.data == "digits":
        from ._demo_digits import demo
    else:
        from ._demo_text import demo
    with results_folder(options.out, FILES, []) as results:
        demo(results, options)
    seconds = time.perf_counter() - begin
    print(f"\nDone in {seconds:.1f} s. For your own data: ssnmf-fast fit --help")
