"""Check what is in a wheel, before it is published.

    python packaging/check_wheel.py WHEEL [--tag manylinux_2_28_x86_64] [--native]

Every instruction-set level of the processor is there, on Linux the threads of OpenMP with their
library, with the bill of materials and the license of each part, and nothing that does not belong
there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

LEVELS = {"x86_64": {"base", "v3", "v4"}, "amd64": {"base", "v3", "v4"}}
LICENSES = {"LICENSE", "Eigen-MPL-2.0.txt", "pybind11-BSD-3-Clause.txt"}
LICENSES |= {"libgomp-GPL-3.0-GCC-exception-3.1.txt"}
OPENMP = (r"ssnmf_fast/_openmp\.\S+\.so$", r"ssnmf_fast\.libs/libgomp-\S+$")  # on Linux alone
MOST_BYTES = 12 << 20
FOREIGN = re.compile(r"(^|/)(tests|benchmarks|docs|examples)/|libomp|\.(cpp|hpp|o|a|lib)$")


def faults(wheel: Path, tag: str | None, native: bool) -> list[str]:
    """Return what is wrong with the wheel, a line each."""
    platform = wheel.stem.split("-")[-1]
    found = []
    if tag is not None and tag not in platform.split("."):
        found.append(f"its platforms are {platform}; expected {tag}")
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"it has {wheel.stat().st_size} bytes; expected {MOST_BYTES} at most")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found += [f"{name} does not belong there" for name in names if FOREIGN.search(name)]
        modules = {
            m[1] for n in names if (m := re.match(r"ssnmf_fast/_kernels_(\w+)\.\S+\.(so|pyd)$", n))
        }
        for pattern in OPENMP:
            files = [name for name in names if re.match(pattern, name)]
            if len(files) != int("linux" in platform):
                found.append(f"its files like {pattern} are {files}")
        processor = next((name for name in LEVELS if platform.endswith(name)), None)
        expected = {"base"} if processor is None else LEVELS[processor]
        if modules != expected and not (native and len(modules & expected) == 1):
            found.append(f"its levels are {sorted(modules)}; expected {sorted(expected)}")
        if "ssnmf_fast/py.typed" not in names:
            found.append("py.typed is missing")
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        info = metadata.rpartition("/")[0]
        licenses = {n.rpartition("/")[2] for n in names if n.startswith(f"{info}/licenses/")}
        found += [f"the license {name} is missing" for name in sorted(LICENSES - licenses)]
        version = message_from_bytes(archive.read(metadata))["Version"]
        bill = f"{info}/sboms/ssnmf-fast.cdx.json"
        if bill not in names:
            return [*found, f"{bill} is missing"]
        parts = json.loads(archive.read(bill))
        component = parts["metadata"]["component"]
        if component["version"] != version:
            found.append(f"the bill of materials is of version {component['version']}")
        for part in parts["components"]:
            if not re.match(r"\d+\.\d+", part["version"]):
                found.append(f"the version of {part['name']} is {part['version']!r}")
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tag", help="a platform tag that the wheel must have")
    parser.add_argument("--native", action="store_true", help="one level is enough")
    arguments = parser.parse_args()
    found = faults(arguments.wheel, arguments.tag, arguments.native)
    for fault in found:
        print(f"{arguments.wheel.name}: {fault}", file=sys.stderr)
    if not found:
        print(f"{arguments.wheel.name}: complete")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
