"""Do the benchmarks run?  Small versions of all; asserts that they print, never how fast.

No need of ssnmf, torch, asv or downloads; under a minute.
"""

from __future__ import annotations

import importlib
import io
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("kernels", "peers", "papers", "checks", "solvers")
sys.path[:0] = [str(HERE), *(str(HERE / part) for part in PARTS)]


def kl_pass() -> None:
    import kl_pass as script
    from common import zipf_text

    print(f"product {script.peak('float64', 256):.1f} GFLOP/s")
    print(
        script.table(zipf_text(2000, 1000, 40), script.available_levels()[-1:], [1, 2], budget=0.0)
    )


def iterations() -> None:
    import iterations as script

    script.main(["--quick", "--peers", "sklearn", "--synthetic", "500", "--iterations", "5"])


def convergence() -> None:
    import convergence as script

    script.main(["--quick", "--peers", "scikit-learn", "--data", "text"])


def kl_times() -> None:
    import kl_times as script

    script.main(["--quick"])


def tensors() -> None:
    import tensors as script

    script.main(["--quick", "--rounds", "1"])


def papers() -> None:
    for name in (
        "ssnmf_newsgroups",
        "ssnmf_synthetic",
        "ssnmf_newsgroups_ours",
        "dynamic_newsgroups",
    ):
        importlib.import_module(name).main(["--quick"])


def family() -> None:
    """Models that labels guide, and Bayesian ones."""
    for name in ("topic_supervised", "nmf_alpha", "vbnmf"):
        importlib.import_module(name).main(["--quick"])
    import family_speed as speed

    speed.main(["--quick", "--repeats", "1", "--iterations", "2", "--threads", "1"])


def thread_simulation() -> None:
    import thread_simulation as script

    script.main(["--quick", "--rank", "5", "--iterations", "2"])


def threads() -> None:
    import threads as script

    script.main(["--quick"])


def contention() -> None:
    import contention as script

    script.main(["--quick"])


def few_labels() -> None:
    import few_labels as script

    with tempfile.TemporaryDirectory() as folder:
        given = ["--data", "digits", "--shares", "0.02", "1", "--draws", "1"]
        script.main(["--out", folder, *given])
        assert (Path(folder) / "few_labels.png").exists()


def tensor_stream() -> None:
    import tensor_stream as script

    script.main(["--quick", "--forget-factors", "0.98"])


def completion() -> None:
    import completion as papers
    import completion_speed as speed

    papers.main(["--quick", "--figure", "2.3", "--methods", "sirls", "structured-sirls"])
    speed.main(["--quick", "--parts", "d"])


def main() -> None:
    for part in (
        kl_pass,
        iterations,
        convergence,
        kl_times,
        tensors,
        papers,
        family,
        threads,
        thread_simulation,
        contention,
        few_labels,
        tensor_stream,
        completion,
    ):
        output = io.StringIO()
        with redirect_stdout(output):
            part()
        text = output.getvalue()
        assert text.strip(), f"{part.__name__} printed nothing"
        print(f"== {part.__name__}\n{text}", flush=True)
    print("benchmarks: all ran")


if __name__ == "__main__":
    main()
