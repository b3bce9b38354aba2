"""The compiled modules as files: their instructions and their symbols."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ssnmf_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
MODULES = sorted(path.name.split(".")[0] for path in Path(ssnmf_fast.__file__).parent.glob("*.so"))
WIDE_REGISTER = re.compile(r"%[yz]mm\d|%k[0-7]\b")
# An AVX instruction on a narrow register, e.g. vaddpd.
ENCODED_BY_AVX = re.compile(r"\t(v[a-z0-9]+) +.*%xmm")


def test_there_are_modules():
    assert "_cpu" in MODULES
    assert len(MODULES) > 1


def _file(module: str) -> Path:
    folder = Path(ssnmf_fast.__file__).parent
    (found,) = folder.glob(f"{module}.*so")
    return found


def _objdump(*arguments: str) -> subprocess.Popen[str]:
    tool = shutil.which("objdump")
    if tool is None:
        pytest.skip("needs objdump, of binutils")
    return subprocess.Popen([tool, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "module", [name for name in MODULES if name in ("_cpu", "_kernels_base", "_openmp")]
)
def test_the_baseline_has_no_avx_instruction(module):
    """Every processor must be able to run it."""
    file = _file(module)
    with _objdump("--disassemble", "--no-show-raw-insn", str(file)) as listing:
        if "x86-64" not in listing.stdout.readline() + listing.stdout.readline():
            listing.kill()
            pytest.skip("no x86-64 module")
        count = 0
        for line in listing.stdout:
            assert not WIDE_REGISTER.search(line), line
            assert not ENCODED_BY_AVX.search(line), line
            count += 1
    assert listing.returncode == 0
    assert count > 100


@pytest.mark.parametrize("module", MODULES)
def test_modules_export_their_entry_point_alone(module):
    """A linker would merge what two levels both export."""
    with _objdump("--dynamic-syms", str(_file(module))) as listing:
        symbols = [line.split() for line in listing.stdout if re.match(r"[0-9a-f]{8,} ", line)]
    assert listing.returncode == 0
    exported = [fields[-1] for fields in symbols if "*UND*" not in fields]
    assert exported == [f"PyInit_{module}"]


@pytest.mark.parametrize("module", MODULES)
def test_one_module_needs_the_library_of_openmp(module):
    with _objdump("--private-headers", str(_file(module))) as listing:
        needed = re.findall(r"NEEDED +(\S+)", listing.stdout.read())
    assert listing.returncode == 0
    assert needed
    assert any("omp" in library for library in needed) == (module == "_openmp")
