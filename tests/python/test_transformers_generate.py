"""generate() of models of the package transformers: greedy, sampled, by beams; growing and static caches; batches with padding."""

import pytest
from small_transformers import flexor, gpt2, native, t5, torch

STEPS = 5
HOW = {
    "greedy": {},
    "sampled": {"do_sample": True},
    "sampled from a few": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.7},
    "beams": {"num_beams": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True},
}

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def plain(length):
    return {"input_ids": torch.randint(3, 100, (1, length))}


def padded(length):
    """A batch of three, of which two are shorter: padding stands on their left."""
    tokens = torch.randint(3, 100, (3, length + 2))
    mask = torch.ones_like(tokens)
    mask[0, :2] = mask[1, :1] = 0
    return {"input_ids": tokens * mask, "attention_mask": mask}


def generate(model, inputs, **options):
    torch.manual_seed(7)
    return model.generate(**inputs, **{"max_new_tokens": STEPS, "pad_token_id": 0, "do_sample": False, **options}).tolist()


CASES = [(gpt2, "greedy"), *((gpt2, how) for how in HOW if how != "greedy"), (t5, "greedy"), (t5, "sampled"), (t5, "beams")]


@pytest.mark.parametrize(("make", "how"), [pytest.param(*CASES[0], marks=pytest.mark.quick), *CASES[1:]])
def test_tokens_are_those_of_eager(make, how):
    model = make()
    jitted = flexor.jit(model)
    before = flexor.stats()
    for length in (3, 6, 4):
        inputs = plain(length)
        assert generate(jitted, inputs, **HOW[how]) == generate(model, inputs, **HOW[how])
    native(jitted, 2)  # of prompts, and of every further token
    after = flexor.stats()
    assert after["compilations"] - before["compilations"] == 2 and after["interpreted_ops"] == before["interpreted_ops"]


@pytest.mark.parametrize("make", [gpt2, t5])
def test_a_batch_with_padding(make):
    model = make()
    jitted = flexor.jit(model)
    for length in (3, 6, 4):
        inputs = padded(length)
        assert generate(jitted, inputs) == generate(model, inputs)
    native(jitted, 2)


@pytest.mark.parametrize("inputs_of", [plain, padded])
@pytest.mark.parametrize("make", [gpt2, t5])
def test_static_caches_are_written_in_place(make, inputs_of):
    model = make()
    jitted = flexor.jit(model)
    for length in (3, 6, 4, 9):
        inputs = inputs_of(length)
        options = {"cache_implementation": "static"}
        assert generate(jitted, inputs, **options) == generate(model, inputs, **options)
    native(jitted, 2)


def test_sixty_lengths_of_prompts():
    model = gpt2()
    jitted = flexor.jit(model)
    before = flexor.stats()
    for length in range(2, 62):
        inputs = plain(length)
        assert generate(jitted, inputs) == generate(model, inputs)
    native(jitted, 2)
    after = flexor.stats()
    calls = after["lookups"] - before["lookups"]
    assert calls == 60 * STEPS and after["compilations"] - before["compilations"] == 2


def test_twelve_layers():
    model = gpt2(n_layer=12, n_embd=48, n_head=12)
    jitted = flexor.jit(model)
    for length in (3, 7):
        inputs = plain(length)
        assert generate(jitted, inputs) == generate(model, inputs)
    native(jitted, 2)
