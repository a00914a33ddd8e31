"""Every registry op beside torch: what computes the same, for which dtypes, on which shapes. test_ops_vs_torch.py runs them."""

import dataclasses
from collections.abc import Callable

import torch
import torch.nn.functional as F
from oracle import ALL, FLOATS, INTS

NUMBERS = (*FLOATS, *INTS)
BITS = (*INTS, torch.bool)


@dataclasses.dataclass(frozen=True)
class Case:
    """`shapes(n)` gives, per size n, tuples of operand shapes; ranks are the same in all of them. `eager`
    takes the operands."""

    op: str
    eager: Callable
    dtypes: tuple = FLOATS
    shapes: Callable = lambda n: [((n, 5),), ((3, n),)]
    domains: tuple = ("any",)
    attrs: dict = dataclasses.field(default_factory=dict)
    ulps: int = 4
    label: str = ""
    strides: bool = True
    operand_dtypes: tuple = ()  # where an operand does not follow the case's dtype: {index: dtype} as pairs
    as_list: bool = False  # operands go into one list
    magnitude: Callable | None = None  # scale of errors from the operands' magnitudes, where results cancel

    def __str__(self):
        return f"{self.op}{' ' + self.label if self.label else ''}"

    def dtype_of(self, index, dtype):
        return dict(self.operand_dtypes).get(index, dtype)

    def domain_of(self, index):
        return self.domains[min(index, len(self.domains) - 1)]


def unary(op, eager, dtypes=FLOATS, domain="any", ulps=4, magnitude=None, **attrs):
    label = " ".join(map(str, attrs.values()))
    return Case(op, eager, dtypes, domains=(domain,), attrs=attrs, ulps=ulps, label=label, magnitude=magnitude)


UNARY = (
    unary("neg", torch.neg, NUMBERS),
    unary("abs", torch.abs, NUMBERS),
    unary("sign", torch.sign, ALL, keep_nan=False),
    unary("sqrt", torch.sqrt, ALL),
    unary("rsqrt", torch.rsqrt, ALL, "positive"),
    unary("reciprocal", torch.reciprocal, ALL, "positive"),
    unary("square", torch.square, ALL),
    unary("exp", torch.exp, ALL, "unit"),
    unary("exp2", torch.exp2, FLOATS, "unit"),
    unary("expm1", torch.expm1, FLOATS, "unit"),
    unary("log", torch.log, ALL, "positive"),
    unary("log2", torch.log2, FLOATS, "positive"),
    unary("log10", torch.log10, FLOATS, "positive"),
    unary("log1p", torch.log1p, FLOATS, "positive"),
    unary("sin", torch.sin, ALL),
    unary("cos", torch.cos, FLOATS),
    unary("tan", torch.tan, FLOATS, "unit"),
    unary("tanh", torch.tanh, ALL),
    unary("erf", torch.erf, ALL),
    unary("sigmoid", torch.sigmoid, ALL),
    unary("relu", torch.relu, NUMBERS),
    unary("relu6", F.relu6, NUMBERS),
    unary("silu", F.silu),
    # 1 + erf and 1 + tanh cancel for negative x.
    unary("gelu", F.gelu, approximate="none", ulps=8, magnitude=torch.abs),
    unary("gelu", lambda x: F.gelu(x, approximate="tanh"), approximate="tanh", ulps=8, magnitude=torch.abs),
    unary("softplus", F.softplus),
    unary("elu", F.elu),
    unary("leaky_relu", F.leaky_relu),
    unary("hardswish", F.hardswish),
    unary("hardsigmoid", F.hardsigmoid),
    unary("hardtanh", F.hardtanh, FLOATS),
    unary("floor", torch.floor, NUMBERS),
    unary("ceil", torch.ceil, NUMBERS),
    unary("round", torch.round, NUMBERS),
    unary("trunc", torch.trunc, NUMBERS),
    unary("isnan", torch.isnan, ALL),
    unary("isinf", torch.isinf, ALL),
    unary("isfinite", torch.isfinite, ALL),
    unary("logical_not", torch.logical_not, ALL),
    unary("bitwise_not", torch.bitwise_not, BITS),
    unary("acos", torch.acos, (*FLOATS, torch.bool), "unit"),
    unary("asin", torch.asin, (*FLOATS, torch.bool), "unit"),
    unary("atan", torch.atan, ALL),
    unary("acosh", torch.acosh, ALL),
    unary("asinh", torch.asinh, ALL),
    unary("atanh", torch.atanh, FLOATS, "unit", ulps=8),
    unary("cosh", torch.cosh, FLOATS, ulps=8),
    unary("sinh", torch.sinh, FLOATS, ulps=8),
    unary("erfc", torch.erfc, NUMBERS, magnitude=torch.ones_like),
    unary("erfinv", torch.erfinv, FLOATS, "unit", ulps=32),
    unary("lgamma", torch.lgamma, NUMBERS, ulps=8, magnitude=lambda x: 16 + x),
    unary("digamma", torch.digamma, FLOATS, "positive", ulps=16, magnitude=lambda x: 16 + 1 / x),
    unary("i0", torch.i0, FLOATS, ulps=16),
)


