"""Random whole programs: written by a seed, run by torch eager, and written again through the Builder.

A program is data (Block of Steps), so that the two readers share nothing but the description. Every value of the eager run
is a pair: what torch computes, and the same in float64. `exact` values are those whose bits every correct engine must
reproduce (IEEE arithmetic, integers, movement); only they may meet a discontinuous op, so that a last-place difference
cannot become a different program.
"""

import dataclasses
import math
import random

import numpy as np
import torch

from oracle import name_of

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int8, torch.uint8)

CONSTANT_DIMS = (1, 3, 4)


class TooInexact(Exception):
    """A discontinuous op met a value that is only known up to rounding: this run proves nothing."""


@dataclasses.dataclass
class Step:
    kind: str  # op | if | while | call | item | scalar | pick | grow | foreign
    name: str = ""
    operands: tuple = ()  # places in scope, or ("const", scalar)
    attrs: dict = dataclasses.field(default_factory=dict)  # values may hold dim expressions, see _dim
    blocks: tuple = ()

    def __repr__(self):
        inside = "".join(f"\n    {line}" for block in self.blocks for line in ("{", *repr(block).splitlines(), "}"))
        return f"{self.kind} {self.name} {list(self.operands)} {self.attrs or ''}{inside}"


@dataclasses.dataclass
class Block:
    steps: list
    results: list  # places

    def __repr__(self):
        return "\n".join([*map(repr, self.steps), f"-> {self.results}"])


@dataclasses.dataclass
class Input:
    name: str
    dtype: object  # a torch dtype, or "int", "float"
    dims: tuple = ()  # int or symbol
    domain: str = "any"


@dataclasses.dataclass
class Program:
    seed: int
    inputs: list
    weights: list  # tensors
    functions: list  # (parameters, Block)
    body: Block
    zero: bool  # sizes may be 0
    writes: bool = False

    def __repr__(self):
        lines = [f"seed {self.seed}"]
        lines += [f"%{i} = input {x.name} {x.dtype}{list(x.dims)}" for i, x in enumerate(self.inputs)]
        base = len(self.inputs)
        lines += [f"%{base + i} = weight {tuple(w.shape)} {w.dtype}" for i, w in enumerate(self.weights)]
        for i, (count, block) in enumerate(self.functions):
            lines += [f"function {i} ({count} arguments)", *(f"    {line}" for line in repr(block).splitlines()), "end"]
        return "\n".join([*lines, repr(self.body)])


# ---------------------------------------------------------------------------------------------------- eager


class Pair:
    """A tensor of the eager run, the same computed in float64, and whether its bits are certain.

    `product`: a multiplication made it, which an engine may contract with an addition that follows.
    """

    __slots__ = ("e", "exact_flag", "product", "t")

    def __init__(self, e, t, exact, product=False):
        self.e, self.t, self.exact_flag, self.product = e, t, exact, product

    @property
    def exact(self):
        return self.exact_flag[0]


def _double_like(e):
    if not e.is_floating_point():
        return e
    if any(n > 1 and not stride for n, stride in zip(e.size(), e.stride())):
        return e.double()
    t = torch.empty_strided(e.size(), e.stride(), dtype=torch.float64)
    return t.copy_(e.double())


def _storage(t):
    return t.untyped_storage().data_ptr() if t.numel() else None


def _axes(axes):
    return None if axes is None else tuple(axes)


def _reduce(function, x, axes, keepdim, **more):
    if axes is None:
        axes = tuple(range(x.dim()))
    if x.dim() == 0:
        return function(x, **more)
    return function(x, dim=axes, keepdim=keepdim, **more)


def _prod(x, axes, keepdim):
    if axes is None:
        axes = tuple(range(x.dim()))
    if not x.dim():
        return x.prod()
    if x.dtype in (torch.int8, torch.uint8, torch.int32, torch.bool):
        x = x.long()
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = x.prod(dim=axis, keepdim=keepdim)
    return x


def _arg(function, x, axes, keepdim):
    if axes is None:
        flat = x.reshape(-1)
        out = function(flat, dim=0)
        return out.reshape((1,) * x.dim()) if keepdim else out
    return function(x, dim=axes[0], keepdim=keepdim)


