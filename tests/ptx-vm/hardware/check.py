#!/usr/bin/env python3
"""Runs the snippets of the tests on a GPU and compares with what the virtual machine gave, bit for bit.

    PTX_VM_DUMP=folder cargo test -p ptx-vm        # writes NAME.ptx, NAME.in, NAME.out
    python3 check.py folder [sm_90]                # on a machine with a GPU and its driver; the target replaces the one in the text

Snippets that the driver's assembler refuses for the target (another GPU's instructions) are listed as skipped.
"""
import ctypes
import pathlib
import re
import sys

cuda = ctypes.CDLL("libcuda.so.1")
u64, pointer = ctypes.c_uint64, ctypes.byref


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        raise RuntimeError(f"{name}: {code}")


def run(function, data, words):
    """Copies the inputs, launches one thread per result, copies the results back."""
    inputs, outputs = u64(), u64()
    size = 8 * words
    call("cuMemAlloc_v2", pointer(inputs), ctypes.c_size_t(max(len(data), 8)))
    call("cuMemAlloc_v2", pointer(outputs), ctypes.c_size_t(size))
    call("cuMemcpyHtoD_v2", inputs, data, ctypes.c_size_t(len(data)))
    count = ctypes.c_uint32(words)
    arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(a) for a in (inputs, outputs, count)))
    call("cuLaunchKernel", function, (words + 127) // 128, 1, 1, 128, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
    back = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", back, outputs, ctypes.c_size_t(size))
    call("cuMemFree_v2", inputs)
    call("cuMemFree_v2", outputs)
    return back.raw


def is_nan(word):
    """Whether a word is a NaN of some format."""
    value = int.from_bytes(word, "little")
    magnitudes = ((64, 0x7FF0 << 48), (32, 0x7F800000), (16, 0x7C00))
    return any(value >> bits == 0 and value & ((1 << (bits - 1)) - 1) > infinity for bits, infinity in magnitudes)


def check(path, target):
    """Number of results and of differences, or None where the target lacks the instruction. NaNs of f64 instructions are equal."""
    text = re.sub(r"\.target \w+", f".target {target}", path.read_text())
    data, want = path.with_suffix(".in").read_bytes(), path.with_suffix(".out").read_bytes()
    words = len(want) // 8
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuModuleLoadData(pointer(module), text.encode() + b"\0"):
        return None
    call("cuModuleGetFunction", pointer(function), module, b"snippet")
    got = run(function, data, words)
    call("cuModuleUnload", module)
    width = len(data) // words
    double = ".f64" in text

    def same(ours, theirs):
        return ours == theirs or (double and is_nan(ours) and is_nan(theirs))

    differences = [i for i in range(words) if not same(got[8 * i:8 * i + 8], want[8 * i:8 * i + 8])]
    for i in differences[:5]:
        operands = [data[i * width + 8 * k:i * width + 8 * k + 8][::-1].hex() for k in range(width // 8)]
        print(f"  {operands} gpu {got[8 * i:8 * i + 8][::-1].hex()} vm {want[8 * i:8 * i + 8][::-1].hex()}")
    return words, len(differences)


def instruction(path):
    """The line that the snippet is about, for the report."""
    lines = path.read_text().splitlines()
    end = lines.index("END:")
    start = max(i for i, line in enumerate(lines[:end]) if "[%in" in line or "add.u64 %in" in line or "setp.ne.b64 %a" in line)
    return " ".join(lines[start + 1:end])[:100]


def main():
    folder, target = pathlib.Path(sys.argv[1]), (sys.argv[2:] or ["sm_90"])[0]
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", pointer(device), 0)
    call("cuDevicePrimaryCtxRetain", pointer(context), device)
    call("cuCtxSetCurrent", context)
    snippets = results = differing = 0
    for path in sorted(p for p in folder.glob("*.ptx") if p.with_suffix(".out").exists()):
        outcome = check(path, target)
        if outcome is None:
            print(f"skipped: {instruction(path)}")
            continue
        snippets, results, differing = snippets + 1, results + outcome[0], differing + outcome[1]
        if outcome[1]:
            print(f"{outcome[1]} of {outcome[0]} differ: {instruction(path)}")
    print(f"{snippets} snippets, {results} results, {differing} differ")
    sys.exit(differing != 0)


if __name__ == "__main__":
    main()