def pairs(n):
    """Equal shapes, and every way a row, a column and a single element broadcast."""
    return [((n, 5), (n, 5)), ((3, n), (3, n)), ((3, n), (1, n)), ((n, 1), (n, 5)), ((1, 1), (3, n)), ((n, 1), (1, 7))]


def binary(op, eager=None, dtypes=NUMBERS, domains=("any",), ulps=4):
    return Case(op, eager or getattr(torch, op), dtypes, pairs, domains, ulps=ulps)


BINARY = (
    binary("add", dtypes=ALL),
    binary("sub"),
    binary("mul", dtypes=ALL),
    binary("div", dtypes=ALL, domains=("any", "positive")),
    binary("floor_divide", dtypes=(torch.float32, torch.float64, *INTS), domains=("any", "positive")),
    binary("remainder", dtypes=(torch.float32, torch.float64, *INTS), domains=("any", "positive")),
    binary("fmod", dtypes=(torch.float32, torch.float64, *INTS), domains=("any", "positive")),
    binary("pow", dtypes=FLOATS, domains=("positive", "unit")),
    Case("pow", torch.pow, INTS, pairs, ("any", "small"), label="of integers"),
    binary("maximum", dtypes=ALL),
    binary("minimum", dtypes=ALL),
    binary("fmax", dtypes=FLOATS),
    binary("fmin", dtypes=FLOATS),
    binary("atan2", dtypes=(torch.float32, torch.float64)),
    binary("copysign", dtypes=ALL),
    binary("hypot", dtypes=FLOATS),
    binary("gcd", dtypes=INTS),
    binary("lcm", dtypes=INTS),
    binary("igamma", dtypes=(torch.float32, torch.float64), domains=("positive",), ulps=32),
    binary("igammac", dtypes=(torch.float32, torch.float64), domains=("positive",), ulps=128),  # 1 less the other, up to y = x + 1
    *(
        binary(op, dtypes=ALL)
        for op in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
    ),
    *(binary(op, dtypes=BITS) for op in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    binary("shift_left", torch.bitwise_left_shift, INTS, ("any", "small")),
    binary("shift_right", torch.bitwise_right_shift, INTS, ("any", "small")),
)

TERNARY = (
    Case(
        "where",
        torch.where,
        ALL,
        lambda n: [((n, 5), (n, 5), (n, 5)), ((3, 1), (3, n), (1, n)), ((1, n), (3, 1), (3, n))],
        operand_dtypes=((0, torch.bool),),
    ),
    Case("lerp", torch.lerp, (torch.float32, torch.float64), lambda n: [((n, 5),) * 3, ((3, n), (1, n), (3, 1))]),
    Case(
        "addcmul",
        torch.addcmul,
        (torch.float32, torch.float64, torch.int64),
        lambda n: [((n, 5),) * 3, ((3, n), (1, n), (3, 1))],
    ),
    Case("clamp", torch.clamp, (*FLOATS, torch.int64, torch.int8), lambda n: [((n, 5),) * 3, ((3, n), (1, n), (3, 1))]),
)


def boxes(n):
    return [((n, 3, 5),), ((2, n, 5),), ((2, 3, n),)]


def reduction(op, eager, dtypes, domain="any", ulps=8, every_axis=True, empty=True, magnitude=None):
    """A case for each set of axes, with and without keepdim; `empty` False: the size 0 has no result and is
    left out."""
    for axes, keepdim in (([-1], False), ([1], True), ([0, 2], False), ([0, 1, 2], False), ([0], False)):
        if len(axes) > 1 and not every_axis:
            continue

        def of(x, axes=tuple(axes), keepdim=keepdim):
            return eager(x, axes, keepdim)

        def shapes(n):
            return [s for s in boxes(n) if empty or 0 not in s[0]]

        label = f"{axes}{' keepdim' if keepdim else ''}"
        attrs = {"axes": axes, "keepdim": keepdim}
        scale = of if magnitude == "sum" else magnitude
        yield Case(op, of, dtypes, shapes, (domain,), attrs, ulps, label, magnitude=scale)


def one_by_one(function):
    """Eager functions that take one axis, over several: the last first, so that numbers stay right."""

    def of(x, axes, keepdim):
        for axis in sorted((a % x.dim() for a in axes), reverse=True):
            x = function(x, axis, keepdim)
        return x

    return of


REDUCTIONS = (
    *reduction("reduce_sum", lambda x, a, k: torch.sum(x, a, keepdim=k), ALL, magnitude="sum"),
    *reduction("reduce_mean", lambda x, a, k: torch.mean(x, a, keepdim=k), FLOATS, magnitude="sum"),
    *reduction("reduce_max", lambda x, a, k: torch.amax(x, a, keepdim=k), ALL, empty=False),
    *reduction("reduce_min", lambda x, a, k: torch.amin(x, a, keepdim=k), ALL, empty=False),
    *reduction(
        "reduce_prod",
        one_by_one(lambda x, a, k: torch.prod(x, a, keepdim=k)),
        (torch.float32, torch.float64, torch.int64),
        "unit",
        32,
    ),
    *reduction("reduce_any", lambda x, a, k: torch.any(x, a, keepdim=k), (torch.bool, torch.float32, torch.int8)),
    *reduction("reduce_all", lambda x, a, k: torch.all(x, a, keepdim=k), (torch.bool, torch.float32, torch.int8)),
    *reduction("var", lambda x, a, k: torch.var(x, a, keepdim=k), FLOATS, ulps=16, magnitude=lambda x: 1e-5),
    *reduction("std", lambda x, a, k: torch.std(x, a, keepdim=k), FLOATS, ulps=16, magnitude=lambda x: 8.0),
    *reduction("logsumexp", lambda x, a, k: torch.logsumexp(x, a, keepdim=k), FLOATS, empty=False),
    *reduction("argmax", lambda x, a, k: torch.argmax(x, a[0], keepdim=k), NUMBERS, every_axis=False, empty=False),
    *reduction("argmin", lambda x, a, k: torch.argmin(x, a[0], keepdim=k), NUMBERS, every_axis=False, empty=False),
)


def cubes(n):
    return [((n, 3, 6),), ((2, n, 6),), ((2, 3, n),)]


MOVEMENT = (
    Case("permute", lambda x: x.permute(2, 0, 1), ALL, cubes, attrs={"axes": [2, 0, 1]}),
    Case(
        "reshape",
        lambda x: x.reshape(x.shape[0] * x.shape[1], x.shape[2]),
        (torch.float32, torch.int8),
        lambda n: [((n, 3, 6),), ((2, n, 6),)],
        attrs={"shape": [-1, 6]},
    ),
    Case(
        "expand",
        lambda x: x.expand(4, *x.shape),
        (torch.float32, torch.int64),
        lambda n: [((n, 1),), ((1, n),)],
        attrs={"shape": [4, -1, -1]},
    ),
    Case(
        "slice",
        lambda x: x[:, 1:5:2],
        ALL,
        lambda n: [((n, 6),), ((3, n),)],
        attrs={"axis": 1, "start": 1, "stop": 5, "step": 2},
    ),
    Case(
        "slice",
        lambda x: x[-3:],
        (torch.float32,),
        lambda n: [((n, 6),), ((3, n),)],
        attrs={"axis": 0, "start": -3, "stop": None, "step": 1},
        label="from the end",
    ),
    Case(
        "concat",
        lambda *x: torch.cat(x, 1),
        ALL,
        lambda n: [((n, 3), (n, 5), (n, 1)), ((2, n), (2, 3), (2, n))],
        attrs={"axis": 1},
        as_list=True,
    ),
    Case(
        "stack",
        lambda *x: torch.stack(x, 1),
        (torch.float32, torch.int64, torch.bool),
        lambda n: [((n, 3),) * 2, ((2, n),) * 2],
        attrs={"axis": 1},
        as_list=True,
    ),
    Case(
        "split",
        lambda x: torch.split(x, [2, 4], 1),
        (torch.float32, torch.int8),
        lambda n: [((n, 6),)],
        attrs={"sizes": [2, 4], "axis": 1},
    ),
    Case(
        "pad",
        lambda x: F.pad(x, (1, 2, 0, 3), value=7.0),
        (torch.float32, torch.float64, torch.int64),
        lambda n: [((n, 3),), ((2, n),)],
        attrs={"before": [0, 1], "after": [3, 2], "value": 7.0},
    ),
)


def thin(n):
    """Pairs of shapes with an axis of size 1 in the middle."""
    return [((n, 1, 6),), ((2, 1, n),)]


MOVEMENT += (
    Case(
        "view",
        lambda x: x.reshape(-1, 6),
        (torch.float32,),
        lambda n: [((n, 6),), ((2 * n, 6),)],
        attrs={"shape": [-1, 6]},
    ),
    Case(
        "flatten", lambda x: x.flatten(0, 1), (torch.float32, torch.int8), cubes, attrs={"start_axis": 0, "end_axis": 1}
    ),
    Case("contiguous", torch.Tensor.contiguous, ALL, cubes),
    Case("clone", torch.clone, (torch.float32, torch.bool), cubes),
    Case("transpose", lambda x: x.transpose(0, 2), ALL, cubes, attrs={"a": 0, "b": 2}),
    Case("squeeze", lambda x: x.squeeze(1), (torch.float32, torch.int8), thin, attrs={"axes": [1]}),
    Case("unsqueeze", lambda x: x.unsqueeze(1), (torch.float32, torch.int8), cubes, attrs={"axis": 1}),
    Case(
        "select",
        lambda x: x[:, -2],
        (torch.float32, torch.int64),
        lambda n: [((n, 3, 6),), ((2, 3, n),)],
        attrs={"axis": 1, "index": -2},
    ),
    Case("diagonal", lambda x: x.diagonal(1, 2, 0), ALL, cubes, attrs={"offset": 1, "a": 2, "b": 0}),
    Case("diagonal", lambda x: x.diagonal(-2), (torch.float32,), cubes, attrs={"offset": -2}, label="below"),
    Case(
        "narrow",
        lambda x: x.narrow(1, 1, 2),
        (torch.float32, torch.int64),
        lambda n: [((n, 3, 6),), ((2, 3, n),)],
        attrs={"axis": 1, "start": 1, "length": 2},
    ),
    Case("flip", lambda x: x.flip(0, 2), (torch.float32, torch.int8), cubes, attrs={"axes": [0, 2]}, strides=False),
    Case(
        "roll",
        lambda x: torch.roll(x, (2, -1), (0, 2)),
        (torch.float32, torch.int8),
        cubes,
        attrs={"shifts": [2, -1], "axes": [0, 2]},
    ),
    Case("repeat", lambda x: x.repeat(2, 1, 3), (torch.float32, torch.int8), cubes, attrs={"counts": [2, 1, 3]}),
)


def products(n):
    return [((n, 7), (7, 5)), ((3, n), (n, 5)), ((3, 7), (7, n)), ((n, n), (n, n))]


def batched(n):
    return [((2, n, 7), (2, 7, 5)), ((2, 3, n), (1, n, 5)), ((1, 3, 7), (4, 7, n)), ((n, 2, 3), (n, 3, 2))]


CONTRACTIONS = (
    Case("matmul", torch.matmul, (*FLOATS, torch.int64), products, ulps=16, strides=False, magnitude=torch.matmul),
    Case(
        "matmul",
        torch.matmul,
        (*FLOATS, torch.int64),
        batched,
        ulps=16,
        strides=False,
        label="batched",
        magnitude=torch.matmul,
    ),
    Case(
        "linear",
        F.linear,
        FLOATS,
        lambda n: [((n, 7), (5, 7), (5,)), ((3, n), (5, n), (5,)), ((3, 7), (n, 7), (n,))],
        ulps=16,
        strides=False,
        magnitude=F.linear,
    ),
    Case(
        "linear",
        F.linear,
        FLOATS,
        lambda n: [((2, n, 7), (5, 7)), ((2, 3, n), (5, n))],
        ulps=16,
        strides=False,
        label="without bias",
        magnitude=F.linear,
    ),
)

CONTRACTIONS += (
    Case("batch_matmul", torch.matmul, FLOATS, batched, ulps=16, strides=False, magnitude=torch.matmul),
    Case(
        "addmm",
        lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2.0),
        (torch.float32, torch.float64),
        lambda n: [((5,), (n, 7), (7, 5)), ((5,), (3, n), (n, 5))],
        attrs={"beta": 0.5, "alpha": 2.0},
        ulps=16,
        magnitude=lambda c, x, y: torch.addmm(c, x, y),
        strides=False,
    ),
    Case("outer", torch.outer, (torch.float32, torch.int64), lambda n: [((n,), (5,)), ((3,), (n,))], strides=False),
)


