"""Function :func:`show_config`: versions, compiler, instruction-set levels and threads."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import scipy

from . import _cpu
from ._backend import dispatch
from ._data.threads import resolve_threads
from ._version import __version__


def config() -> dict[str, Any]:
    built = dict(dispatch.kernels.build_info())
    best = [level for level in ("base", "v3", "v4") if level in _cpu.levels][-1]
    hint = f" (built without {best}, the best of this processor: install it here, or build with "
    return {
        "ssnmf_fast": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "platform": platform.platform(),
        "level in use": dispatch.level_in_use()
        + (f"{hint}SSNMF_FAST_LEVELS=all)" if best not in _cpu.built_levels else ""),
        "levels available": ", ".join([*dispatch.available_levels(), "reference"]),
        "compiler": built["compiler"],
        "flags": built["flags"],
        "eigen": built["eigen"],
        "threads": resolve_threads(),
        "thread back end": built["threads"],
    }


def show_config() -> None:
    """Print versions, compiler, flags, instruction-set levels and the number of threads.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.show_config()  # doctest: +SKIP
    """
    items = config()
    width = max(map(len, items))
    print("\n".join(f"{key:<{width}}  {value}" for key, value in items.items()))
