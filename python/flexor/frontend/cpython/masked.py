"""Functions of torch.masked: reductions over the elements that a mask shows, the others being what changes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Known, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Masked:
    """Methods of Lowering, which has the rest of what they call. A mask of None shows all."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def hidden(self, x: Any, mask: Any, value: Any) -> Any:
        """x with a value, or one of that text, where the mask is false."""
        if is_none(mask):
            return x
        shown = self._shown(x, mask)
        return self.writer.op("where", shown, x, Known(float(value) if isinstance(value, str) else value))

    def _shown(self, x: Any, mask: Any) -> Any:
        if self.dtype_of(mask) != "bool" or self.tensor(mask).rank > self.tensor(x).rank:
            raise NotWritten("a mask of numbers, or of more axes")
        return self.writer.op("expand", mask, shape=self.shape_of(x))

    def _over(self, x: Any, dim: Any, keepdim: Any) -> dict[str, Any]:
        is_number = not self.tensor(x).rank
        axes = None if is_number and plain(dim) in ((), []) else self.some_axes(dim)
        if is_number:
            if not all(axis in (0, -1) for axis in axes or []):
                raise NotWritten("an axis that is not there")
            axes = None
        return {"axes": axes, "keepdim": bool(plain(keepdim))}

    def _counted(self, x: Any, mask: Any, **given: Any) -> Any:
        ones = self.writer.op("full_like", x, Known(True), dtype="bool") if is_none(mask) else self._shown(x, mask)
        return self.writer.op("reduce_sum", ones, **given)

    def masked_total(self, x: Any, dim: Any, keepdim: Any, mask: Any, which: str) -> Any:
        """masked.sum and masked.prod."""
        neutral = which == "prod" if self.dtype_of(x) == "bool" else int(which == "prod")
        shown, given = self.hidden(x, mask, neutral), self._over(x, dim, keepdim)
        if which == "prod" and not self.tensor(x).rank and plain(dim) in (None, (), []):
            return self.to(shown, self.dtype_of(x) if "float" in self.dtype_of(x) else "int64")  # x itself, as eager gives it
        return self.writer.op(f"reduce_{which}", shown, **given)

    def _without_extreme(self, x: Any, mask: Any, which: str) -> Any:
        dtype = self.dtype_of(x)
        if dtype == "bool":
            raise NotWritten("the largest of bools")
        if "float" in dtype:
            return self.hidden(x, mask, "-inf" if which == "max" else "inf")
        torch: Any = sys.modules["torch"]
        bounds = torch.iinfo(getattr(torch, dtype))
        return self.hidden(x, mask, bounds.min if which == "max" else bounds.max)

    def masked_extreme(self, x: Any, dim: Any, keepdim: Any, mask: Any, which: str) -> Any:
        """masked.amax and masked.amin."""
        return self.writer.op(f"reduce_{which}", self._without_extreme(x, mask, which), **self._over(x, dim, keepdim))

    def masked_place(self, x: Any, dim: Any, keepdim: Any, mask: Any, which: str) -> Any:
        """masked.argmax and masked.argmin, which give places in x's own dtype."""
        if plain(dim) is None and plain(keepdim):
            raise NotWritten("axes that are kept though none is named")
        place = self.writer.op(f"arg{which}", self._without_extreme(x, mask, which), **self._over(x, dim, keepdim))
        return self.to(place, self.dtype_of(x))

    def masked_mean(self, x: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
        """masked.mean: of nothing it is NaN."""
        self.wide(x)
        given = self._over(x, dim, keepdim)
        if is_none(mask):
            return self.writer.op("reduce_mean", x, **given)
        return self.writer.op("div", self.writer.op("reduce_sum", self.hidden(x, mask, 0), **given), self._counted(x, mask, **given))

    def masked_variance(self, x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any, mask: Any) -> Any:
        """masked.var."""
        op, given = self.writer.op, self._over(x, dim, keepdim)
        taken = plain(correction)
        if taken is None:
            taken = int(plain(unbiased) is not False)
        x = self.wide(self.as_float(x))
        kept = given | {"keepdim": True}
        shown = self.hidden(x, mask, 0)
        mean = op("div", op("reduce_sum", shown, **kept), self._counted(x, mask, **kept))
        squares = self.hidden(op("square", op("sub", x, mean)), mask, 0)
        freedom = op("clamp", op("sub", self._counted(x, mask, **given), Known(taken)), Known(0))
        return op("div", op("reduce_sum", squares, **given), freedom)

    def masked_median(self, x: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
        """masked.median: the middle of what is shown and is a number."""
        hidden = self.hidden(self.floating(x), mask, "nan")
        return self.median(hidden, dim, keepdim, "nanmedian").items[0]

    def masked_norm(self, x: Any, ord: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
        """masked.norm."""
        is_least = isinstance(ord, Known) and ord.object == float("-inf")
        hidden = self.hidden(x, mask, "inf" if is_least else 0)
        return self.norm(hidden, ord, dim, keepdim, None)

    def masked_logsumexp(self, x: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
        """masked.logsumexp, which gives integers of integers."""
        made = self.writer.op("logsumexp", self.as_float(self._without_extreme(x, mask, "max")), **self._over(x, dim, keepdim))
        return self.to(made, self.dtype_of(x))
