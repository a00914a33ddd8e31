"""Models of the package transformers, with random weights and unchanged code, under flexor.jit."""

import functools

import pytest
from small_transformers import alike, bert, close, flexor, gpt2, native, t5, torch, transformers

LENGTHS = range(2, 62)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


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


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
@pytest.mark.parametrize("name", ["cache", "past_key_values"])
@pytest.mark.parametrize("make", [transformers.DynamicCache, functools.partial(transformers.StaticCache, max_cache_len=16)])
def test_gpt2_with_a_cache_is_a_program_for_prompts_and_one_for_steps(make, name):
    model = gpt2()
    jitted = flexor.jit(model)
    for length in (3, 6, 11):
        tokens = torch.randint(3, 100, (2, length))
        mine, theirs = (make(config=model.config) for _ in range(2))
        for _ in range(4):
            found, wanted = jitted(tokens, **{name: mine}, use_cache=True), model(tokens, **{name: theirs}, use_cache=True)
            assert close(found.logits, wanted.logits) and found.cache is mine
            assert all(close(a.keys, b.keys) for a, b in zip(mine.layers, theirs.layers))
            tokens = wanted.logits[:, -1:].argmax(-1)
        assert mine.get_seq_length() == theirs.get_seq_length()
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


def _tokens(length, **more):
    return {"input_ids": torch.randint(3, 100, (2, length)), **more}


def _masked(length, **more):
    mask = torch.ones(2, length, dtype=torch.long)
    mask[0, :1] = 0
    return _tokens(length, attention_mask=mask, **more)


def _labelled(length, **more):
    return _masked(length, labels=torch.randint(3, 100, (2, length)), **more)


def _translated(length, **more):
    return _masked(length, decoder_input_ids=torch.randint(3, 100, (2, length)), use_cache=False, **more)


def _by_steps(make):
    def made():
        model = make()
        model.set_attn_implementation("eager")
        return model

    return made


EVERYTHING = {"output_hidden_states": True, "output_attentions": True}
FORWARD = {
    "bert, all outputs": (_by_steps(bert), _masked, EVERYTHING),
    "bert, a tuple": (bert, _tokens, {"return_dict": False}),
    "bert, labels of tokens": (lambda: bert(transformers.BertForMaskedLM), _labelled, {}),
    "gpt2, all outputs": (_by_steps(gpt2), _masked, EVERYTHING),
    "gpt2, a tuple": (gpt2, _tokens, {"return_dict": False}),
    "gpt2, no cache": (gpt2, _masked, {"use_cache": False}),
    "t5, all outputs": (_by_steps(t5), _translated, EVERYTHING),
    "t5, a cache of its own": (t5, _labelled, {}),
    "t5, labels": (t5, _labelled, {"use_cache": False}),
}


@pytest.mark.parametrize("what", FORWARD)
def test_options_of_forward(what):
    make, inputs_of, options = FORWARD[what]
    model = make()
    jitted = flexor.jit(model)
    for length in (3, 6, 4):
        inputs = inputs_of(length, **options)
        assert alike(jitted(**inputs), model(**inputs))
    native(jitted, 1)


@pytest.mark.parametrize("what", [pytest.param("labels", marks=pytest.mark.quick), "a pad"])
def test_gpt2_tells_once(what):
    model = gpt2(pad_token_id=0 if what == "a pad" else None)
    jitted = flexor.jit(model)
    for length in (3, 6, 4):
        inputs = _tokens(length, labels=torch.randint(3, 100, (2, length)))
        assert alike(jitted(**inputs), model(**inputs))
        inputs["input_ids"][0, -1] = 0
        assert alike(jitted(**inputs), model(**inputs))
    stats = jitted.stats()
    assert not stats["fallbacks"] and stats["translations"] == 1
    assert {call for _, _, call in stats["foreign_calls"]} <= {"warning_once"}
