"""What loss functions of torch are in ops of the registry: of float32 and float64, whose kernels round no intermediate value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Known, is_int, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer

_REDUCTIONS = {"none": None, "mean": "reduce_mean", "sum": "reduce_sum"}


class Losses:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def loss(self, x: Any, y: Any, kind: str, reduction: Any) -> Any:
        """F.mse_loss and F.l1_loss. Eager warns of other sizes: those are its own."""
        self._two(x, y)
        return self._reduced(self.writer.op(kind, self.writer.op("sub", x, y)), reduction)

    def smooth_loss(self, x: Any, y: Any, reduction: Any, beta: Any, divided: bool) -> Any:
        """F.smooth_l1_loss and F.huber_loss: a square within beta of 0, a line outside; the first is divided by beta."""
        op = self.writer.op
        self._two(x, y)
        beta = self._number(beta)
        if beta < 0 or (beta == 0 and not divided):
            raise NotWritten("a threshold that is not positive")
        distance = op("abs", op("sub", x, y))
        if beta == 0:
            return self._reduced(distance, reduction)
        square = op("mul", op("square", distance), Known(0.5 / beta if divided else 0.5))
        line = op("sub", distance, Known(0.5 * beta))
        line = line if divided else op("mul", line, Known(beta))
        return self._reduced(op("where", op("lt", distance, Known(beta)), square, line), reduction)

    def divergence(self, x: Any, y: Any, reduction: Any, of_log: Any) -> Any:
        """F.kl_div. Eager warns of the reduction "mean", which is its own."""
        op = self.writer.op
        self._two(x, y)
        if plain(reduction) == "mean" or plain(of_log) not in (False, True):
            raise NotWritten("a mean over all elements")
        if plain(of_log):
            each = op("mul", op("exp", y), op("sub", y, x))
        else:
            entropy = op("where", op("eq", y, Known(0.0)), Known(0.0), op("mul", y, op("log", y)))
            each = op("sub", entropy, op("mul", y, x))
        if plain(reduction) != "batchmean":
            return self._reduced(each, reduction)
        self.ranked(x, 1, 2, 3, 4)
        return op("div", op("reduce_sum", each), self.shape_of(x)[0])

    def logistic_loss(self, x: Any, y: Any, weight: Any, reduction: Any, positive: Any) -> Any:
        """F.binary_cross_entropy_with_logits: (1 - y) x + w (log(1 + exp(-|x|)) + max(-x, 0)), w = 1 + (positive - 1) y."""
        op = self.writer.op
        self._two(x, y)
        self.wide(*(v for v in (x, weight, positive) if not is_none(v)))
        softplus = op("add", op("log1p", op("exp", op("neg", op("abs", x)))), op("maximum", op("neg", x), Known(0.0)))
        if not is_none(positive):
            softplus = op("mul", op("add", op("mul", op("sub", positive, Known(1.0)), y), Known(1.0)), softplus)
        each = op("add", op("mul", op("sub", Known(1.0), y), x), softplus)
        return self._reduced(each if is_none(weight) else op("mul", each, weight), reduction)

    def probability_loss(self, x: Any, y: Any, weight: Any, reduction: Any) -> Any:
        """F.binary_cross_entropy, of probabilities: logarithms no smaller than -100, as torch has them."""
        op = self.writer.op
        self._two(x, y)
        self.wide(*(v for v in (x, weight) if not is_none(v)))
        inside = op("logical_and", op("ge", x, Known(0.0)), op("le", x, Known(1.0)))
        self.assume(self.item(op("reduce_all", inside)), "probabilities between 0 and 1", RuntimeError)
        yes, no = (op("maximum", logarithm, Known(-100.0)) for logarithm in (op("log", x), op("log1p", op("neg", x))))
        each = op("sub", op("mul", op("sub", y, Known(1.0)), no), op("mul", y, yes))
        return self._reduced(each if is_none(weight) else op("mul", each, weight), reduction)

    def likelihood_loss(self, x: Any, target: Any, weight: Any, ignored: Any, reduction: Any, smoothing: Any, of_logits: bool) -> Any:
        """F.nll_loss, and of logits F.cross_entropy: classes along axis 1, or along the only one."""
        op = self.writer.op
        self.wide(*(v for v in (x, weight) if not is_none(v)))
        smoothing, rank = self._number(smoothing), plain(self.rank(x))
        if not 0.0 <= smoothing <= 1.0 or rank < 1 or (smoothing and not is_none(weight)):
            raise NotWritten("a smoothing that is not one, or weighted")
        axis = 1 if rank > 1 else 0
        logs = op("log_softmax", x, axis=axis) if of_logits else x
        if self.dtype_of(target) != "int64":
            return self._entropy(logs, target, weight, reduction, smoothing, axis)
        if plain(self.rank(target)) != rank - 1:
            raise NotWritten("targets of another rank")
        for size, other in zip([s for at, s in enumerate(self.shape_of(x)) if at != axis], self.shape_of(target)):
            self.assume_equal(size, other, "as many targets as rows")
        if not is_int(ignored):
            raise NotWritten("an index that is no integer")
        taken = op("ne", target, ignored)
        index = op("where", taken, target, Known(0))
        count: Any = op("cast", taken, dtype=self.dtype_of(x))
        if not is_none(weight):
            self.ranked(weight, 1)
            self.assume_equal(self.shape_of(weight)[0], self.shape_of(x)[axis], "as many weights as classes")
            count = op("mul", count, op("take", weight, index, axis=0))
        found = op("squeeze", op("gather", logs, op("unsqueeze", index, axis=axis), axis=axis), axes=[axis])
        if smoothing:
            classes = self.shape_of(x)[axis]
            spread = op("div", op("reduce_sum", logs, axes=[axis]), classes)
            found = op("add", op("mul", found, Known(1.0 - smoothing)), op("mul", spread, Known(smoothing)))
        # What is left out counts nothing, whatever its logarithm is.
        each = op("where", taken, op("neg", found if is_none(weight) else op("mul", found, count)), Known(0.0))
        if plain(reduction) == "mean":
            return op("div", op("reduce_sum", each), op("reduce_sum", count))
        return self._reduced(each, reduction)

    def _entropy(self, logs: Any, target: Any, weight: Any, reduction: Any, smoothing: float, axis: int) -> Any:
        """Targets that are probabilities of the classes."""
        op, rank = self.writer.op, plain(self.rank(logs))
        self._two(logs, target)
        if smoothing:
            classes = self.shape_of(logs)[axis]
            target = op("add", op("mul", target, Known(1.0 - smoothing)), self._ratio(Known(smoothing), classes))
        each = op("mul", logs, target)
        if not is_none(weight):
            self.ranked(weight, 1)
            for _ in range(rank - axis - 1):
                weight = op("unsqueeze", weight, axis=-1)
            each = op("mul", each, weight)
        return self._reduced(op("neg", op("reduce_sum", each, axes=[axis])), reduction)

    def _two(self, x: Any, y: Any) -> None:
        self.wide(x, y)
        self.same_sizes(x, y)

    def _number(self, value: Any) -> float:
        number = plain(value)
        if type(number) not in (int, float):
            raise NotWritten("a number that only the run knows")
        return float(number)

    def _reduced(self, each: Any, reduction: Any) -> Any:
        if plain(reduction) not in _REDUCTIONS:
            raise NotWritten("a reduction of that name")
        op = _REDUCTIONS[plain(reduction)]
        return each if op is None else self.writer.op(op, each)
