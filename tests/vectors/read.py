"""Reads what `adaln vectors --out DIR` writes and computes a part of it again, with numpy and ml_dtypes only.

python3 tests/vectors/read.py DIR
"""

import json, pathlib, sys
import ml_dtypes
import numpy as np

folder = pathlib.Path(sys.argv[1])
index = json.loads((folder / "index.json").read_text())
raw = (folder / index["file"]).read_bytes()
length = int.from_bytes(raw[:8], "little")
header = json.loads(raw[8 : 8 + length])
DTYPES = {"BF16": ml_dtypes.bfloat16, "F32": np.float32, "F8_E4M3": ml_dtypes.float8_e4m3fn, "U8": np.uint8}


def tensor(name):
    about = header[name]
    begin, end = (8 + length + offset for offset in about["data_offsets"])
    return np.frombuffer(raw[begin:end], DTYPES[about["dtype"]]).reshape(about["shape"])


def tensors(names):
    return {operand: tensor(name) for operand, name in names.items()}


def layer_norm(x, eps):  # float64: the order of summation does not matter to the eighth bit
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)


def fp8(case, given):
    v = layer_norm(given["x"].astype(np.float64), case["eps"])
    if "scale" in given:  # [D], or [R, D] per token
        v = v * (1 + given["scale"].astype(np.float64)) + given["shift"].astype(np.float64)
    v = v.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32) * given.get("inv_s", np.float32(1)).astype(np.float32)
    q = v * (np.float32(1) / np.maximum(given["act_scale"], np.float32(1e-12)))
    return np.clip(q, -448, 448).astype(ml_dtypes.float8_e4m3fn)


exact = close = different = 0
for case in index["cases"]:
    given, wanted = tensors(case["inputs"]), tensors(case["outputs"])
    if case["operator"] == "adaln_modulation6_bf16":
        for part in range(6):
            with np.errstate(all="ignore"):
                got = (given["adaln_params"][..., part, :] + given["layer_modulation"][part]).astype(ml_dtypes.bfloat16)
            same = (got == wanted[f"out{part}"]) | (np.isnan(got) & np.isnan(wanted[f"out{part}"]))
            assert same.all(), case["name"]
            exact += same.size
    elif "act_scale" in given and "temb" not in given and "scale_fp8" not in given and case["values"] in ("normal", "outliers", "wide"):
        got, want = fp8(case, given).view(np.uint8).astype(int), wanted["out"].view(np.uint8).astype(int)
        distance = np.abs(got - want)
        assert distance.max() <= 1 and (distance > 0).mean() < 0.01, case["name"]
        close, different = close + distance.size, different + (distance > 0).sum()
    elif "packed" in wanted:  # bytes of the scale layout that belong to no block are 0
        k = case["dim"] // 16
        tiles = wanted["sf_swizzled"].reshape(-(-case["rows"] // 128), -(-k // 4), 32, 4, 4)
        scales = tiles.transpose(0, 3, 2, 1, 4).reshape(-1, tiles.shape[1] * 4)
        assert not scales[case["rows"] :].any() and not scales[:, k:].any(), case["name"]
assert exact > 0 and close > 0
print(f"{len(index['cases'])} calls; modulation6: {exact} values equal; FP8: {close} codes, {different} differ by one; padding is 0")
