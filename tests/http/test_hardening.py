"""Flags that make faults harder to exploit, in the programs that were built."""
import re
import subprocess

import pytest

from service import BUILD, sanitized, tool

PROGRAMS = ["convolved", "convolved-codec", "convolved-device", "convolved-http", "convolved-trace",
            "convolved-bench", "convolve"]


def readelf(option, path):
    return subprocess.run([tool("readelf"), "-W", option, path], capture_output=True, text=True,
                          check=True).stdout


@pytest.fixture(scope="module")
def toolchain_marks(tmp_path_factory):
    """Marks that the C library's own objects allow a program: all must be there, or none."""
    program = tmp_path_factory.mktemp("empty") / "empty"
    result = subprocess.run(["cc", "-x", "c", "-fcf-protection", "-o", program, "-"], text=True,
                            input="int main(void) { return 0; }", capture_output=True, check=False)
    return set(re.findall("IBT|SHSTK", readelf("-n", program))) if not result.returncode else set()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, toolchain_marks):
    if sanitized():
        return  # which has a memory of its own
    path = BUILD / name
    assert "(Position-Independent Executable" in readelf("-h", path) or "DYN" in readelf("-h", path)
    dynamic, segments = readelf("-d", path), readelf("-l", path)
    assert re.search(r"FLAGS_1.*\bNOW\b", dynamic) and re.search(r"FLAGS_1.*\bPIE\b", dynamic)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK .* RW +0x", segments), "the stack may be executed"
    assert not re.search(r"LOAD .* RWE ", segments)
    assert toolchain_marks <= set(re.findall("IBT|SHSTK", readelf("-n", path)))
    symbols = readelf("--dyn-syms", path)
    assert "__stack_chk_fail" in symbols
    assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk", "")), "no call is checked"


@pytest.mark.parametrize("name", PROGRAMS)
def test_indirect_calls_land(name):
    """Functions begin with the mark of -fcf-protection, where the processor has one."""
    if sanitized() or "X86-64" not in readelf("-h", BUILD / name):
        return
    code = subprocess.run([tool("objdump"), "-d", "--no-show-raw-insn", "-j", ".text", BUILD / name],
                          capture_output=True, text=True, check=True).stdout
    assert code.count("endbr64") > 20
