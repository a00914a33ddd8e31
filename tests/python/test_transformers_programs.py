"""Programs around models of the package transformers: pipelines, and a loop of generation as one program."""

import pytest
from small_transformers import bert, flexor, gpt2, native, torch, transformers

tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")

TEXTS = ["w5 w6 w7", "w10 w11 w12 w13 w14 w4", "w9"]
END = 2

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def tokenizer():
    words = {"[PAD]": 0, "[BOS]": 1, "[EOS]": END, "[UNK]": 3, **{f"w{i}": i for i in range(4, 100)}}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]", unk_token="[UNK]", padding_side="left"
    )


PIPELINES = {
    "text-generation": (gpt2, lambda pipe: [pipe(text, max_new_tokens=6, do_sample=False) for text in TEXTS], 2),
    "feature-extraction": (bert, lambda pipe: [torch.tensor(pipe(text)) for text in TEXTS], 1),
    "text-classification": (lambda: bert(transformers.BertForSequenceClassification), lambda pipe: pipe(TEXTS), 1),
}


@pytest.mark.parametrize("task", PIPELINES)
def test_pipelines_take_a_jitted_model(task):
    make, ask, translations = PIPELINES[task]
    model = make()
    jitted = flexor.jit(model)
    found, wanted = (ask(transformers.pipeline(task, model=m, tokenizer=tokenizer(), device="cpu")) for m in (jitted, model))
    assert len(found) == len(wanted) == len(TEXTS)
    for mine, theirs in zip(found, wanted):
        if task == "feature-extraction":
            assert torch.allclose(mine, theirs, atol=1e-4)
        elif task == "text-classification":
            assert mine["label"] == theirs["label"] and mine["score"] == pytest.approx(theirs["score"], abs=1e-4)
        else:
            assert mine == theirs
    native(jitted, translations)


@pytest.mark.quick
def test_a_loop_of_generation_is_one_program():
    model = gpt2()

    def generate(tokens, most):
        cache = transformers.DynamicCache(config=model.config)
        token = model(tokens, cache=cache, use_cache=True).logits[:, -1:].argmax(-1)
        tokens = torch.cat((tokens, token), 1)
        while tokens.shape[1] < most and token.item() != END:
            token = model(token, cache=cache, use_cache=True).logits[:, -1:].argmax(-1)
            tokens = torch.cat((tokens, token), 1)
        return tokens

    jitted = flexor.jit(generate)
    for length in (3, 8, 5, 20, 12):
        prompt = torch.randint(3, 100, (1, length))
        assert torch.equal(jitted(prompt, 20), generate(prompt, 20))
    native(jitted, 1)
