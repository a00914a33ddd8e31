"""What layers of images, batches and sequences are in ops of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, ListValue, TupleValue, Value, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Layers:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def _float_places(self, count: Value) -> Any:
        steps = self.writer.op("arange", start=Known(0), stop=count, step=Known(1), dtype="int64")
        return self.writer.op("cast", steps, dtype="float32")

    def _ratio(self, before: Value, after: Value) -> Value:
        if isinstance(before, Known) and isinstance(after, Known):
            return Known(before.object / after.object)
        return self.writer.scalar("true_div", before, after)

    def _assume_some(self, size: Value) -> None:
        positive = Known(size.object > 0) if isinstance(size, Known) else self.writer.scalar("gt", size, Known(0))
        self.assume(positive, "sizes that are not zero")

    def batch_normalized(self, x: Any, mean: Any, var: Any, weight: Any, bias: Any, training: Any, eps: Any) -> Any:
        """F.batch_norm; in training of the batch itself, where no running statistics are kept."""
        if not (isinstance(training, Known) and type(training.object) is bool):
            raise NotWritten("a flag that is no bool")
        if not training.object:
            return self.batch_norm(x, mean, var, weight, bias, eps=eps)
        if not (is_none(mean) and is_none(var)) or self.dtype_of(x) not in ("float32", "float64"):
            raise NotWritten("running statistics, or halves")
        return self._normalized(x, [axis for axis in range(plain(self.rank(x))) if axis != 1], weight, bias, eps)

    def instance_normalized(self, x: Any, mean: Any, var: Any, weight: Any, bias: Any, of_input: Any, eps: Any) -> Any:
        """F.instance_norm of the input itself, where no running statistics are kept."""
        if not (is_none(mean) and is_none(var)) or plain(of_input) is not True or self.dtype_of(x) not in ("float32", "float64"):
            raise NotWritten("running statistics, or halves")
        if plain(self.rank(x)) < 3:
            raise NotWritten("no axes behind the channels")
        return self._normalized(x, list(range(2, plain(self.rank(x)))), weight, bias, eps)

    def _normalized(self, x: Any, axes: list[int], weight: Any, bias: Any, eps: Any) -> Any:
        """Of mean 0 and variance 1 over `axes`, then scaled and moved by channel. One value alone is refused, as eager does."""
        op, sizes = self.writer.op, list(map(_known, self.shape_of(x)))
        count: Value = Known(1)
        for axis in axes:
            count = self.multiplied(count, sizes[axis])
        several = Known(count.object > 1) if isinstance(count, Known) else self.writer.scalar("gt", count, Known(1))
        self.assume(several, "more than one value per channel", ValueError)
        centred = op("sub", x, op("reduce_mean", x, axes=axes, keepdim=True))
        scale = op("rsqrt", op("add", op("reduce_mean", op("square", centred), axes=axes, keepdim=True), eps))
        out = op("mul", centred, scale)
        for name, value in (("mul", weight), ("add", bias)):
            if not is_none(value):
                for _ in sizes[2:]:
                    value = op("unsqueeze", value, axis=-1)
                out = op(name, out, value)
        return out

    def bags(self, ids: Any, table: Any, offsets: Any, mode: Any, weights: Any, padding: Any) -> Any:
        """F.embedding_bag of rows of ids, or of ids that offsets cut, without weights of their own."""
        if not (is_none(weights) and is_none(padding)) or plain(mode) not in ("sum", "mean", "max"):
            raise NotWritten("weights for each id, or padding")
        if self.dtype_of(ids) != "int64":
            raise NotWritten("ids that are not of int64")
        if plain(self.rank(ids)) == 2 and is_none(offsets):
            self._assume_some(_known(self.shape_of(ids)[1]))  # eager refuses bags of nothing
            return self.writer.op("embedding_bag", ids, table, mode=plain(mode))
        if plain(self.rank(ids)) != 1 or is_none(offsets) or self.dtype_of(offsets) != "int64":
            raise NotWritten("ids of that rank")
        return self.writer.op("embedding_bag_offsets", ids, offsets, table, mode=plain(mode))

    def rectified(self, x: Any, weight: Any) -> Any:
        """torch.prelu: one slope, or one for each place of axis 1."""
        op, rank = self.writer.op, plain(self.rank(self.floating(x, weight)))
        if plain(self.rank(weight)) == 1 and rank > 1:
            for _ in range(rank - 2):
                weight = op("unsqueeze", weight, axis=-1)
            self._assume_spread(_known(self.shape_of(weight)[0]), _known(self.shape_of(x)[1]))
        elif plain(self.rank(weight)) == 1:
            if rank == 0:
                raise NotWritten("slopes for no axis")
            self._assume_spread(_known(self.shape_of(weight)[0]), Known(1))
        elif plain(self.rank(weight)) != 0:
            raise NotWritten("slopes of that rank")
        return op("where", op("gt", x, Known(0.0)), x, op("mul", x, weight))

    def _assume_spread(self, size: Value, over: Value) -> None:
        if isinstance(size, Known) and (size.object == 1 or (isinstance(over, Known) and size.object == over.object)):
            return
        if isinstance(size, Known) and isinstance(over, Known):
            raise NotWritten("sizes that do not fit")
        either = [self.writer.scalar("sub", size, other) for other in (over, Known(1))]
        self.assume(self.writer.scalar("eq", self.writer.scalar("mul", *either), Known(0)), "one for all, or one for each")

    def bilinear(self, x: Any, y: Any, weight: Any, bias: Any) -> Any:
        """Out[..., o] = sum of x[..., i] weight[o, i, j] y[..., j], with what is added to it."""
        op, sizes = self.writer.op, self.shape_of(self.wide(x, y, weight))
        self.ranked(weight, 3)
        if plain(self.rank(x)) != plain(self.rank(y)) or not sizes:
            raise NotWritten("tensors of several ranks")
        for a, b in zip(sizes[:-1], self.shape_of(y)[:-1]):
            self.assume_equal(a, b, "equal sizes")
        across = op("matmul", op("unsqueeze", op("unsqueeze", x, axis=-2), axis=-2), weight)  # [..., o, 1, j]
        sums = op("reduce_sum", op("mul", op("squeeze", across, axes=[-2]), op("unsqueeze", y, axis=-2)), axes=[-1])
        return sums if is_none(bias) else op("add", sums, bias)

    def channels_shuffled(self, x: Any, groups: Any) -> Any:
        """Channels that stand in groups, of each group in turn."""
        op, number, sizes = self.writer.op, plain(groups), list(map(_known, self.shape_of(x)))
        if type(number) is not int or number < 1 or len(sizes) < 3:
            raise NotWritten("groups that are no positive integer, or fewer than three axes")
        for size in sizes:
            self._assume_some(size)
        each = self._divided(sizes[1], number)
        x = op("reshape", x, shape=[sizes[0], Known(number), each, *sizes[2:]])
        return op("reshape", op("transpose", x, a=1, b=2), shape=sizes)

    def _divided(self, size: Value, by: int) -> Value:
        """A part of a size that has to be divisible."""
        if isinstance(size, Known):
            if size.object % by:
                raise NotWritten("a size that is not divisible")
            return Known(size.object // by)
        self.assume(self._compared("eq", self.writer.scalar("mod", size, Known(by)), Known(0)), f"a size that {by} divides", RuntimeError)
        return self.writer.scalar("floor_div", size, Known(by))

    def pixels(self, x: Any, factor: Any, spread: bool) -> Any:
        """Blocks of factor x factor channels spread over the last two axes, or gathered from them."""
        op, r = self.writer.op, plain(factor)
        rank = plain(self.rank(x))
        if type(r) is not int or r < 1 or rank < 3:
            raise NotWritten("a factor that is no positive integer, or fewer than three axes")
        *batch, channels, height, width = map(_known, self.shape_of(x))
        for size in batch:  # eager leaves a batch of nothing as it is
            self._assume_some(size)
        if r == 1:  # never a view
            return op("clone", x)
        at = len(batch)
        outer = list(range(at))
        if spread:
            few = self._divided(channels, r * r)
            x = op("reshape", x, shape=[*batch, few, Known(r), Known(r), height, width])
            x = op("permute", x, axes=[*outer, at, at + 3, at + 1, at + 4, at + 2])
            return op("reshape", x, shape=[*batch, few, self.multiplied(height, Known(r)), self.multiplied(width, Known(r))])
        rows, columns = self._divided(height, r), self._divided(width, r)
        x = op("reshape", x, shape=[*batch, channels, rows, Known(r), columns, Known(r)])
        x = op("permute", x, axes=[*outer, at, at + 2, at + 4, at + 1, at + 3])
        return op("reshape", x, shape=[*batch, self.multiplied(channels, Known(r * r)), rows, columns])

    # ------------------------------------------------------------------------------------------------ recurrent cells

    def lstm_cell(self, x: Any, states: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        """The next hidden and cell state, of gates in the order input, forget, cell, output."""
        op = self.writer.op
        hidden, cell = self._states(states)
        gates = op("add", self._projected(x, w_ih, b_ih), self._projected(hidden, w_hh, b_hh))
        into, forget, new, out = self._parts(gates, 4)
        kept = op("mul", op("sigmoid", forget), cell)
        cell = op("add", kept, op("mul", op("sigmoid", into), op("tanh", new)))
        return TupleValue([op("mul", op("sigmoid", out), op("tanh", cell)), cell])

    def gru_cell(self, x: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        """The next hidden state, of gates in the order reset, update, new."""
        op = self.writer.op
        reset, update, new = self._parts(self._projected(x, w_ih, b_ih), 3)
        own_reset, own_update, own_new = self._parts(self._projected(hidden, w_hh, b_hh), 3)
        reset = op("sigmoid", op("add", reset, own_reset))
        update = op("sigmoid", op("add", update, own_update))
        new = op("tanh", op("add", new, op("mul", reset, own_new)))
        return op("add", new, op("mul", update, op("sub", hidden, new)))

    def plain_cell(self, activation: str, x: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        """The next hidden state of an Elman network."""
        op = self.writer.op
        return op(activation, op("add", self._projected(x, w_ih, b_ih), self._projected(hidden, w_hh, b_hh)))

    def _states(self, states: Any) -> list[Any]:
        if not isinstance(states, (TupleValue, ListValue)) or len(states.items) != 2:
            raise NotWritten("states that are not two")
        return list(states.items)

    def _projected(self, x: Any, weight: Any, bias: Any) -> Any:
        self.ranked(x, 2), self.ranked(weight, 2)
        self.wide(x, weight)
        return self.writer.op("linear", x, weight, *([] if is_none(bias) else [bias]))

    def _parts(self, gates: Any, count: int) -> list[Any]:
        width = _known(self.shape_of(gates)[1])
        if not isinstance(width, Known) or width.object % count:
            raise NotWritten("gates of a width that only the run knows")
        step = width.object // count
        return [self.writer.op("narrow", gates, axis=1, start=Known(at * step), length=Known(step)) for at in range(count)]


def _known(size: Any) -> Any:
    return size if isinstance(size, (Known, Dynamic)) else Known(size)
