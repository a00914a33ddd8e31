"""Greedy generation with GPT-2 of the package transformers, written as a loop: prompt, cache and every step are one program."""

import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

import flexor

torch.manual_seed(0)
END = 2
config = GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=END)
model = GPT2LMHeadModel(config).eval()


def generate(tokens, most):
    cache = DynamicCache(config=config)
    token = model(tokens, cache=cache, use_cache=True).logits[:, -1:].argmax(-1)
    tokens = torch.cat((tokens, token), 1)
    while tokens.shape[1] < most and token.item() != END:
        token = model(token, cache=cache, use_cache=True).logits[:, -1:].argmax(-1)
        tokens = torch.cat((tokens, token), 1)
    return tokens


jitted = flexor.jit(generate)
with torch.no_grad():
    for length in (3, 8, 5):
        prompt = torch.randint(3, 100, (1, length))
        assert torch.equal(jitted(prompt, 20), generate(prompt, 20))
print("translations:", jitted.stats()["translations"], "fallbacks:", len(jitted.stats()["fallbacks"]))
