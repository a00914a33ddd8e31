"""Calls of the frameworks that pass over NaN, or put numbers in its place. Rows of `signatures` call these methods by name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from flexor.frontend.cpython.values import Known, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer

_LARGEST = {"bfloat16": 3.3895313892515355e38}  # of the dtypes that NumPy has not


class Nans:
    """Methods of Lowering, which has the rest of what they call. Of integers and bools nothing is passed over."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def finite(self, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
        """nan_to_num: numbers in the place of NaN and of both infinities, by default 0 and the largest of both signs."""
        op, dtype = self.writer.op, self.dtype_of(x)
        if "float" not in dtype:
            return op("clone", x)
        largest = _LARGEST[dtype] if dtype in _LARGEST else float(np.finfo(dtype).max)
        for value in (nan, posinf, neginf):
            number = value.object if isinstance(value, Known) else 0
            if not (is_none(value) or self._holds(value) and abs(number) <= largest):
                raise NotWritten("a number that the dtype does not hold")
        above, below = (Known(end) if is_none(value) else value for value, end in ((posinf, largest), (neginf, -largest)))
        made = op("where", op("isnan", x), Known(0.0) if is_none(nan) else nan, x)
        made = op("where", op("eq", x, Known(math.inf)), above, made)
        return op("where", op("eq", x, Known(-math.inf)), below, made)

    def _holds(self, value: Any) -> bool:
        return value.is_scalar and value.kind != "number" if hasattr(value, "kind") else type(plain(value)) in (bool, int, float)

    def shown_numbers(self, x: Any, instead: float) -> Any:
        """x with a number in the place of NaN."""
        return self.writer.op("where", self.writer.op("isnan", self.wide(x)), Known(instead), x)

    def _count(self, x: Any, **given: Any) -> Any:
        return self.to(self.writer.op("reduce_sum", self.writer.op("logical_not", self.writer.op("isnan", x)), **given), self.dtype_of(x))

    def nan_mean(self, x: Any, axis: Any, keepdim: Any) -> Any:
        """np.nanmean and torch.nanmean; of nothing but NaN it is NaN."""
        given = {"axes": self.axes(axis), "keepdim": bool(plain(keepdim))}
        if "float" not in self.dtype_of(x) and self.framework == "numpy":
            return self.writer.op("reduce_mean", x, **given)
        return self.writer.op("div", self.writer.op("reduce_sum", self.shown_numbers(x, 0.0), **given), self._count(x, **given))

    def nan_extreme(self, x: Any, axis: Any, keepdim: Any, which: str) -> Any:
        """np.nanmax and np.nanmin; of nothing but NaN it is NaN."""
        given = {"axes": self.axes(axis), "keepdim": bool(plain(keepdim))}
        if "float" not in self.dtype_of(x):
            return self.writer.op(f"reduce_{which}", x, **given)
        op = self.writer.op
        found = op(f"reduce_{which}", self.shown_numbers(x, -math.inf if which == "max" else math.inf), **given)
        return op("where", op("reduce_all", op("isnan", x), **given), Known(math.nan), found)

    def nan_total(self, x: Any, axis: Any, keepdim: Any, which: str) -> Any:
        """np.nansum and np.nanprod."""
        given = {"axes": self.axes(axis), "keepdim": bool(plain(keepdim))}
        if "float" in self.dtype_of(x):
            x = self.shown_numbers(x, 0.0 if which == "sum" else 1.0)
        return self.writer.op(f"reduce_{which}", self.summed(x, None) if self.framework == "numpy" else x, **given)

    def nan_variance(self, x: Any, axis: Any, ddof: Any, keepdim: Any) -> Any:
        """np.nanvar; NaN where there are no more numbers than `ddof`."""
        op, taken = self.writer.op, plain(ddof)
        given = {"axes": self.axes(axis), "keepdim": bool(plain(keepdim))}
        if type(taken) is not int or taken < 0:
            raise NotWritten("a correction that is no integer")
        shown = self.shown_numbers(x, 0.0)
        kept = given | {"keepdim": True}
        mean = op("div", op("reduce_sum", shown, **kept), self._count(x, **kept))
        apart = op("where", op("isnan", x), Known(0.0), op("square", op("sub", shown, mean)))
        freedom = op("sub", self._count(x, **given), Known(taken))
        spread = op("div", op("reduce_sum", apart, **given), freedom)
        return op("where", op("le", freedom, Known(0)), Known(math.nan), spread)

    def nan_running(self, x: Any, axis: Any, which: str) -> Any:
        """np.nancumsum and np.nancumprod."""
        if "float" in self.dtype_of(x):
            x = self.shown_numbers(x, 0.0 if which == "sum" else 1.0)
        return self.writer.op(f"cum{which}", self.summed(x, None), axis=plain(axis))
