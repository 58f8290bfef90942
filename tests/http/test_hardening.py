"""Flags that make faults harder to exploit, in the programs that were built."""
import re
import subprocess

import pytest

from service import BUILD, sanitized, tool


def printed(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def readelf(option, path):
    return printed(tool("readelf"), "-W", option, path)


@pytest.fixture(scope="module")
def toolchain_marks(tmp_path_factory):
    """Marks that the C library's own objects allow a program: all must be there, or none."""
    program = tmp_path_factory.mktemp("empty") / "empty"
    try:
        printed("cc", "-x", "c", "-fcf-protection", "-o", program, "-", input="int main(void) {}")
    except subprocess.CalledProcessError:
        return set()
    return set(re.findall("IBT|SHSTK", readelf("-n", program)))


@pytest.mark.skipif(sanitized(), reason="it has a memory of its own")
@pytest.mark.parametrize("name", [
    "convolved", "convolved-codec", "convolved-device", "convolved-http", "convolved-trace",
    "convolved-bench", "convolve"])
def test_program(name, toolchain_marks):
    path = BUILD / name
    header, dynamic, segments = (readelf(option, path) for option in ("-h", "-d", "-l"))
    assert re.search(r"FLAGS_1.*\bNOW\b", dynamic) and re.search(r"FLAGS_1.*\bPIE\b", dynamic)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK .* RW +0x", segments), "the stack may be executed"
    assert not re.search(r"LOAD .* RWE ", segments)
    assert toolchain_marks <= set(re.findall("IBT|SHSTK", readelf("-n", path)))
    symbols = readelf("--dyn-syms", path)
    assert "__stack_chk_fail" in symbols
    assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk", "")), "no call is checked"
    if "X86-64" in header:  # whose functions begin with the mark of -fcf-protection
        code = printed(tool("objdump"), "-d", "--no-show-raw-insn", "-j", ".text", path)
        assert code.count("endbr64") > 20
