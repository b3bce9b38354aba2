"""Compile the kernels and the C++ tests for another system, and run the tests where it can be.

    python packaging/cross.py aarch64|macos|musl|windows [--levels base v3] [--build FOLDER]

| target    | compiler                     | the tests run                                     |
|-----------|------------------------------|---------------------------------------------------|
| `aarch64` | `g++-aarch64-linux-gnu`, apt | by qemu-user                                      |
| `musl`    | `ziglang`, pip               | on Linux, x86-64                                  |
| `windows` | `ziglang`, pip (MinGW)       | by Wine                                           |
| `macos`   | `ziglang`, pip               | nowhere: nothing here runs programs for macOS     |

Warnings are errors.  The Python modules are not compiled: they need the headers of a Python for the
target.  CMake, Ninja and cmeel-eigen must be installed (pip).  The first call of zig for a target
compiles its C++ library, which can take minutes, without a message.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
X86_64 = ("base", "v3", "v4")


@dataclass(frozen=True)
class Platform:
    """A system and a processor, as compilers and CMake call them, and what runs its programs."""

    triple: str
    system: str
    processor: str
    levels: tuple[str, ...]
    emulator: tuple[str, ...] | None  # None: nothing runs them; empty: this system


# Linux for aarch64 has its libraries, and its loader, in a folder of their own.
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
TARGETS = {
    "aarch64": [Platform("aarch64-linux-gnu", "Linux", "aarch64", ("base",), QEMU)],
    "musl": [Platform("x86_64-linux-musl", "Linux", "x86_64", X86_64, ())],
    "windows": [Platform("x86_64-windows-gnu", "Windows", "AMD64", X86_64, ("wine",))],
    "macos": [
        Platform("aarch64-macos", "Darwin", "arm64", ("base",), None),
        Platform("x86_64-macos", "Darwin", "x86_64", X86_64, None),
    ],
}


def compiler(platform: Platform) -> str:
    """Return the command of the compiler, or exit with what must be installed."""
    if platform.triple == "aarch64-linux-gnu":
        found = shutil.which("aarch64-linux-gnu-g++")
        return found or sys.exit("apt-get install g++-aarch64-linux-gnu qemu-user")
    package = importlib.util.find_spec("ziglang")
    if package is None or package.origin is None:
        sys.exit("pip install ziglang")
    zig = Path(package.origin).with_name("zig")
    # It passes an option to Clang that Clang does not know for MinGW.
    return f"{zig} c++ -target {platform.triple} -Wno-unused-command-line-argument"


def call(*command: object, **environment: str) -> None:
    """Run a command, and exit if it fails."""
    status = subprocess.run([str(part) for part in command], env=os.environ | environment)
    if status.returncode != 0:
        sys.exit(f"failed: {' '.join(str(part) for part in command)}")


def check(platform: Platform, level: str, folder: Path) -> str:
    """Compile everything for a level, run the tests, and return what was done."""
    runs = platform.emulator is not None and all(map(shutil.which, platform.emulator[:1]))
    emulator = ";".join(platform.emulator or ())
    options = {
        "CMAKE_SYSTEM_NAME": platform.system,
        "CMAKE_SYSTEM_PROCESSOR": platform.processor,
        "CMAKE_CROSSCOMPILING_EMULATOR": emulator,
        "Python_EXECUTABLE": sys.executable,
        "SSNMF_FAST_CPP_TESTS": "ON",
        "SSNMF_FAST_CPP_LEVEL": level,
        "SSNMF_FAST_CPP_OPTIMIZE": "3",  # as in a wheel; and an emulator would take too long
        "SSNMF_FAST_WERROR": "ON",
    }
    tools = {"Windows": "CMAKE_RC_COMPILER", "Darwin": "CMAKE_INSTALL_NAME_TOOL"}
    if platform.system in tools:  # CMake asks for it, and does not call it
        options[tools[platform.system]] = sys.executable
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    start = time.monotonic()
    call("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *definitions, CXX=compiler(platform))
    call("cmake", "--build", folder)
    compiled = time.monotonic()
    done = f"{platform.triple}, {level}: compiled in {compiled - start:.0f} s"
    if not runs:
        return f"{done}, not run"
    call("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", WINEDEBUG="-all")
    return f"{done}, tests passed or skipped in {time.monotonic() - compiled:.0f} s"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--levels", nargs="+", choices=X86_64, default=X86_64)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cross")
    arguments = parser.parse_args()
    done = []
    for platform in TARGETS[arguments.target]:
        for level in platform.levels:
            if level in arguments.levels:
                done.append(check(platform, level, arguments.build / f"{platform.triple}-{level}"))
    print(*done, sep="\n")


if __name__ == "__main__":
    main()