def rows(n):
    return [((3, n),), ((n, 17),)]


NORMALISATIONS = (
    Case("softmax", lambda x: F.softmax(x, -1), FLOATS, rows, attrs={"axis": -1}, ulps=8, strides=False),
    Case(
        "softmax",
        lambda x: F.softmax(x, 0),
        FLOATS,
        rows,
        attrs={"axis": 0},
        ulps=8,
        strides=False,
        label="over columns",
    ),
    Case("log_softmax", lambda x: F.log_softmax(x, -1), FLOATS, rows, attrs={"axis": -1}, ulps=8, strides=False),
    Case(
        "layer_norm",
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        FLOATS,
        lambda n: [((3, n), (n,), (n,)), ((n, 17), (17,), (17,))],
        attrs={"eps": 1e-5},
        ulps=16,
        strides=False,
    ),
    Case(
        "layer_norm",
        lambda x: F.layer_norm(x, x.shape[-1:], eps=1e-5),
        FLOATS,
        rows,
        attrs={"eps": 1e-5},
        ulps=16,
        strides=False,
        label="plain",
    ),
    Case(
        "rms_norm",
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
        FLOATS,
        lambda n: [((3, n), (n,)), ((n, 17), (17,))],
        attrs={"eps": 1e-6},
        ulps=16,
        strides=False,
    ),
)

