"""Writes random whole programs: by a seed, so that each can be written again."""

import copy
import random

import torch

from random_programs import (
    Block,
    Eager,
    FLOATS,
    INTS,
    Input,
    Pair,
    Program,
    Step,
    TooInexact,
    _share_truth,
    _storage,
    _values,
    arguments,
)

PROBES = ({"N": 5, "M": 7, "B": 1}, {"N": 5, "M": 5, "B": 5}, {"N": 3, "M": 4, "B": 3}, {"N": 1, "M": 4, "B": 1}, {"N": 17, "M": 1, "B": 17})
ZERO_PROBES = ({"N": 0, "M": 2, "B": 1}, {"N": 2, "M": 0, "B": 2})
UNARY_EXACT = "neg abs relu square sign floor logical_not clone".split()
UNARY = "tanh sigmoid sin cos erf silu gelu exp log1p sqrt rsqrt".split()
BINARY_EXACT = "add sub mul maximum minimum add sub mul".split()
COMPARE = "eq ne lt le gt ge".split()
LOGIC = "logical_and logical_or".split()
BITS = "bitwise_and bitwise_or bitwise_xor".split()


class Generator:
    def __init__(self, seed, features=None):
        self.rng = random.Random(seed)
        rng = self.rng
        self.seed = seed
        self.features = features
        self.half = rng.random() < 0.3
        self.foreign = rng.random() < 0.25
        zero = rng.random() < 0.5
        floats = FLOATS if self.half else FLOATS[:1] if rng.random() < 0.7 else FLOATS[:2]
        inputs = []
        for i in range(rng.randrange(1, 5)):
            rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
            dims = tuple(rng.choice(["N", "N", "M", "M", "B", 3, 4, 1]) for _ in range(rank))
            dtype = rng.choice([*floats, *floats, *floats, *floats, *INTS, torch.bool, torch.int64])
            if i and rng.random() < 0.35 and isinstance(inputs[-1].dtype, torch.dtype):
                dims, dtype = inputs[-1].dims, inputs[-1].dtype
            inputs.append(Input(f"x{i}", dtype, dims))
        if rng.random() < 0.3:
            inputs.append(Input("ids", torch.int64, (rng.choice(["N", "M", 3]),), "index"))
        if rng.random() < 0.3:
            inputs.append(Input("n", "int"))
        if rng.random() < 0.25:
            inputs.append(Input("s", "float"))
        weights = []
        if rng.random() < 0.4:
            weights.append(_values((3, 4), floats[0], "any", seed))
        self.program = Program(seed, inputs, weights, [], Block([], []), zero, rng.random() < 0.45)
        self.probes = [*PROBES, *(ZERO_PROBES if zero else ())]
        self.eager = Eager(self.program)

    def generate(self):
        rng = self.rng
        self.states = self.fresh_states()
        self.steps = []
        wanted = rng.randrange(3, 14)
        self.grow(wanted, depth=0)
        scope = self.states[0]
        places = [i for i, v in enumerate(scope) if isinstance(v, Pair)]
        weight_places = range(len(self.program.inputs), len(self.program.inputs) + len(self.program.weights))
        places = [p for p in places if p not in weight_places]
        made = [p for p in places if p >= len(self.program.inputs)]
        count = rng.randrange(1, 5)
        results = [rng.choice(made[-6:] if made and rng.random() < 0.8 else places) for _ in range(count)] if places else []
        if not results:
            return None
        self.program.body = Block(self.steps, results)
        return self.program

    def fresh_states(self):
        states = []
        for i, sizes in enumerate(self.probes):
            args = arguments(self.program, sizes, self.seed * 101 + i)
            scope = [Pair(x, None, [True]) if isinstance(x, torch.Tensor) else x for x in args]
            _share_truth(scope)
            scope += [Pair(w, w.double() if w.is_floating_point() else w, [True]) for w in self.program.weights]
            states.append(scope)
        return states

    def try_step(self, step):
        done = []
        for state in self.states:
            before = len(state)
            try:
                self.eager.step(step, state)
                done.append((state, before))
                for value in state[before:]:
                    if isinstance(value, Pair) and value.e.numel() > 20000:
                        raise RuntimeError("too large")
                    if isinstance(value, Pair) and value.e.dtype == torch.int16:
                        raise RuntimeError("a dtype that the engine does not have")
                    if isinstance(value, Pair) and value.e.dim() > 5:
                        raise RuntimeError("too many dims")
            except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, TooInexact):
                if step.name.endswith("_") or step.name == "assign" or step.blocks or step.kind == "call":
                    return None  # memory may have changed
                for s, n in [*done, (state, before)]:
                    del s[n:]
                return False
        shapes = {tuple((v.e.dim(), v.e.dtype) if isinstance(v, Pair) else type(v) for v in s[b:]) for s, b in done}
        if len(shapes) > 1:
            for s, n in done:
                del s[n:]
            return False
        return True

    def grow(self, wanted, depth):
        tries = 0
        while len(self.steps) < wanted and tries < wanted * 12:
            tries += 1
            proposals = self.propose(depth)
            if not proposals:
                continue
            for step in proposals:
                mutating = step.name.endswith("_") or step.name == "assign" or step.blocks or step.kind == "call"
                backup = copy.deepcopy(self.states) if mutating else None
                ok = self.try_step(step)
                if ok is None:
                    self.states = backup
                    ok = False
                if not ok:
                    break
                self.steps.append(step)

    # -------------------------------------------------------------- proposals

    def is_weight(self, pair):
        """Whether the memory is a weight's, which nobody may write."""
        first = len(self.program.inputs)
        weights = self.states[0][first : first + len(self.program.weights)]
        return any(_storage(pair.e) == _storage(w.e) for w in weights)

    def tensors(self, want=lambda p: True):
        return [i for i, v in enumerate(self.states[0]) if isinstance(v, Pair) and want(v)]

    def pick(self, want=lambda p: True):
        places = self.tensors(want)
        if not places:
            return None
        rng = self.rng
        return rng.choice(places[-5:]) if rng.random() < 0.6 else rng.choice(places)

    def propose(self, depth):
        rng = self.rng
        kinds = [("unary", 4), ("binary", 8), ("scalar_binary", 4), ("reduce", 5), ("view", 8), ("copying", 4), ("matmul", 3),
                 ("norm", 2), ("where", 2), ("cast", 3), ("index", 2), ("compare", 2), ("ints", 1), ("pick_list", 1)]
        if self.program.writes:
            kinds += [("write", 9), ("write_view", 5), ("write_moved", 2)]
        if depth < 2:
            kinds += [("branch", 2), ("loop", 2), ("grow", 2)]
        if self.foreign:
            kinds += [("foreign", 4)]
        if depth == 0:
            kinds += [("helper", 1.5), ("item", 1)]
        names, weights = zip(*kinds)
        name = rng.choices(names, weights)[0]
        if self.features and name not in self.features:
            return None
        return getattr(self, f"p_{name}")(depth)

    def v(self, place):
        return self.states[0][place]

    def p_unary(self, depth):
        x = self.pick()
        if x is None:
            return None
        e = self.v(x).e
        if e.is_floating_point():
            name = self.rng.choice(UNARY_EXACT + UNARY)
            if name == "sign":
                return [Step("op", name, (x,), {"keep_nan": False})]
            if name in ("sqrt", "rsqrt", "log1p"):
                at = len(self.states[0])
                return [Step("op", "square", (x,)), Step("op", "add", (at, ("const", 1.0))), Step("op", name, (at + 1,))]
            if name == "exp":
                at = len(self.states[0])
                return [Step("op", "clamp", (x, ("const", -4.0), ("const", 4.0))), Step("op", name, (at,))]
        elif e.dtype == torch.bool:
            name = self.rng.choice(["logical_not", "bitwise_not", "clone"])
        else:
            name = self.rng.choice(["neg", "abs", "square", "bitwise_not", "clone", "relu", "logical_not", "sigmoid", "tanh"])
            if e.dtype == torch.uint8 and name == "neg":
                name = "square"
        return [Step("op", name, (x,))]

    def p_binary(self, depth):
        x, y = self.pick(), self.pick()
        if x is None:
            return None
        bools = sum(self.v(p).e.dtype == torch.bool for p in (x, y))
        name = self.rng.choice(BINARY_EXACT)
        if bools == 2:
            name = self.rng.choice([*LOGIC, *BITS, "mul", "add", "maximum"])
        if name == "sub" and bools:
            name = "add"
        if self.rng.random() < 0.1 and not bools:
            at = len(self.states[0])
            return [Step("op", "square", (y,)), Step("op", "add", (at, ("const", 1))), Step("op", self.rng.choice(["div", "floor_divide", "remainder"]), (x, at + 1))]
        return [Step("op", name, (x, y))]

    def p_scalar_binary(self, depth):
        x = self.pick()
        if x is None:
            return None
        scalars = [i for i, v in enumerate(self.states[0]) if not isinstance(v, Pair) and not isinstance(v, bool)]
        rng = self.rng
        if scalars and rng.random() < 0.6:
            other = rng.choice(scalars)
        else:
            other = ("const", rng.choice([2, 3, 0.5, 1.0, -1.5, 1, 0, 100.0, 0.1]))
        if self.v(x).e.dtype == torch.bool and isinstance(other, tuple) and isinstance(other[1], float) is False:
            name = rng.choice(["add", "mul"])
        else:
            name = rng.choice(["add", "mul", "sub", "maximum" if not isinstance(other, (int, tuple)) else "add"])
        if self.v(x).e.dtype == torch.bool and name == "sub":
            name = "mul"
        operands = (x, other)
        return [Step("op", name, operands)]

    def p_ints(self, depth):
        x = self.pick(lambda p: not p.e.is_floating_point() and p.e.dtype != torch.bool)
        if x is None:
            return None
        return [Step("op", self.rng.choice(BITS), (x, ("const", self.rng.choice([1, 2, 3]))))]

    def axes_of(self, x):
        rank = self.v(x).e.dim()
        rng = self.rng
        if rank == 0 or rng.random() < 0.2:
            return None
        axes = sorted(rng.sample(range(rank), rng.randrange(1, rank + 1)))
        return [a - rank if rng.random() < 0.3 else a for a in axes]

    def p_reduce(self, depth):
        x = self.pick()
        if x is None:
            return None
        rng = self.rng
        e = self.v(x).e
        axes, keepdim = self.axes_of(x), rng.random() < 0.5
        if e.dtype == torch.bool:
            name = rng.choice(["reduce_any", "reduce_all", "reduce_sum"])
        elif e.is_floating_point():
            name = rng.choice("reduce_sum reduce_sum reduce_mean reduce_max reduce_min reduce_any argmax argmin var logsumexp reduce_prod".split())
        else:
            name = rng.choice("reduce_sum reduce_max reduce_min reduce_any argmax argmin".split())
        attrs = {"axes": axes, "keepdim": keepdim}
        if name in ("argmax", "argmin"):
            attrs["axes"] = None if axes is None else axes[:1]
        if name == "var":
            attrs["correction"] = rng.choice([0, 0, 1])
        if e.dim() == 0:
            attrs = {**attrs, "axes": None}
            if keepdim:
                attrs["keepdim"] = False
        if axes is None and name == "logsumexp":
            attrs["axes"] = list(range(e.dim()))
        return [Step("op", name, (x,), attrs)]

    def size(self, x, axis):
        return ("size", x, axis)

    def p_view(self, depth, x=None):
        rng = self.rng
        if x is None:
            x = self.pick(lambda p: p.e.dim() > 0)
        if x is None:
            return None
        rank = self.v(x).e.dim()
        name = rng.choice("reshape reshape flatten permute transpose expand slice slice select select unsqueeze squeeze narrow split contiguous".split())
        a = rng.randrange(rank) if rank else 0
        if name == "reshape":
            how = rng.choice(["flat", "merge", "split", "same", "insert"])
            sizes = [self.size(x, i) for i in range(rank)]
            if how == "flat":
                shape = [-1]
            elif how == "merge" and rank >= 2:
                i = rng.randrange(rank - 1)
                shape = [*sizes[:i], rng.choice([-1, ("mul", sizes[i], sizes[i + 1])]), *sizes[i + 2 :]]
            elif how == "split" and self.v(x).e.shape[a] % 2 == 0:
                shape = [*sizes[:a], 2, rng.choice([-1, ("div", sizes[a], 2)]), *sizes[a + 1 :]]
            elif how == "insert":
                shape = [*sizes[:a], 1, *sizes[a:]]
            else:
                shape = sizes
            return [Step("op", "reshape", (x,), {"shape": shape})]
        if name == "flatten":
            b = rng.randrange(a, rank)
            return [Step("op", name, (x,), {"start_axis": a, "end_axis": b - rank})]
        if name == "permute":
            return [Step("op", name, (x,), {"axes": rng.sample(range(rank), rank)})]
        if name == "transpose":
            return [Step("op", name, (x,), {"a": a, "b": rng.randrange(rank) - rank})]
        if name == "expand":
            at = len(self.states[0])
            if rng.random() < 0.5:
                y = self.pick(lambda p: p.e.dim() >= rank)
                if y is None:
                    return None
                return [Step("op", name, (x,), {"shape": [self.size(y, i) for i in range(self.v(y).e.dim())]})]
            y = self.pick(lambda p: p.e.dim() > 0)
            n = rng.choice([2, 3, self.size(y, 0)])
            return [Step("op", "unsqueeze", (x,), {"axis": a}), Step("op", name, (at,), {"shape": [*([-1] * a), n, *([-1] * (rank - a))]})]
        if name == "slice":
            attrs = rng.choice(
                [
                    {"start": 1, "stop": None, "step": 1}, {"start": None, "stop": -1, "step": 1}, {"start": None, "stop": None, "step": 2},
                    {"start": -2, "stop": None, "step": 1}, {"start": 1, "stop": 3, "step": 1}, {"start": None, "stop": ("div", self.size(x, a), 2), "step": 1},
                    {"start": ("div", self.size(x, a), 2), "stop": None, "step": 1}, {"start": 1, "stop": None, "step": 3}, {"start": 0, "stop": 100, "step": 1},
                    {"start": 2, "stop": 2, "step": 1},
                ]
            )
            return [Step("op", name, (x,), {"axis": a, **attrs})]
        if name == "select":
            return [Step("op", name, (x,), {"axis": a, "index": rng.choice([0, -1, 0, 1])})]
        if name == "unsqueeze":
            return [Step("op", name, (x,), {"axis": rng.choice([a, -1, rank])})]
        if name == "squeeze":
            if any(s[x].e.shape[a] != 1 for s in self.states):
                return None
            return [Step("op", name, (x,), {"axes": [a]})]
        if name == "narrow":
            return [Step("op", name, (x,), {"axis": a, "start": rng.choice([0, 1]), "length": rng.choice([1, 2, ("sub", self.size(x, a), 1)])})]
        if name == "split":
            n = self.v(x).e.shape[a]
            if any(s[x].e.shape[a] != n for s in self.states) or n < 2:
                if not self.program.inputs:  # in a function of "any": how many results there are must be known
                    return None
                return [Step("op", name, (x,), {"sizes": [1, ("sub", self.size(x, a), 1)], "axis": a})]
            cut = rng.randrange(0, n)
            return [Step("op", name, (x,), {"sizes": [cut, n - cut], "axis": a})]
        return [Step("op", "contiguous", (x,))]

    def p_copying(self, depth):
        rng = self.rng
        x = self.pick(lambda p: p.e.dim() > 0)
        if x is None:
            return None
        e = self.v(x).e
        rank = e.dim()
        a = rng.randrange(rank)
        name = rng.choice("concat concat stack pad flip roll repeat tril zeros_like ones_like full arange".split())
        if name in ("concat", "stack"):
            same = self.tensors(lambda p: p.e.dim() == rank and p.e.dtype == e.dtype)
            parts = (x, *(rng.choice(same) for _ in range(rng.randrange(0 if name == "concat" else 1, 3))))
            return [Step("op", name, parts, {"axis": rng.choice([a, a - rank])})]
        if name == "pad":
            if e.dtype == torch.bool:
                return None
            value = rng.choice([0.0, 1.0, 2.0])
            return [Step("op", name, (x,), {"before": [rng.choice([1, 2]), *(rng.choice([0, 0, 1, 2]) for _ in range(rank - 1))], "after": [rng.choice([0, 0, 1]) for _ in range(rank)], "value": value})]
        if name == "flip":
            return [Step("op", name, (x,), {"axes": sorted(rng.sample(range(rank), rng.randrange(1, rank + 1)))})]
        if name == "roll":
            return [Step("op", name, (x,), {"shifts": [rng.choice([1, -1, 3])], "axes": [a]})]
        if name == "repeat":
            return [Step("op", name, (x,), {"counts": [rng.choice([1, 2]) for _ in range(rank)]})]
        if name == "tril":
            if rank < 2:
                return None
            return [Step("op", rng.choice(["tril", "triu"]), (x,), {"diagonal": rng.choice([0, 1, -1])})]
        if name == "full":
            return [Step("op", name, (("const", rng.choice([0, 1, 2])),), {"shape": [self.size(x, i) for i in range(rank)], "dtype": e.dtype})]
        if name == "arange":
            return [Step("op", name, (), {"stop": self.size(x, a)})]
        return [Step("op", name, (x,))]

    def p_matmul(self, depth):
        rng = self.rng
        x = self.pick(lambda p: p.e.is_floating_point() and p.e.dim() >= 1)
        if x is None:
            return None
        dtype = self.v(x).e.dtype
        k = [s[x].e.shape[-1] for s in self.states]
        at = len(self.states[0])
        straight = [i for i in self.tensors(lambda p: p.e.dtype == dtype and p.e.dim() >= 1) if all(s[i].e.shape[-2 if s[i].e.dim() > 1 else 0] == n for s, n in zip(self.states, k))]
        crossed = [i for i in self.tensors(lambda p: p.e.dtype == dtype and p.e.dim() >= 2) if all(s[i].e.shape[-1] == n for s, n in zip(self.states, k))]
        choice = rng.random()
        if straight and choice < 0.5:
            return [Step("op", "matmul", (x, rng.choice(straight)))]
        if crossed and choice < 0.75:
            return [Step("op", "transpose", (rng.choice(crossed),), {"a": -2, "b": -1}), Step("op", "matmul", (x, at))]
        flat = [i for i in crossed if self.v(i).e.dim() == 2]
        if flat:
            w = rng.choice(flat)
            steps = [Step("op", "linear", (x, w))]
            if rng.random() < 0.5:
                steps.append(Step("op", "relu", (at,)))
            return steps
        return None

    def p_norm(self, depth):
        x = self.pick(lambda p: p.e.is_floating_point() and p.e.dim() >= 1)
        if x is None:
            return None
        name = self.rng.choice(["softmax", "softmax", "log_softmax", "layer_norm", "rms_norm"])
        if name in ("layer_norm", "rms_norm"):
            return [Step("op", name, (x,), {"eps": 1e-5})]
        rank = self.v(x).e.dim()
        return [Step("op", name, (x,), {"axis": self.rng.randrange(-rank, rank)})]

    def p_where(self, depth):
        c = self.pick(lambda p: p.e.dtype == torch.bool)
        x, y = self.pick(), self.pick()
        if c is None or x is None:
            return None
        if self.rng.random() < 0.3:
            return [Step("op", "masked_fill", (x, c, ("const", self.rng.choice([0, 1, 2]))))]
        return [Step("op", "where", (c, x, y if self.rng.random() < 0.7 else ("const", 0)))]

    def p_compare(self, depth):
        x, y = self.pick(), self.pick()
        if x is None:
            return None
        return [Step("op", self.rng.choice(COMPARE), (x, y if self.rng.random() < 0.6 else ("const", self.rng.choice([0, 1, 0.5]))))]

    def p_cast(self, depth):
        x = self.pick()
        if x is None:
            return None
        e = self.v(x).e
        targets = [*FLOATS, torch.int64, torch.int32, torch.bool, torch.int8, torch.uint8] if self.half else [torch.float32, torch.float32, torch.float64, torch.int64, torch.bool, torch.int32]
        target = self.rng.choice(targets)
        if e.is_floating_point() and not target.is_floating_point:
            at = len(self.states[0])
            return [Step("op", "clamp", (x, ("const", 0.0), ("const", 100.0))), Step("op", "cast", (at,), {"dtype": target})]
        return [Step("op", "cast", (x,), {"dtype": target})]

    def p_index(self, depth):
        rng = self.rng
        ids = self.pick(lambda p: p.e.dtype == torch.int64)
        x = self.pick(lambda p: p.e.dim() >= 1)
        if ids is None or x is None:
            return None
        # Any integers become indices of the axis: remainder by its size.
        a = rng.randrange(self.v(x).e.dim())
        if any(s[x].e.shape[a] == 0 for s in self.states):
            return None
        if not all(int(s[ids].e.max()) < s[x].e.shape[a] and int(s[ids].e.min()) >= 0 for s in self.states if s[ids].e.numel()):
            at = len(self.states[0])
            return [Step("op", "remainder", (ids, ("const", 1))), Step("op", "index_select", (x, at), {"axis": a})] if self.v(ids).e.dim() == 1 else None
        if self.v(ids).e.dim() == 1:
            return [Step("op", "index_select", (x, ids), {"axis": a})]
        if self.v(x).e.dim() == 2 and a == 0 and rng.random() < 0.5:
            return [Step("op", "embedding", (ids, x))]
        if self.v(ids).e.dim() != self.v(x).e.dim():
            return None
        return [Step("op", "gather", (x, ids), {"axis": a})]

    def p_pick_list(self, depth):
        places = [self.pick() for _ in range(3)]
        if None in places:
            return None
        return [Step("pick", "", tuple(places), {"index": self.rng.choice([0, 1, -1])})]

    def p_write(self, depth, x=None):
        rng = self.rng
        weight_places = range(len(self.program.inputs), len(self.program.inputs) + len(self.program.weights)) if depth < 9 else ()
        if x is None:
            x = self.pick()
        if x is None:
            return None
        bases = {id(self.v(p).e.untyped_storage()) for p in weight_places if isinstance(self.v(p), Pair)}
        if any(_storage(self.v(x).e) == _storage(self.v(p).e) for p in weight_places if isinstance(self.v(p), Pair)) or bases & {id(self.v(x).e.untyped_storage())}:
            return None
        e = self.v(x).e
        y = self.pick(lambda p: p.e.dtype == e.dtype) if rng.random() < 0.8 else self.pick()
        name = rng.choice("assign assign add_ mul_ sub_ add_ fill_ neg_ relu_ tanh_ masked_fill_ sigmoid_ square_".split())
        if name in ("neg_", "relu_", "tanh_", "sigmoid_", "square_"):
            if not e.is_floating_point():
                return None
            return [Step("op", name, (x,))]
        if name == "fill_":
            if 0 in e.stride():  # torch alone fills what overlaps
                return None
            return [Step("op", name, (x, ("const", rng.choice([0, 1, 2]))))]
        if name == "masked_fill_":
            mask = self.pick(lambda p: p.e.dtype == torch.bool)
            if mask is None:
                return None
            return [Step("op", name, (x, mask, ("const", 1)))]
        if e.dtype == torch.bool and name != "assign":
            name = "mul_" if name == "mul_" else "add_"
        if name == "assign" and self.v(y).e.is_floating_point() and not e.is_floating_point():
            return None
        if rng.random() < 0.75 or 0 in e.stride():  # a number overlaps itself for torch alone
            return [Step("op", name, (x, y))]
        return [Step("op", name, (x, ("const", rng.choice([1, 2]))))]

    def p_write_view(self, depth):
        steps = self.p_view(depth)
        if not steps:
            return None
        at = len(self.states[0]) + len(steps) - 1
        backup = [len(s) for s in self.states]
        for step in steps:
            if self.try_step(step) is not True:
                for s, n in zip(self.states, backup):
                    del s[n:]
                return None
            self.steps.append(step)
        return self.p_write(depth, x=at)

    def p_write_moved(self, depth):
        """Elements of a tensor into other places of it."""
        rng = self.rng
        x = self.pick(lambda p: p.e.dim() > 0 and not self.is_weight(p) and 0 not in p.e.stride())
        if x is None:
            return None
        at = len(self.states[0])
        a = rng.randrange(self.v(x).e.dim())
        move = rng.choice([Step("op", "flip", (x,), {"axes": [a]}), Step("op", "roll", (x,), {"shifts": [rng.choice([1, -1, 2])], "axes": [a]})])
        if self.v(x).e.dtype == torch.bool or rng.random() < 0.5:
            return [move, Step("op", "assign", (x, at))]
        return [move, Step("op", "mul", (at, ("const", 2))), Step("op", rng.choice(["add_", "sub_"]), (x, at + 1))]

    def inner(self, count, depth, extra=()):
        """A block of random steps over the scope; returns it with the states at its end."""
        outer_states, outer_steps = self.states, self.steps
        self.states = copy.deepcopy([[*s, *e] for s, e in zip(outer_states, extra)] if extra else outer_states)
        self.steps = []
        self.grow(count, depth)
        steps, states = self.steps, self.states
        self.states, self.steps = outer_states, outer_steps
        return steps, states

    def p_branch(self, depth):
        rng = self.rng
        at = len(self.states[0])
        prefix = []
        if rng.random() < 0.5:
            x = self.pick(lambda p: p.exact)
            if x is None:
                return None
            prefix = [Step("op", "gt", (x, ("const", rng.choice([0, 1])))), Step("op", "reduce_any", (at,), {"axes": None, "keepdim": False})]
            for step in prefix:
                if self.try_step(step) is not True:
                    return None
                self.steps.append(step)
            condition = Step("if", "value", (len(self.states[0]) - 1,))
        else:
            x = self.pick(lambda p: p.e.dim() > 0)
            if x is None:
                return None
            condition = Step("if", rng.choice(["lt", "eq", "ge"]), (), {"sides": [self.size(x, 0), rng.choice([1, 3, 4, 5])]})
        then, then_states = self.inner(rng.randrange(1, 4), depth + 1)
        other, other_states = self.inner(rng.randrange(0, 4), depth + 1)
        kind = lambda v: (v.e.dtype, v.e.dim()) if isinstance(v, Pair) else None
        pairs = []
        for _ in range(rng.randrange(1, 3)):
            a = rng.choice(range(max(0, len(then_states[0]) - 4), len(then_states[0])))
            wanted = kind(then_states[0][a])
            if wanted is None:
                continue
            matching = [i for i, v in enumerate(other_states[0]) if kind(v) == wanted]
            if matching:
                pairs.append((a, rng.choice(matching[-3:])))
        if not pairs:
            return None
        condition.blocks = (Block(then, [a for a, _ in pairs]), Block(other, [b for _, b in pairs]))
        return [condition]

    def p_loop(self, depth):
        rng = self.rng
        carried = [self.pick() for _ in range(rng.randrange(1, 3))]
        if None in carried:
            return None
        scalars = [i for i, v in enumerate(self.states[0]) if type(v) is int]
        trips = ("value", rng.choice(scalars)) if scalars and rng.random() < 0.7 else rng.choice([2, 3])
        extra = [[s[c] for c in carried] for s in self.states]
        base = len(self.states[0])
        body, states = self.inner(rng.randrange(1, 4), depth + 1, extra)
        results = []
        for position, c in enumerate(carried):
            wanted = (self.v(c).e.dtype, self.v(c).e.dim())
            matching = [i for i, v in enumerate(states[0]) if i >= base and isinstance(v, Pair) and (v.e.dtype, v.e.dim()) == wanted]
            results.append(rng.choice(matching[-3:]) if matching else base + position)
        return [Step("while", "", tuple(carried), {"trips": trips}, (Block(body, results),))]

    def p_grow(self, depth):
        rng = self.rng
        x = self.pick()
        if x is None:
            return None
        scalars = [i for i, v in enumerate(self.states[0]) if type(v) is int]
        trips = ("value", rng.choice(scalars)) if scalars and rng.random() < 0.6 else rng.choice([0, 1, 2, 3])
        read = rng.choice(["trip", -1, 0])
        base = len(self.states[0])
        body, states = self.inner(rng.randrange(1, 4), depth + 1, [[s[x], 1] for s in self.states])
        wanted = (self.v(x).e.dtype, self.v(x).e.dim())
        matching = [i for i, v in enumerate(states[0]) if i >= base and isinstance(v, Pair) and (v.e.dtype, v.e.dim()) == wanted]
        return [Step("grow", "", (x,), {"trips": trips, "read": read, "take": rng.choice([-1, 0, -1])}, (Block(body, [rng.choice(matching[-3:])]),))]

    def p_foreign(self, depth):
        rng = self.rng
        x = self.pick(lambda p: not self.is_weight(p))
        if x is None:
            return None
        names = ["clone"]
        if self.v(x).e.dtype != torch.bool:
            names.append("abs")
            if self.program.writes and 0 not in self.v(x).e.stride():
                names += ["neg_", "fill_"]
        return [Step("foreign", rng.choice(names), (x,))]

    def p_helper(self, depth):
        rng = self.rng
        places = [self.pick(lambda p: not self.is_weight(p)) for _ in range(rng.randrange(1, 4))]
        if None in places:
            return None
        outer_states, outer_steps = self.states, self.steps
        self.states = [copy.deepcopy([s[p] for p in places]) for s in outer_states]
        self.steps = []
        weights, self.program.weights = self.program.weights, []
        inputs, self.program.inputs = self.program.inputs, []
        self.grow(rng.randrange(1, 5), 1)
        self.program.weights, self.program.inputs = weights, inputs
        steps, states = self.steps, self.states
        self.states, self.steps = outer_states, outer_steps
        tensors = [i for i, v in enumerate(states[0]) if isinstance(v, Pair)]
        block = Block(steps, [rng.choice(tensors[-3:]) for _ in range(rng.randrange(1, 3))])
        self.program.functions.append((len(places), block))
        weight_places = range(len(inputs), len(inputs) + len(weights))
        if self.program.writes and any(p in weight_places for p in places):
            self.program.functions.pop()
            return None
        return [Step("call", "", tuple(places), {"function": len(self.program.functions) - 1})]

    def p_item(self, depth):
        x = self.pick(lambda p: not p.e.is_floating_point() and p.e.dtype != torch.bool and p.e.dim() > 0)
        if x is None:
            return None
        at = len(self.states[0])
        return [
            Step("op", "bitwise_and", (x, ("const", 3))),
            Step("op", "reduce_sum", (at,), {"axes": None, "keepdim": False}),
            Step("op", "remainder", (at + 1, ("const", 4))),
            Step("item", "", (at + 2,)),
        ]


def generate(seed, features=None):
    return Generator(seed, features).generate()
