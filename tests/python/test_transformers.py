"""Models of the package transformers, with random weights and unchanged code, under flexor.jit."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")

LENGTHS = range(2, 62)


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def close(found, wanted):
    return found.shape == wanted.shape and torch.allclose(found, wanted, atol=1e-4, rtol=1e-3)


def native(jitted, translations):
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"] and stats["translations"] == translations, stats


def bert():
    config = transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64
    )
    return transformers.BertModel(config).eval()


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2
    )
    return transformers.GPT2LMHeadModel(config).eval()


def t5():
    config = transformers.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def test_bert_of_sixty_lengths_is_one_program():
    model = bert()
    jitted = flexor.jit(model)
    before = flexor.stats()["compilations"]
    for length in LENGTHS:
        tokens = torch.randint(0, 100, (2, length))
        found, wanted = jitted(tokens), model(tokens)
        assert type(found) is type(wanted) and list(found) == list(wanted)
        assert close(found.last_hidden_state, wanted.last_hidden_state) and close(found.pooler_output, wanted.pooler_output)
    native(jitted, 1)
    assert flexor.stats()["compilations"] == before + 1


def test_gpt2_makes_its_cache():
    model = gpt2()
    jitted = flexor.jit(model)
    for length in LENGTHS:
        tokens = torch.randint(3, 100, (2, length))
        found, wanted = jitted(tokens), model(tokens)
        assert close(found.logits, wanted.logits) and type(found.cache) is type(wanted.cache)
        assert all(close(a.keys, b.keys) and close(a.values, b.values) for a, b in zip(found.cache.layers, wanted.cache.layers))
        assert found.cache.get_seq_length() == length
    native(jitted, 1)


def test_gpt2_with_a_cache_is_a_program_for_prompts_and_one_for_steps():
    model = gpt2()
    jitted = flexor.jit(model)
    for length in (3, 6, 11):
        tokens = torch.randint(3, 100, (2, length))
        mine, theirs = (transformers.DynamicCache(config=model.config) for _ in range(2))
        for _ in range(4):
            found, wanted = jitted(tokens, cache=mine, use_cache=True), model(tokens, cache=theirs, use_cache=True)
            assert close(found.logits, wanted.logits) and found.cache is mine
            assert all(close(a.keys, b.keys) for a, b in zip(mine.layers, theirs.layers))
            tokens = wanted.logits[:, -1:].argmax(-1)
    native(jitted, 2)


def test_gpt2_generates():
    model = gpt2()
    jitted = flexor.jit(model)
    for length in (3, 6, 4):
        tokens = torch.randint(3, 100, (1, length))
        wanted = model.generate(tokens, max_new_tokens=8, do_sample=False, pad_token_id=0)
        assert jitted.generate(tokens, max_new_tokens=8, do_sample=False, pad_token_id=0).tolist() == wanted.tolist()
    native(jitted, 2)


def test_t5_translates():
    model = t5()
    jitted = flexor.jit(model)
    for length in (5, 8):
        tokens, given = torch.randint(2, 100, (2, length)), torch.randint(2, 100, (2, length - 2))
        options = {"input_ids": tokens, "decoder_input_ids": given, "use_cache": False}
        found, wanted = jitted(**options), model(**options)
        assert list(found) == list(wanted) and close(found.logits, wanted.logits)
    native(jitted, 1)


def test_t5_generates():
    model = t5()
    jitted = flexor.jit(model)
    for length in (3, 6, 4):
        tokens = torch.randint(2, 100, (1, length))
        wanted = model.generate(tokens, max_new_tokens=6, do_sample=False)
        assert jitted.generate(tokens, max_new_tokens=6, do_sample=False).tolist() == wanted.tolist()
    native(jitted, 2)