NORMALISATIONS += (
    Case(
        "batch_norm",
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, eps=1e-5),
        (torch.float32, torch.float64),
        lambda n: [((n, 3, 5), *((3,),) * 4), ((2, 3, n), *((3,),) * 4)],
        ("any", "any", "positive", "any", "any"),
        {"eps": 1e-5},
        ulps=16,
        strides=False,
    ),
    Case(
        "group_norm",
        lambda x, w, b: F.group_norm(x, 2, w, b, 1e-5),
        (torch.float32, torch.float64),
        lambda n: [s for s in [((n, 4, 5), (4,), (4,)), ((2, 4, n), (4,), (4,))] if n > 0],
        attrs={"groups": 2, "eps": 1e-5},
        ulps=16,
        strides=False,
    ),
    Case("normalize", F.normalize, FLOATS, rows, attrs={"axis": 1, "eps": 1e-12}, ulps=16, strides=False),
)


def heads(n):
    """(q, k, v) of [batch, heads, length, head size]: lengths alike, different, and a changing head size."""
    return [((2, 3, n, 8),) * 3, ((2, 3, 5, 8), (2, 3, n, 8), (2, 3, n, 8)), ((1, 2, 4, n), (1, 2, 6, n), (1, 2, 6, 8))]


def no_empty_keys(shapes):
    """Leaves out attention over no keys and over heads of size 0, on which eager's own kernels do not agree."""
    return lambda n: [s for s in shapes(n) if n > 0]


