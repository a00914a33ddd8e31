"""What layers of images and batches are in ops of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, Value, is_none
from flexor.frontend.cpython.writer import NotWritten

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Layers:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def nearest(self, x: Any, output_size: Any) -> Any:
        """Pixels repeated or left out along the axes behind the first two. The ratio of sizes is one of float32, as torch has it."""
        op, sizes, own = self.writer.op, self.sizes(output_size), self.shape_of(x)
        if len(own) != len(sizes) + 2:
            raise NotWritten("sizes that do not fit")
        for axis, (before, after) in enumerate(zip(own[2:], sizes), 2):
            before, after = _known(before), _known(after)
            self._assume_some(before)
            self._assume_some(after)
            ratio = self._ratio(before, after)
            places = op("cast", op("floor", op("mul", self._float_places(after), ratio)), dtype="int64")
            last = Known(before.object - 1) if isinstance(before, Known) else self.writer.scalar("sub", before, Known(1))
            x = op("take", x, op("minimum", places, last), axis=axis)
        return x

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
        op, sizes = self.writer.op, list(map(_known, self.shape_of(x)))
        axes = [axis for axis in range(len(sizes)) if axis != 1]
        count: Value = Known(1)
        for axis in axes:
            count = self.multiplied(count, sizes[axis])
        several = Known(count.object > 1) if isinstance(count, Known) else self.writer.scalar("gt", count, Known(1))
        self.assume(several, "more than one value per channel")
        centred = op("sub", x, op("reduce_mean", x, axes=axes, keepdim=True))
        scale = op("rsqrt", op("add", op("reduce_mean", op("square", centred), axes=axes, keepdim=True), eps))
        out = op("mul", centred, scale)
        for name, value in (("mul", weight), ("add", bias)):
            if not is_none(value):
                for _ in sizes[2:]:
                    value = op("unsqueeze", value, axis=-1)
                out = op(name, out, value)
        return out


def _known(size: Any) -> Any:
    return size if isinstance(size, (Known, Dynamic)) else Known(size)