def _slice(x, axis, start, stop, step):
    return x[(slice(None),) * (axis % x.dim()) + (slice(start, stop, step),)]


def _pad(x, before, after, value):
    flat = [n for pair in zip(reversed(before), reversed(after)) for n in pair]
    return torch.nn.functional.pad(x, flat, value=value)


def _mean(x, axes, keepdim):
    return _reduce(torch.mean, x, axes, keepdim)


def _where(c, y, z):
    return torch.where(c, y, z)


F = torch.nn.functional
EAGER = {
    "reduce_sum": lambda x, axes, keepdim: _reduce(torch.sum, x, axes, keepdim),
    "reduce_mean": _mean,
    "reduce_max": lambda x, axes, keepdim: _reduce(torch.amax, x, axes, keepdim),
    "reduce_min": lambda x, axes, keepdim: _reduce(torch.amin, x, axes, keepdim),
    "reduce_prod": _prod,
    "reduce_any": lambda x, axes, keepdim: _reduce(torch.any, x, axes, keepdim),
    "reduce_all": lambda x, axes, keepdim: _reduce(torch.all, x, axes, keepdim),
    "argmax": lambda x, axes, keepdim: _arg(torch.argmax, x, axes, keepdim),
    "argmin": lambda x, axes, keepdim: _arg(torch.argmin, x, axes, keepdim),
    "var": lambda x, axes, keepdim, correction: _reduce(torch.var, x, axes, keepdim, correction=correction),
    "logsumexp": lambda x, axes, keepdim: _reduce(torch.logsumexp, x, axes, keepdim),
    "reshape": lambda x, shape: x.reshape(shape),
    "flatten": lambda x, start_axis, end_axis: x.flatten(start_axis, end_axis),
    "contiguous": lambda x: x.contiguous(),
    "permute": lambda x, axes: x.permute(axes),
    "transpose": lambda x, a, b: x.transpose(a, b),
    "expand": lambda x, shape: x.expand(shape),
    "unsqueeze": lambda x, axis: x.unsqueeze(axis),
    "squeeze": lambda x, axes: x.squeeze(tuple(axes)),
    "slice": _slice,
    "select": lambda x, axis, index: x.select(axis, index),
    "narrow": lambda x, axis, start, length: x.narrow(axis, start, length),
    "split": lambda x, sizes, axis: list(x.split(list(sizes), axis)),
    "clone": lambda x: x.clone(),
    "concat": lambda *parts, axis: torch.cat(parts, axis),
    "stack": lambda *parts, axis: torch.stack(parts, axis),
    "pad": _pad,
    "flip": lambda x, axes: x.flip(axes),
    "roll": lambda x, shifts, axes: x.roll(shifts, axes),
    "repeat": lambda x, counts: x.repeat(counts),
    "matmul": torch.matmul,
    "linear": lambda x, w, b=None: F.linear(x, w, b),
    "softmax": lambda x, axis: torch.softmax(x, axis),
    "log_softmax": lambda x, axis: torch.log_softmax(x, axis),
    "layer_norm": lambda x, eps: F.layer_norm(x, x.shape[-1:], eps=eps),
    "rms_norm": lambda x, eps: F.rms_norm(x, x.shape[-1:], eps=eps),
    "gather": lambda x, index, axis: torch.gather(x, axis, index),
    "index_select": lambda x, index, axis: torch.index_select(x, axis, index),
    "embedding": lambda ids, table: table[ids],
    "tril": lambda x, diagonal: x.tril(diagonal),
    "triu": lambda x, diagonal: x.triu(diagonal),
    "where": _where,
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full": lambda value, shape, dtype: torch.full(shape, value, dtype=dtype),
    "arange": lambda stop, start=0, step=1: torch.arange(start, stop, step),
    "assign": lambda x, y: x.copy_(y) if isinstance(y, torch.Tensor) else x.fill_(y),
    "div": torch.div,
    "sign": lambda x, keep_nan: torch.sign(x),
    "clamp": lambda x, lo, hi: torch.clamp(x, lo, hi),
    "lerp": torch.lerp,
    "shift_left": torch.bitwise_left_shift,
}
# Bits are certain when they are for the operands.
EXACT = {
    *("neg abs relu square clone maximum minimum add sub mul where masked_fill reduce_max reduce_min reduce_any reduce_all".split()),
    *("argmax argmin reshape flatten contiguous permute transpose expand unsqueeze squeeze slice select narrow split".split()),
    *("concat stack pad flip roll repeat gather index_select embedding tril triu zeros_like ones_like full arange assign".split()),
    *("eq ne lt le gt ge logical_not logical_and logical_or bitwise_and bitwise_or bitwise_xor bitwise_not sign floor".split()),
    *("cast clamp isnan neg_ abs_ relu_ add_ sub_ mul_ fill_ masked_fill_ square_ shift_left floor_divide remainder".split()),
}
DISCONTINUOUS = {
    *("argmax argmin eq ne lt le gt ge sign floor isnan reduce_any reduce_all logical_not logical_and logical_or".split()),
    *("floor_divide remainder".split()),
}


