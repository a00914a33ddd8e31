"""Small models of the package transformers with random weights, and what tests ask of them under flexor.jit."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")


def close(found, wanted):
    return found.shape == wanted.shape and found.dtype == wanted.dtype and torch.allclose(found, wanted, atol=1e-4, rtol=1e-3)


def alike(found, wanted):
    """Whether two outputs of a model are of one structure and close."""
    if type(found) is not type(wanted):
        return False
    if isinstance(wanted, torch.Tensor):
        return close(found, wanted)
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(alike(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    return alike(vars(found), vars(wanted)) if hasattr(wanted, "__dict__") and not isinstance(wanted, type) else found == wanted


def native(jitted, translations):
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"] and stats["translations"] == translations, stats


def bert(cls=None):
    config = transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64
    )
    return (cls or transformers.BertModel)(config).eval()


def gpt2(**options):
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 4, **options}
    config = transformers.GPT2Config(vocab_size=100, n_positions=128, bos_token_id=1, eos_token_id=2, **shape)
    return transformers.GPT2LMHeadModel(config).eval()


def t5():
    config = transformers.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1
    )
    return transformers.T5ForConditionalGeneration(config).eval()