ATTENTION = (
    Case("sdpa", F.scaled_dot_product_attention, FLOATS, no_empty_keys(heads), ulps=64, strides=False),
    Case(
        "sdpa",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        FLOATS,
        no_empty_keys(lambda n: [((2, 3, n, 8),) * 3]),
        attrs={"is_causal": True},
        ulps=64,
        strides=False,
        label="causal",
    ),
    Case(
        "sdpa",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
        (torch.float32,),
        no_empty_keys(heads),
        attrs={"scale": 0.3},
        ulps=64,
        strides=False,
        label="scaled",
    ),
    Case(
        "sdpa",
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        (torch.float32, torch.bfloat16),
        no_empty_keys(lambda n: [(*((2, 3, n, 8),) * 3, (2, 1, n, n))]),
        ulps=64,
        strides=False,
        label="additive mask",
    ),
)

INDEXING = (
    Case("tril", lambda x: x.tril(1), (torch.float32, torch.int64, torch.bool), cubes, attrs={"diagonal": 1}),
    Case("triu", lambda x: x.triu(-1), (torch.float32, torch.int64, torch.bool), cubes, attrs={"diagonal": -1}),
    Case(
        "masked_fill",
        lambda x, m, v: x.masked_fill(m, v),
        (*FLOATS, torch.int64),
        lambda n: [((n, 5), (n, 5), ()), ((3, n), (1, n), ())],
        operand_dtypes=((1, torch.bool),),
    ),
    Case(
        "full_like", lambda x, v: torch.full_like(x, v.item()), (torch.float32, torch.int64), lambda n: [((n, 5), ())]
    ),
    Case("zeros_like", torch.zeros_like, ALL),
    Case("ones_like", torch.ones_like, ALL),
)

CASES = (*INDEXING, *UNARY, *BINARY, *TERNARY, *REDUCTIONS, *MOVEMENT, *CONTRACTIONS, *NORMALISATIONS, *ATTENTION)

# Ops that other tests meet.
ELSEWHERE = {
    *("frexp", "logcumsumexp"),  # test_torch_calls.py
    *("cast", "gather", "take", "index_select", "embedding", "embedding_bag", "embedding_bag_offsets"),
    *("full", "zeros", "ones", "arange", "eye", "assign", "fill_"),
    *("cumsum", "cumprod", "cummax", "cummin", "sort", "argsort", "topk", "nonzero", "mask_select"),  # test_selection.py
    *("scatter", "index_put", "searchsorted", "bincount", "unique", "repeat_index", "segment_reduce", "nms"),  # test_placement.py
}
