"""The same programs as ONNX graphs (opset 20, every varying dim symbolic) for ONNX Runtime."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .weights import EncoderConfig, chain_weights, encoder_weights, minilm_config, minilm_weights


class Graph:
    """Collects nodes and initialisers of one graph; every method returns value names."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def serialise(self, inputs, result, result_shape, contrib=False):
        """Bytes of the model; `inputs` are (name, element type, shape)."""
        graph = helper.make_graph(
            self.nodes,
            "program",
            [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, result_shape)],
            self.constants,
        )
        opsets = [helper.make_opsetid("", 20)] + [helper.make_opsetid("com.microsoft", 1)] * contrib
        return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def _linear(g, x, weight, bias):
    return g.op("Add", g.op("MatMul", x, g.constant(weight.T)), g.constant(bias))


def _norm(g, x, scale, shift, eps):
    return g.op("LayerNormalization", x, g.constant(scale), g.constant(shift), axis=-1, epsilon=eps)


def _encoder_layer(g, x, w, config, fused_attention):
    head = config.dim // config.heads
    q, k, v = g.op("Split", _linear(g, x, w["wqkv"], w["bqkv"]), outputs=3, axis=-1, num_outputs=3)
    if fused_attention:
        attended = g.op("MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=config.heads)
    else:
        shape = g.ints(0, 0, config.heads, head)
        q, v = (g.op("Transpose", g.op("Reshape", t, shape), perm=[0, 2, 1, 3]) for t in (q, v))
        k = g.op("Transpose", g.op("Reshape", k, shape), perm=[0, 2, 3, 1])
        scores = g.op("Mul", g.op("MatMul", q, k), g.constant(np.float32(head**-0.5)))
        attended = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        attended = g.op("Reshape", attended, g.ints(0, 0, config.dim))
    y = _norm(g, g.op("Add", x, _linear(g, attended, w["wo"], w["bo"])), w["g1"], w["be1"], config.eps)
    hidden = g.op("Gelu", _linear(g, y, w["w1"], w["b1"]))
    return _norm(g, g.op("Add", y, _linear(g, hidden, w["w2"], w["b2"])), w["g2"], w["be2"], config.eps)


def add_relu_sum(shape=("B", "S", "D")):
    g = Graph()
    y = g.op("ReduceSum", g.op("Relu", g.op("Add", "a", "b")), g.ints(-1), keepdims=0)
    return g.serialise([("a", TensorProto.FLOAT, shape), ("b", TensorProto.FLOAT, shape)], y, shape[:-1])


def relu_sum():
    g = Graph()
    y = g.op("ReduceSum", g.op("Relu", g.op("Add", "x", g.constant(np.float32(1.0)))), keepdims=0)
    return g.serialise([("x", TensorProto.FLOAT, ("B", "S", "D"))], y, ())


def chain():
    g, w = Graph(), chain_weights()
    y = g.op("Softmax", g.op("Add", g.op("Gelu", _norm(g, "x", w["g"], w["b"], 1e-5)), "x"), axis=-1)
    return g.serialise([("x", TensorProto.FLOAT, ("B", "S", 768))], y, ("B", "S", 768))


def encoder(layers=1, config=EncoderConfig(), fused_attention=False):
    g, x = Graph(), "x"
    for seed in range(layers):
        x = _encoder_layer(g, x, encoder_weights(config, seed), config, fused_attention)
    shape = ("B", "S", config.dim)
    return g.serialise([("x", TensorProto.FLOAT, shape)], x, shape, contrib=fused_attention)


def minilm(fused_attention=False):
    g, w, config = Graph(), minilm_weights(), minilm_config()
    length = g.op("Shape", "ids", start=1, end=2)
    positions = g.op("Slice", g.constant(w["pe"]), g.ints(0), length, g.ints(0))
    x = g.op("Add", g.op("Gather", g.constant(w["we"]), "ids", axis=0), positions)
    x = _norm(g, g.op("Add", x, g.constant(w["te"])), w["eg"], w["eb"], config.eps)
    for layer in w["layers"]:
        x = _encoder_layer(g, x, layer, config, fused_attention)
    pooled = g.op("ReduceMean", x, g.ints(1), keepdims=0)
    y = g.op("Div", pooled, g.op("ReduceL2", pooled, g.ints(-1), keepdims=1))
    return g.serialise([("ids", TensorProto.INT64, ("B", "S"))], y, ("B", config.dim), contrib=fused_attention)