# What the host does, by the op that says the same to eager, and the constants it adds to the operand.
HOOKS = {"clone": (), "abs": (), "neg_": (), "fill_": (("const", 1),)}

PRODUCTS = {"mul", "mul_", "square", "square_"}
ROUNDED = {"add", "add_", "sub", "sub_", "mul", "mul_", "maximum", "minimum", "clamp", "where"}
CONTRACTED = {"add", "add_", "sub", "sub_"}


def _torch_function(name):
    if name in EAGER:
        return EAGER[name]
    if name.endswith("_"):
        return lambda x, *rest: getattr(x, name)(*rest)
    if hasattr(torch, name):
        return getattr(torch, name)
    return getattr(F, name)


class Eager:
    """Runs a program on pairs."""

    def __init__(self, program):
        self.program = program
        self.heard = []  # (op, value) of every foreign call, in order

    def dim(self, d, scope):
        if not isinstance(d, tuple):
            return d
        kind, *rest = d
        if kind == "size":
            return scope[rest[0]].e.shape[rest[1]]
        if kind == "value":
            return scope[rest[0]]
        a, b = (self.dim(x, scope) for x in rest)
        return {"mul": a * b, "add": a + b, "sub": a - b, "div": a // b if b else 0, "min": min(a, b), "max": max(a, b)}[kind]

    def attrs(self, step, scope):
        out = {}
        for key, value in step.attrs.items():
            out[key] = [self.dim(d, scope) for d in value] if isinstance(value, list) else self.dim(value, scope)
        return out

    def step(self, step, scope):
        if step.kind == "op":
            scope.extend(self.op(step, scope))
        elif step.kind == "item":
            pair = scope[step.operands[0]]
            if not pair.exact and pair.e.is_floating_point():
                raise TooInexact
            scope.append(pair.e.item())
        elif step.kind == "scalar":
            a, b = (scope[o] if isinstance(o, int) else o[1] for o in step.operands)
            scope.append({"add": lambda: a + b, "mul": lambda: a * b, "sub": lambda: a - b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[step.name]())
        elif step.kind == "if":
            block = step.blocks[0] if self.condition(step, scope) else step.blocks[1]
            scope.extend(self.block(block, list(scope)))
        elif step.kind == "while":
            carried = [scope[o] for o in step.operands]
            trips = self.dim(step.attrs["trips"], scope)
            for _ in range(trips):
                carried = self.block(step.blocks[0], [*scope, *carried])
            scope.extend(carried)
        elif step.kind == "call":
            _, block = self.program.functions[step.attrs["function"]]
            scope.extend(self.block(block, [scope[o] for o in step.operands]))
        elif step.kind == "pick":  # a list, one element of which is taken
            scope.append(scope[step.operands[step.attrs["index"]]])
        elif step.kind == "grow":  # a list of one element, to which a loop appends
            grown = [scope[step.operands[0]]]
            for i in range(self.dim(step.attrs["trips"], scope)):
                read = i if step.attrs["read"] == "trip" else step.attrs["read"]
                grown.append(self.block(step.blocks[0], [*scope, grown[read], len(grown)])[0])
            scope.extend([len(grown), grown[step.attrs["take"]]])
        elif step.kind == "foreign":
            pair = scope[step.operands[0]]
            self.heard.append((step.name, Pair(pair.e.clone(), pair.t.clone(), [pair.exact])))
            scope.extend(self.op(Step("op", step.name, (*step.operands, *HOOKS[step.name])), scope))
        else:
            raise AssertionError(step.kind)

    def condition(self, step, scope):
        if step.name == "value":
            pair = scope[step.operands[0]]
            if not pair.exact and pair.e.is_floating_point():
                raise TooInexact
            return bool(pair.e.item())
        a, b = (self.dim(d, scope) for d in step.attrs["sides"])
        return {"lt": a < b, "eq": a == b, "ge": a >= b}[step.name]

    def op(self, step, scope):
        name = step.name
        attrs = self.attrs(step, scope)
        values = [scope[o] if isinstance(o, int) else o[1] for o in step.operands]
        pairs = [v for v in values if isinstance(v, Pair)]
        exact_in = all(p.exact for p in pairs)
        if name in DISCONTINUOUS and not all(p.exact or not p.e.is_floating_point() for p in pairs):
            raise TooInexact
        if name == "layer_norm" and pairs[0].t.numel():
            spread = pairs[0].t.double().var(-1, correction=0)
            if bool((spread < 1e-6 * pairs[0].t.double().square().amax(-1)).any()):  # one rounding becomes all there is
                raise TooInexact
        if name == "cast":
            e = pairs[0].e.to(attrs["dtype"], copy=True)
            if pairs[0].e.is_floating_point() and not attrs["dtype"].is_floating_point:
                if not exact_in or not pairs[0].e.isfinite().all():  # what an integer is made of NaN is nowhere said
                    raise TooInexact
                e = pairs[0].e.to(torch.float64).nan_to_num(0, 100, 0).clamp(0, 100).to(attrs["dtype"])
            exact = exact_in or not pairs[0].e.is_floating_point()
            same_dtype = e.dtype == pairs[0].e.dtype
            return [Pair(e, _double_like(e) if exact or not e.is_floating_point() else pairs[0].t.clone(), [exact], same_dtype and pairs[0].product)]
        function = _torch_function(name)
        result = function(*[v.e if isinstance(v, Pair) else v for v in values], **attrs)
        product = any(p.product and p.e.is_floating_point() for p in pairs)
        exact = name in EXACT and exact_in and not (product and name in CONTRACTED)
        product = exact and (product or name in PRODUCTS)
        if result.dtype in (torch.float16, torch.bfloat16) if isinstance(result, torch.Tensor) else False:
            # Whether the other operand of a half is rounded to half first depends on where torch finds it.
            exact = exact and (name not in ROUNDED or all(isinstance(v, Pair) and v.e.dtype == result.dtype and v.e.dim() for v in values))
        results = result if isinstance(result, list) else [result]
        out = []
        write = name.endswith("_") or name == "assign"
        if write:
            target = pairs[0]
            if exact and target.exact:
                if target.e.is_floating_point():
                    target.t.copy_(target.e.double())
            else:
                function(*[v.t if isinstance(v, Pair) else v for v in values], **attrs)
                if target.e.is_floating_point():
                    target.exact_flag[0] = False
            target.product = product
            return [target]
        view_of = next((p for p in pairs if _storage(p.e) is not None and _storage(results[0]) == _storage(p.e)), None)
        if view_of is None and not exact:
            truth = function(*[v.t if isinstance(v, Pair) else v for v in values], **attrs)
        elif view_of is not None:
            truth = function(*[v.t if isinstance(v, Pair) else v for v in values], **attrs)
        else:
            truth = None
        for i, e in enumerate(results):
            if truth is None or not e.is_floating_point():
                t = _double_like(e)
                if view_of is not None:
                    t = (truth if isinstance(truth, list) else [truth])[i]
                    if not e.is_floating_point():
                        t = e
            else:
                t = (truth if isinstance(truth, list) else [truth])[i]
            flag = view_of.exact_flag if view_of is not None else [exact or not e.is_floating_point()]
            out.append(Pair(e, t, flag, product))
        return out

    def block(self, block, scope):
        for step in block.steps:
            self.step(step, scope)
        return [scope[r] for r in block.results]

    def run(self, inputs):
        scope = [Pair(x, None, [True]) if isinstance(x, torch.Tensor) else x for x in inputs]
        # Inputs that share memory share their float64 memory and their certainty.
        _share_truth(scope)
        scope += [Pair(w, w.double() if w.is_floating_point() else w, [True]) for w in self.program.weights]
        return scope[: len(inputs)], self.block(self.program.body, scope)


def _share_truth(scope):
    bases = {}
    for pair in scope:
        if not isinstance(pair, Pair):
            continue
        e = pair.e
        if not e.is_floating_point():
            pair.t = e
            continue
        storage = e.untyped_storage()
        key = storage.data_ptr()
        if key not in bases or not storage.nbytes():
            whole = torch.empty(0, dtype=e.dtype).set_(storage)
            bases[key] = (whole.to(torch.float64, copy=True), [True])
        base, flag = bases[key]
        pair.t = torch.as_strided(base, e.size(), e.stride(), e.storage_offset())
        pair.exact_flag = flag


# ---------------------------------------------------------------------------------------------------- Builder


class Writer:
    """Writes a program through the Builder."""

    def __init__(self, flexor, program):
        self.flexor, self.program = flexor, program

    def module(self):
        b = self.flexor.Builder()
        weights = [b.weight(f"w{i}", w) for i, w in enumerate(self.program.weights)]
        self.b = b
        for i, (count, block) in enumerate(self.program.functions):
            f = b.function(f"helper{i}")
            scope = [f.input(f"a{k}", "any") for k in range(count)]
            f.output(*self.block(f, block, scope))
        f = b.function("main")
        scope = []
        for x in self.program.inputs:
            if isinstance(x.dtype, str):
                scope.append(f.input(x.name, x.dtype))
            else:
                scope.append(f.input(x.name, name_of(x.dtype), list(x.dims)))
        scope += [f.weight(w) for w in weights]
        f.output(*self.block(f, self.program.body, scope))
        return b.build()

    def dim(self, d, scope):
        if not isinstance(d, tuple):
            return name_of(d) if isinstance(d, torch.dtype) else d
        kind, *rest = d
        if kind == "size":
            return scope[rest[0]].shape[rest[1]] if scope[rest[0]].ndim >= 0 else scope[rest[0]]._native.size(rest[1])
        if kind == "value":
            return scope[rest[0]]
        a, b = (self.dim(x, scope) for x in rest)
        if kind == "mul":
            return a * b
        if kind == "add":
            return a + b
        if kind == "sub":
            return a - b
        if kind == "div":
            return a // b
        symbol = self.flexor.Symbol
        return getattr(symbol, kind)(a, b) if hasattr(symbol, kind) else getattr(self.flexor._flexor, kind)(a, b)

    def attrs(self, step, scope):
        return {
            key: [self.dim(d, scope) for d in value] if isinstance(value, list) else self.dim(value, scope)
            for key, value in step.attrs.items()
        }

    def operands(self, step, scope):
        return [scope[o] if isinstance(o, int) else o[1] for o in step.operands]

    def block(self, f, block, scope):
        for step in block.steps:
            self.step(f, step, scope)
        return [scope[r] for r in block.results]

    def step(self, f, step, scope):
        if step.kind == "op":
            operands, attrs, name = self.operands(step, scope), self.attrs(step, scope), step.name
            if name in ("concat", "stack"):
                operands = [operands]
            result = f.op(name, *operands, **attrs)
            scope.extend(result if isinstance(result, list) else [result])
        elif step.kind == "item":
            scope.append(f.item(scope[step.operands[0]]))
        elif step.kind == "scalar":
            scope.append(f.scalar(step.name, *self.operands(step, scope)))
        elif step.kind == "if":
            if step.name == "value":
                condition = scope[step.operands[0]]
            else:
                condition = f.scalar(step.name, *[self._scalar(f, d, scope) for d in step.attrs["sides"]])
            sides = [lambda block=block: self.block(f, block, list(scope)) for block in step.blocks]
            result = f.if_else(condition, *sides)
            scope.extend(result if isinstance(result, list) else [result])
        elif step.kind == "while":
            trips = self._scalar(f, step.attrs["trips"], scope)
            carried = [scope[o] for o in step.operands]

            def body(i, *values):
                return [f.scalar("add", i, 1), *self.block(f, step.blocks[0], [*scope, *values])]

            result = f.while_loop([0, *carried], lambda i, *values: f.scalar("lt", i, trips), body)
            scope.extend(result[1:])
        elif step.kind == "call":
            _, block = self.program.functions[step.attrs["function"]]
            result = f.call(f"helper{step.attrs['function']}", *self.operands(step, scope), results=len(block.results))
            scope.extend(result if isinstance(result, list) else [result])
        elif step.kind == "pick":
            scope.append(f.get(f.list(*self.operands(step, scope)), step.attrs["index"]))
        elif step.kind == "grow":
            trips = self._scalar(f, step.attrs["trips"], scope)

            def more(i, grown):
                read = f.get(grown, i if step.attrs["read"] == "trip" else step.attrs["read"])
                (value,) = self.block(f, step.blocks[0], [*scope, read, f.length(grown)])
                return [f.scalar("add", i, 1), f.append(grown, value)]

            _, grown = f.while_loop([0, f.list(scope[step.operands[0]])], lambda i, grown: f.scalar("lt", i, trips), more)
            scope.extend([f.length(grown), f.get(grown, step.attrs["take"])])
        elif step.kind == "foreign":
            scope.append(f.call_foreign(step.name, scope[step.operands[0]]))
        else:
            raise AssertionError(step.kind)

    def _scalar(self, f, d, scope):
        value = self.dim(d, scope)
        return value


def bind_hooks(session):
    """Binds the host's side of the foreign calls; returns the list that they write down what they hear in."""
    heard = []

    def bind(name):
        constants = [c for _, c in HOOKS[name]]

        def hook(x):
            host = x if isinstance(x, torch.Tensor) else torch.from_numpy(np.array(x))
            heard.append((name, host.clone()))
            result = _torch_function(name)(host, *constants)
            if isinstance(x, torch.Tensor):
                return result
            if not name.endswith("_"):
                return result.numpy()
            x[...] = result.numpy()
            return x

        session.bind(name, hook)

    for name in HOOKS:
        bind(name)
    return heard


# ---------------------------------------------------------------------------------------------------- inputs

SIZES = (0, 1, 2, 3, 4, 5, 15, 16, 17, 33)


def bindings(program, rng, count):
    """Sizes of the symbols for `count` calls, in an order that tempts a specialiser."""
    first = rng.choice(["one", "zero", "equal", "constant", "sixteen", "any"])
    out = []
    for i in range(count):
        how = first if i == 0 else rng.choice(["any", "any", "equal", "one", "zero", "constant"])
        n = rng.choice(SIZES[1:])
        sizes = {"N": n, "M": rng.choice(SIZES[1:])}
        if how == "one":
            sizes[rng.choice("NM")] = 1
        elif how == "zero":
            sizes[rng.choice("NM")] = 0
        elif how == "equal":
            sizes["M"] = n
        elif how == "constant":
            sizes[rng.choice("NM")] = rng.choice(CONSTANT_DIMS)
        elif how == "sixteen":
            sizes = {"N": 16, "M": 32}
        if i == 1 and first == "sixteen":
            sizes = {"N": 17, "M": 33}
        if not program.zero:
            sizes = {k: max(1, v) for k, v in sizes.items()}
        sizes["B"] = rng.choice([1, sizes["N"]])
        out.append(sizes)
    return out


def _values(shape, dtype, domain, seed):
    g = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_floating_point:
        x = torch.rand(shape, generator=g, dtype=torch.float64) * 4 - 2
        return (x.abs() + 0.25 if domain == "positive" else x).to(dtype)
    if domain == "index":
        return torch.randint(0, 3, shape, generator=g).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -4, 5, shape, generator=g).to(dtype)


def _laid_out(v, layout):
    if not v.dim():
        return v
    if layout == "transposed":
        return v.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "every second":
        host = torch.full((*v.shape[:-1], 2 * v.shape[-1] + 1), 1).to(v.dtype)
        view = host[..., 1::2]
        return view.copy_(v)
    if layout == "wide pitch":
        host = torch.full((*v.shape[:-1], v.shape[-1] + 3), 1).to(v.dtype)
        return host[..., : v.shape[-1]].copy_(v)
    if layout == "offset":
        flat = torch.empty(v.numel() + 1, dtype=v.dtype)
        return flat[1:].view(v.shape).copy_(v)
    if layout == "expanded":
        axis = v.dim() - 1 if v.numel() % 2 else 0
        return v.narrow(axis, 0, 1).expand(v.shape) if v.shape[axis] else v
    return v


LAYOUTS = ("contiguous", "contiguous", "transposed", "every second", "wide pitch", "offset", "expanded")


def _numpy_array(v, layout):
    """The values of a tensor as an array that torch could not hold."""
    a = v.numpy()
    if not a.ndim:
        return a
    if layout == "unaligned":
        host = np.empty(a.nbytes + 1, np.uint8)
        out = np.ndarray(a.shape, a.dtype, host, offset=1)
        out[...] = a
        return out
    if layout == "reversed every second":
        host = np.ones((*a.shape[:-1], 2 * a.shape[-1] + 1), a.dtype)
        out = host[..., ::-2][..., : a.shape[-1]]
        out[...] = a
        return out
    axes = None if layout == "reversed" else 0
    return np.flip(np.ascontiguousarray(np.flip(a, axes)), axes)


NUMPY_LAYOUTS = ("reversed", "reversed rows", "reversed every second", "unaligned")


def as_numpy(args, program, seed):
    """The arguments of one call as NumPy arrays. Where the program writes they keep their strides and aliases, for which
    torch's rules of views then hold; elsewhere they are laid out anew, backwards too."""
    rng = random.Random(seed)
    out = []
    for x in args:
        if not isinstance(x, torch.Tensor):
            out.append(x)
        elif program.writes:
            out.append(x.numpy())
        else:
            out.append(_numpy_array(x, rng.choice(NUMPY_LAYOUTS)))
    return out


def arguments(program, sizes, seed):
    """The arguments of one call; the same for the same seed, aliases included."""
    rng = random.Random(seed)
    special = rng.random() < 0.2
    out = []
    for position, x in enumerate(program.inputs):
        if x.dtype == "int":
            out.append(rng.randrange(0, 4))
            continue
        if x.dtype == "float":
            out.append(rng.choice([0.5, -1.25, 2.0, 3]) * 1.0)
            continue
        shape = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in x.dims)
        twin = next((o for o, y in zip(out, program.inputs) if isinstance(o, torch.Tensor) and o.dtype == x.dtype and o.shape == shape and y.domain == x.domain), None)
        if twin is not None and rng.random() < 0.3:
            if rng.random() < 0.5 and twin.dim() == 1 and twin.numel() > 2 and twin.is_contiguous() and twin.storage_offset() == 0 and twin.untyped_storage().nbytes() == twin.numel() * twin.element_size():
                # Two views of one buffer, half overlapping.
                half = twin.numel() // 2
                host = torch.cat([twin, twin[:half]])
                index = next(i for i, o in enumerate(out) if o is twin)
                out[index] = host[: twin.numel()]
                out.append(host[half : half + twin.numel()])
            else:
                out.append(twin)
            continue
        layout = rng.choice(LAYOUTS)
        v = _values(shape, x.dtype, x.domain, rng.randrange(1 << 30))
        if special and v.is_floating_point() and v.numel() and rng.random() < 0.5:
            # In any lane, for lengths of every remainder.
            v.view(-1)[rng.randrange(v.numel())] = rng.choice([math.nan, math.nan, math.inf, -math.inf, -0.0])
        if program.writes and layout == "expanded":
            layout = "every second"
        out.append(_laid_out(v, layout))
    return out
