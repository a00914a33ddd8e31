"""The programs of bench and demo as Flexor modules, written with the public Builder only."""

import flexor

from .weights import EncoderConfig, MiniLMConfig, chain_weights, encoder_weights


def add_weights(builder, weights, prefix=""):
    """Registers a dict of arrays as module constants; returns the same dict of handles."""
    return {name: builder.weight(prefix + name, array) for name, array in weights.items()}


def encoder_layer(f, x, w, config):
    """Post-norm encoder layer on x[B, S, D]; `w` maps the names of `weights.LAYER_NAMES` to module constants."""
    batch, length, dim = x.shape
    head = config.dim // config.heads
    qkv = f.linear(x, w["wqkv"], w["bqkv"]).reshape([batch, length, 3, config.heads, head])
    q, k, v = (qkv[:, :, i].permute([0, 2, 1, 3]) for i in range(3))
    attended = f.sdpa(q, k, v).permute([0, 2, 1, 3]).reshape([batch, length, dim])
    y = f.layer_norm(x + f.linear(attended, w["wo"], w["bo"]), w["g1"], w["be1"], eps=config.eps)
    hidden = f.gelu(f.linear(y, w["w1"], w["b1"]))
    return f.layer_norm(y + f.linear(hidden, w["w2"], w["b2"]), w["g2"], w["be2"], eps=config.eps)


def add_relu_sum():
    """(a + b).relu().sum(-1) on two inputs [B, S, D]."""
    b = flexor.Builder()
    f = b.function("main", inputs=[("a", "float32", ["B", "S", "D"]), ("b", "float32", ["B", "S", "D"])])
    x, y = f.inputs
    f.output((x + y).relu().sum(axes=[-1], keepdim=False))
    return b.build()


def add_relu_sum_rows():
    """The same on matrices [P, Q]: the call-overhead program."""
    b = flexor.Builder()
    f = b.function("main", inputs=[("a", "float32", ["P", "Q"]), ("b", "float32", ["P", "Q"])])
    x, y = f.inputs
    f.output((x + y).relu().sum(axes=[-1], keepdim=False))
    return b.build()


def add_relu_sum_three():
    """(a + b + c).relu().sum(-1) on matrices [P, Q]: three arguments, for the cost of the ladder's rungs."""
    b = flexor.Builder()
    f = b.function("main", inputs=[(name, "float32", ["P", "Q"]) for name in "abc"])
    x, y, z = f.inputs
    f.output((x + y + z).relu().sum(axes=[-1], keepdim=False))
    return b.build()


def relu_sum():
    """The classic form relu(x + 1.0).sum() on x[B, S, D], a scalar result."""
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["B", "S", "D"])])
    (x,) = f.inputs
    f.output((x + 1.0).relu().sum(axes=[0, 1, 2], keepdim=False))
    return b.build()


def chain(dim=768):
    """softmax(gelu(layer_norm(x)) + x, -1) on x[B, S, dim]."""
    b = flexor.Builder()
    w = add_weights(b, chain_weights(dim))
    f = b.function("main", inputs=[("x", "float32", ["B", "S", dim])])
    (x,) = f.inputs
    y = f.gelu(f.layer_norm(x, w["g"], w["b"], eps=1e-5))
    f.output(f.softmax(y + x, axis=-1))
    return b.build()


def encoder(layers=1, config=EncoderConfig(), max_length=4096):
    """A stack of `layers` encoder layers on x[B, S, D]; every layer has weights of its own."""
    b = flexor.Builder()
    length = b.symbol("S", 1, max_length)
    w = [add_weights(b, encoder_weights(config, seed), f"layer{seed}.") for seed in range(layers)]
    f = b.function("main", inputs=[("x", "float32", ["B", length, config.dim])])
    (x,) = f.inputs
    for layer in w:
        x = encoder_layer(f, x, layer, config)
    f.output(x)
    return b.build()


def minilm(weights, config=MiniLMConfig(eps=1e-12, dim=384, ffn=1536)):
    """all-MiniLM-L6-v2: token ids [B, S] to sentence embeddings [B, D] of unit length (mean pooling, then L2
    normalisation)."""
    b = flexor.Builder()
    length = b.symbol("S", 1, config.max_length)
    tables = add_weights(b, {name: weights[name] for name in ("we", "pe", "te", "eg", "eb")})
    layers = [add_weights(b, layer, f"layer{i}.") for i, layer in enumerate(weights["layers"])]
    f = b.function("main", inputs=[("ids", "int64", ["B", length])])
    (ids,) = f.inputs
    positions = f.slice(tables["pe"], axis=0, start=0, stop=ids.shape[1])
    x = f.embedding(ids, tables["we"]) + positions + tables["te"]
    x = f.layer_norm(x, tables["eg"], tables["eb"], eps=config.eps)
    for layer in layers:
        x = encoder_layer(f, x, layer, config)
    pooled = f.reduce_mean(x, axes=[1], keepdim=False)
    norm = f.sqrt(f.reduce_sum(pooled * pooled, axes=[-1], keepdim=True))
    f.output(pooled / norm)
    return b.build()
