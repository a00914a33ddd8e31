"""Generation with GPT-2 of the package transformers (random weights): one program for prompts, one for every further token."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import flexor

torch.manual_seed(0)
config = GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2)
model = GPT2LMHeadModel(config).eval()
jitted = flexor.jit(model)
with torch.no_grad():
    for length in (3, 8, 5):
        prompt = torch.randint(3, 100, (1, length))
        mine = jitted.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)
        assert mine.tolist() == model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0).tolist()
print("translations:", jitted.stats()["translations"])
