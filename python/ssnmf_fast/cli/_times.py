"""Times of samples, from a column or a file, and what is written of topics over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .._common.arrays import Array
from .._data.times import read_times
from .._topics import numbered_names
from ..report import Picture, png
from ._errors import UsageError
from ._folder import Results
from ._predictions import write_csv
from ._read import Table, read_values
from ._source import Source

TABLE, PICTURE = "topics_over_time.csv", "topics_over_time.png"
_TERMS = 3  # in the name of a topic


def times_of(options: Any, data: Table | Source, n_samples: int) -> Array | None:
    """Return the times in a column or a file; None if there are none."""
    if options.time is None:
        return None
    values = read_values(options.time, data, n_samples)
    name, where = "date", options.time
    if isinstance(data, Table) and options.time in data.columns:
        name, where = options.time, data.source
    try:
        return read_times(values, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {str(error).rstrip('.')}") from error


def write_over_time(path: Path, model: Any, terms: Any, *, safe: bool = False) -> None:
    """Write the prevalence of every topic in every slice of time."""
    names = numbered_names(model.topics(terms, _TERMS))
    columns = zip(
        model.slices_.astype(str).tolist(),
        model.slice_sizes_.tolist(),
        model.prevalence_.tolist(),
        strict=True,
    )
    rows = ([start, size, *values] for start, size, values in columns)
    write_csv(path, ["slice", "documents", *names], rows, safe=safe)


def peaks(model: Any) -> list[dict[str, Any]]:
    """Return the peak of every topic, for JSON."""
    return [
        {
            "topic": peak.topic,
            "slice": str(peak.slice),
            "prevalence": peak.prevalence,
            "concentration": round(peak.concentration, 6),
            "periodicity": None if math.isnan(peak.periodicity) else round(peak.periodicity, 6),
        }
        for peak in model.peaks()
    ]


def print_peaks(model: Any, terms: Any) -> None:
    """Print when every topic is most prevalent, the earliest first."""
    names = numbered_names(model.topics(terms, _TERMS))
    width = max(map(len, names))
    print("\nPeaks (share of the topic within one slice of its peak)")
    for peak in sorted(model.peaks(), key=lambda one: one.slice):
        print(f"  {names[peak.topic]:<{width}}  {peak.slice}  {peak.concentration:.0%}")


def draw_over_time(out: Results, model: Any, terms: Any) -> list[Picture]:
    """Draw the heat map; return the picture, if there is one."""
    from ..plotting import topics_over_time

    drawn = out.written(PICTURE, lambda: png(topics_over_time(model, terms, n_terms=_TERMS)))
    caption = (
        f"How prevalent every topic is in {len(model.slices_)} slices of time, relative to its "
        "peak. Topics are in the order of their peaks; gray slices have no documents."
    )
    return [Picture("Topics over time", caption, drawn)]
