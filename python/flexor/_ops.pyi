"""Written by tools/generate.py from the registry of ops; edit the entry of the op."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from flexor.builder import Symbol, Var, Weight

Tensor: TypeAlias = Var | Weight
Scalar: TypeAlias = bool | int | float | np.generic | Symbol  # beside a tensor it does not widen the dtype's category
Integer: TypeAlias = int | np.integer[Any] | Symbol | Var
Integers: TypeAlias = Sequence[Integer] | Var
Real: TypeAlias = int | float | np.number[Any] | Var
DType: TypeAlias = Any  # the name of a dtype ("float32"), or a dtype of NumPy or torch

class Op:
    name: str
    operands: list[str]
    attributes: dict[str, str]  # name -> kind
    several: bool

OPS: Mapping[str, Op]

class FunctionOps:
    """Every op as a method: operands first, attributes by name."""

    def neg(self, /, x: Tensor | Scalar) -> Var:
        """Minus x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.neg, numpy.negative, Neg"""

    def abs(self, /, x: Tensor | Scalar) -> Var:
        """The magnitude of x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.abs, numpy.absolute, Abs"""

    def sign(self, /, x: Tensor | Scalar, *, keep_nan: bool = True) -> Var:
        """-1, 0 or 1 by the sign of x; NaN stays NaN, or gives 0 without keep_nan (as torch has it).

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sign, numpy.sign, Sign"""

    def sqrt(self, /, x: Tensor | Scalar) -> Var:
        """The square root of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sqrt, numpy.sqrt, Sqrt"""

    def rsqrt(self, /, x: Tensor | Scalar) -> Var:
        """One over the square root of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.rsqrt"""

    def reciprocal(self, /, x: Tensor | Scalar) -> Var:
        """One over x. Beside NumPy, integers stay integers, rounded towards zero, and a zero raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.reciprocal, numpy.reciprocal, Reciprocal"""

    def square(self, /, x: Tensor | Scalar) -> Var:
        """x times x; a bool becomes an integer.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.square, numpy.square"""

    def exp(self, /, x: Tensor | Scalar) -> Var:
        """e to the power x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.exp, numpy.exp, Exp"""

    def exp2(self, /, x: Tensor | Scalar) -> Var:
        """2 to the power x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.exp2, numpy.exp2"""

    def expm1(self, /, x: Tensor | Scalar) -> Var:
        """e to the power x, minus 1, exact near 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.expm1, numpy.expm1"""

    def log(self, /, x: Tensor | Scalar) -> Var:
        """The natural logarithm of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log, numpy.log, Log"""

    def log2(self, /, x: Tensor | Scalar) -> Var:
        """The logarithm of x to base 2.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log2, numpy.log2"""

    def log10(self, /, x: Tensor | Scalar) -> Var:
        """The logarithm of x to base 10.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log10, numpy.log10"""

    def log1p(self, /, x: Tensor | Scalar) -> Var:
        """The natural logarithm of 1 + x, exact near 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log1p, numpy.log1p"""

    def sin(self, /, x: Tensor | Scalar) -> Var:
        """The sine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sin, numpy.sin, Sin"""

    def cos(self, /, x: Tensor | Scalar) -> Var:
        """The cosine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.cos, numpy.cos, Cos"""

    def tan(self, /, x: Tensor | Scalar) -> Var:
        """The tangent of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.tan, numpy.tan, Tan"""

    def tanh(self, /, x: Tensor | Scalar) -> Var:
        """The hyperbolic tangent of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.tanh, numpy.tanh, Tanh"""

    def erf(self, /, x: Tensor | Scalar) -> Var:
        """The error function of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erf, Erf"""

    def sigmoid(self, /, x: Tensor | Scalar) -> Var:
        """1 / (1 + exp(-x)).

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sigmoid, Sigmoid"""

    def relu(self, /, x: Tensor | Scalar) -> Var:
        """x where x is positive, else 0; NaN stays NaN.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.relu, Relu"""

    def relu6(self, /, x: Tensor | Scalar) -> Var:
        """x clamped to 0..6.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.relu6"""

    def silu(self, /, x: Tensor | Scalar) -> Var:
        """x times sigmoid(x).

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.silu"""

    def gelu(self, /, x: Tensor | Scalar, *, approximate: str = 'none') -> Var:
        """x times the normal distribution function at x; approximate is "none" (erf) or "tanh".

        dtypes: float16, bfloat16, float32, float64
        C1: approximate is "none" or "tanh"
        elsewhere: torch.nn.functional.gelu, Gelu"""

    def softplus(self, /, x: Tensor | Scalar, *, beta: Real = 1.0, threshold: Real = 20.0) -> Var:
        """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.softplus, Softplus"""

    def elu(self, /, x: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """x where x is positive, else alpha (exp(x) - 1).

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.elu, Elu"""

    def leaky_relu(self, /, x: Tensor | Scalar, *, negative_slope: Real = 0.01) -> Var:
        """x where x is positive, else negative_slope x.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.leaky_relu, LeakyRelu"""

    def hardswish(self, /, x: Tensor | Scalar) -> Var:
        """x times (x + 3 clamped to 0..6) / 6.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardswish, HardSwish"""

    def hardsigmoid(self, /, x: Tensor | Scalar) -> Var:
        """x + 3 clamped to 0..6, over 6.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardsigmoid"""

    def hardtanh(self, /, x: Tensor | Scalar, *, min: Real = -1.0, max: Real = 1.0) -> Var:
        """x clamped to min..max.

        dtypes: int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardtanh"""

    def floor(self, /, x: Tensor | Scalar) -> Var:
        """The largest whole number not above x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.floor, numpy.floor, Floor"""

    def ceil(self, /, x: Tensor | Scalar) -> Var:
        """The smallest whole number not below x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.ceil, numpy.ceil, Ceil"""

    def round(self, /, x: Tensor | Scalar) -> Var:
        """The nearest whole number, ties to even.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.round, numpy.round, Round"""

    def trunc(self, /, x: Tensor | Scalar) -> Var:
        """x without its fraction.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.trunc, numpy.trunc"""

    def isnan(self, /, x: Tensor | Scalar) -> Var:
        """Whether x is not a number.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isnan, numpy.isnan, IsNaN"""

    def isinf(self, /, x: Tensor | Scalar) -> Var:
        """Whether x is infinite.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isinf, numpy.isinf, IsInf"""

    def isfinite(self, /, x: Tensor | Scalar) -> Var:
        """Whether x is a finite number.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isfinite, numpy.isfinite"""

    def logical_not(self, /, x: Tensor | Scalar) -> Var:
        """Whether x is zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.logical_not, numpy.logical_not, Not"""

    def bitwise_not(self, /, x: Tensor | Scalar) -> Var:
        """Every bit of x inverted; logical for bools.

        dtypes: bool, uint8, int8, int32, int64
        elsewhere: torch.bitwise_not, numpy.bitwise_not, BitwiseNot"""

    def cast(self, /, x: Tensor | Scalar, *, dtype: DType) -> Var:
        """x converted to another dtype: floats to integers truncate, to bool is x != 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.Tensor.to, numpy.ndarray.astype, Cast"""

    def add(self, /, x: Tensor | Scalar, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """x + alpha y; logical or of bools.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.add, numpy.add, Add"""

    def sub(self, /, x: Tensor | Scalar, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """x - alpha y.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.sub, numpy.subtract, Sub"""

    def mul(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x times y; logical and of bools.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.mul, numpy.multiply, Mul"""

    def div(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x over y as a float, whatever the dtypes are.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.div, numpy.divide, Div"""

    def floor_divide(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x over y, rounded towards minus infinity; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.floor_divide, numpy.floor_divide"""

    def remainder(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x - y floor(x / y): the rest with the sign of y; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.remainder, numpy.remainder, Mod"""

    def fmod(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The rest of x over y with the sign of x; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmod, numpy.fmod"""

    def pow(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x to the power y; integers wrap, and a negative power of an integer is 0 except of 1 and -1.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.pow, numpy.power, Pow"""

    def maximum(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The larger of x and y; NaN if either is.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.maximum, numpy.maximum, Max"""

    def minimum(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The smaller of x and y; NaN if either is.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.minimum, numpy.minimum, Min"""

    def fmax(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The larger of x and y; the other one if one is NaN.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmax, numpy.fmax"""

    def fmin(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The smaller of x and y; the other one if one is NaN.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmin, numpy.fmin"""

    def atan2(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The angle of the point (y, x), x being the ordinate, as C has it.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.atan2, numpy.arctan2"""

    def eq(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x equals y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.eq, numpy.equal, Equal"""

    def ne(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x differs from y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.ne, numpy.not_equal"""

    def lt(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x is less than y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lt, numpy.less, Less"""

    def le(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x is at most y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.le, numpy.less_equal, LessOrEqual"""

    def gt(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x is greater than y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.gt, numpy.greater, Greater"""

    def ge(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x is at least y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.ge, numpy.greater_equal, GreaterOrEqual"""

    def logical_and(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x and y are both not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_and, numpy.logical_and, And"""

    def logical_or(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether x or y is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_or, numpy.logical_or, Or"""

    def logical_xor(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """Whether exactly one of x and y is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_xor, numpy.logical_xor, Xor"""

    def bitwise_and(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The bits set in both x and y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_and, numpy.bitwise_and, BitwiseAnd"""

    def bitwise_or(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The bits set in x or y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_or, numpy.bitwise_or, BitwiseOr"""

    def bitwise_xor(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The bits set in exactly one of x and y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_xor, numpy.bitwise_xor, BitwiseXor"""

    def shift_left(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x shifted left by y bits; 0 if y is negative or all bits leave.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_left_shift, numpy.left_shift"""

    def shift_right(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """x shifted right by y bits, keeping the sign.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_right_shift, numpy.right_shift"""

    def where(self, /, condition: Tensor | Scalar, y: Tensor | Scalar, z: Tensor | Scalar) -> Var:
        """y where the condition is true, else z.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.where, numpy.where, Where"""

    def clamp(self, /, x: Tensor | Scalar, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Var:
        """x, at least min and at most max; NaN stays NaN.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.clamp, numpy.clip, Clip"""

    def lerp(self, /, start: Tensor, end: Tensor, weight: Tensor | Scalar) -> Var:
        """From start to end by weight.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lerp"""

    def addcmul(self, /, x: Tensor, y: Tensor, z: Tensor, *, value: Real = 1.0) -> Var:
        """x + value y z.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.addcmul"""

    def acos(self, /, x: Tensor | Scalar) -> Var:
        """The angle whose cosine is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.acos, numpy.arccos, Acos"""

    def asin(self, /, x: Tensor | Scalar) -> Var:
        """The angle whose sine is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.asin, numpy.arcsin, Asin"""

    def atan(self, /, x: Tensor | Scalar) -> Var:
        """The angle whose tangent is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.atan, numpy.arctan, Atan"""

    def acosh(self, /, x: Tensor | Scalar) -> Var:
        """The inverse of cosh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.acosh, numpy.arccosh, Acosh"""

    def asinh(self, /, x: Tensor | Scalar) -> Var:
        """The inverse of sinh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.asinh, numpy.arcsinh, Asinh"""

    def atanh(self, /, x: Tensor | Scalar) -> Var:
        """The inverse of tanh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.atanh, numpy.arctanh, Atanh"""

    def cosh(self, /, x: Tensor | Scalar) -> Var:
        """The hyperbolic cosine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.cosh, numpy.cosh, Cosh"""

    def sinh(self, /, x: Tensor | Scalar) -> Var:
        """The hyperbolic sine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sinh, numpy.sinh, Sinh"""

    def erfc(self, /, x: Tensor | Scalar) -> Var:
        """1 - erf(x), exact where erf is near 1.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erfc"""

    def erfinv(self, /, x: Tensor | Scalar) -> Var:
        """The inverse of erf at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erfinv"""

    def lgamma(self, /, x: Tensor | Scalar) -> Var:
        """The logarithm of the magnitude of the gamma function at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.lgamma"""

    def digamma(self, /, x: Tensor | Scalar) -> Var:
        """The derivative of the logarithm of the gamma function at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.digamma"""

    def i0(self, /, x: Tensor | Scalar) -> Var:
        """The modified Bessel function of the first kind of order 0 at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.i0"""

    def copysign(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The magnitude of x with the sign of y; the sign of NaN is positive.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.copysign, numpy.copysign"""

    def hypot(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The length of the hypotenuse over x and y, without overflow between.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.hypot, numpy.hypot"""

    def gcd(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The greatest common divisor of x and y.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.gcd, numpy.gcd"""

    def lcm(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The least common multiple of x and y; 0 if one of them is.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lcm, numpy.lcm"""

    def igamma(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The regularised lower incomplete gamma function of order x at y.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.igamma"""

    def igammac(self, /, x: Tensor | Scalar, y: Tensor | Scalar) -> Var:
        """The regularised upper incomplete gamma function of order x at y.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.igammac"""

    def frexp(self, /, x: Tensor) -> list[Var]:
        """x as a mantissa of magnitude 0.5 up to 1, and the power of two (i32) that it is times.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.frexp, numpy.frexp"""

    def reduce_sum(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The sum over axes (none: all); integers and bools sum in i64.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.sum, numpy.sum, ReduceSum"""

    def reduce_mean(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The mean over axes (none: all); NaN over no elements.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.mean, numpy.mean, ReduceMean"""

    def reduce_max(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, allow_empty: bool = False) -> Var:
        """The largest element over axes (none: all); NaN if there is one. With allow_empty, the identity over no elements, else that raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.amax, numpy.max, ReduceMax"""

    def reduce_min(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, allow_empty: bool = False) -> Var:
        """The smallest element over axes (none: all); NaN if there is one. With allow_empty, the identity over no elements, else that raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.amin, numpy.min, ReduceMin"""

    def reduce_prod(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The product over axes (none: all); integers and bools multiply in i64.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.prod, numpy.prod, ReduceProd"""

    def reduce_any(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """Whether any element over axes (none: all) is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.any, numpy.any"""

    def reduce_all(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """Whether every element over axes (none: all) is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.all, numpy.all"""

    def argmax(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The position of the first largest element along one axis (none: in row-major order); NaN wins.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.argmax, numpy.argmax, ArgMax"""

    def argmin(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The position of the first smallest element along one axis (none: in row-major order); NaN wins.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.argmin, numpy.argmin, ArgMin"""

    def var(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, correction: Integer = 1) -> Var:
        """The variance over axes (none: all), divided by the count less the correction.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.var, numpy.var"""

    def std(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False, correction: Integer = 1) -> Var:
        """The standard deviation over axes (none: all), divided by the count less the correction.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.std, numpy.std"""

    def logsumexp(self, /, x: Tensor, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The logarithm of the sum of exp(x) over axes (none: all), without overflow.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.logsumexp, ReduceLogSumExp"""

    def reshape(self, /, x: Tensor, *, shape: Integers) -> Var:
        """x with another shape, in row-major order; one size may be -1. A view if the strides allow it.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        elsewhere: torch.reshape, numpy.reshape, Reshape"""

    def view(self, /, x: Tensor, *, shape: Integers) -> Var:
        """x with another shape, in row-major order; one size may be -1. Raises if that is no view.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        elsewhere: torch.Tensor.view"""

    def flatten(self, /, x: Tensor, *, start_axis: Integer = 0, end_axis: Integer = -1) -> Var:
        """The axes start_axis..end_axis of x merged into one.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        C6: start_axis and end_axis lie within the rank of x, in this order
        elsewhere: torch.flatten, Flatten"""

    def contiguous(self, /, x: Tensor) -> Var:
        """x in row-major order: itself if it is, else a copy.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.Tensor.contiguous, numpy.ascontiguousarray"""

    def permute(self, /, x: Tensor, *, axes: Integers) -> Var:
        """x with its axes in another order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: axes names every axis of x
        C3: no axis is named twice
        elsewhere: torch.permute, numpy.transpose, Transpose"""

    def transpose(self, /, x: Tensor, *, a: Integer, b: Integer) -> Var:
        """x with the axes a and b exchanged.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.transpose, numpy.swapaxes"""

    def expand(self, /, x: Tensor, *, shape: Integers) -> Var:
        """x with axes of size 1 repeated and axes added in front; -1 keeps a size.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: a size of x is 1 or equal to the new one
        C2: the new shape has at least the rank of x
        C3: sizes are not negative
        elsewhere: torch.Tensor.expand, numpy.broadcast_to, Expand"""

    def squeeze(self, /, x: Tensor, *, axes: Integers | None = None, strict: bool = False) -> Var:
        """x without the named axes (none: all) whose size is 1; with strict, the others raise.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: the axis has size 1
        elsewhere: torch.squeeze, numpy.squeeze, Squeeze"""

    def unsqueeze(self, /, x: Tensor, *, axis: Integer) -> Var:
        """x with an axis of size 1 inserted.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.unsqueeze, numpy.expand_dims, Unsqueeze"""

    def slice(self, /, x: Tensor, *, axis: Integer = 0, start: Integer | None = None, stop: Integer | None = None, step: Integer = 1) -> Var:
        """x[start:stop:step] along an axis, with Python's clamping; a negative step runs backwards.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: step is a constant other than 0
        elsewhere: Slice"""

    def select(self, /, x: Tensor, *, axis: Integer = 0, index: Integer) -> Var:
        """x[index] along an axis, which goes; a negative index counts from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: the index lies within the axis
        elsewhere: torch.select"""

    def diagonal(self, /, x: Tensor, *, offset: Integer = 0, a: Integer = 0, b: Integer = 1) -> Var:
        """The elements of x whose index along b is offset more than along a, as the last axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: a and b are two axes
        elsewhere: torch.diagonal, numpy.diagonal"""

    def narrow(self, /, x: Tensor, *, axis: Integer, start: Integer, length: Integer) -> Var:
        """length elements of x from start along an axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: length is not negative
        C3: start and start + length lie within the axis
        elsewhere: torch.narrow"""

    def split(self, /, x: Tensor, *, sizes: Integers, axis: Integer = 0) -> list[Var]:
        """x cut along an axis into pieces of the given sizes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: sizes are not negative
        C3: the sizes sum to the size of the axis
        elsewhere: torch.split, Split"""

    def clone(self, /, x: Tensor) -> Var:
        """A copy of x in fresh memory, its axes in the order of x's strides.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.clone, numpy.copy, Identity"""

    def concat(self, /, *parts: Tensor | Sequence[Tensor], axis: Integer = 0) -> Var:
        """The parts one after the other along an axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank
        C2: there is at least one part
        C3: all parts have one rank
        C4: the parts agree in the sizes that are not joined
        elsewhere: torch.cat, numpy.concatenate, Concat"""

    def stack(self, /, *parts: Tensor | Sequence[Tensor], axis: Integer = 0) -> Var:
        """The parts side by side along a new axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank
        C2: there is at least one part
        C3: all parts have one rank
        C4: the parts agree in the sizes that are not joined
        elsewhere: torch.stack, numpy.stack"""

    def pad(self, /, x: Tensor, *, before: Integers, after: Integers, value: Real = 0.0) -> Var:
        """x with `before` and `after` elements of a value added at the ends of each axis; negative counts cut.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: before and after name every axis of x
        C2: sizes are not negative
        elsewhere: torch.nn.functional.pad, numpy.pad, Pad"""

    def flip(self, /, x: Tensor, *, axes: Integers) -> Var:
        """x with the order of elements reversed along axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: no axis is named twice
        elsewhere: torch.flip"""

    def roll(self, /, x: Tensor, *, shifts: Integers, axes: Integers) -> Var:
        """x with its elements shifted along axes, the last ones coming in at the front.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: no axis is named twice
        C3: there is one shift for each axis
        elsewhere: torch.roll, numpy.roll"""

    def repeat(self, /, x: Tensor, *, counts: Integers) -> Var:
        """x repeated along each axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: there is a count for every axis of x
        C2: counts are not negative
        elsewhere: torch.Tensor.repeat, numpy.tile, Tile"""

    def matmul(self, /, x: Tensor, y: Tensor, *, dtype: DType | None = None) -> Var:
        """The matrix product over the last axes, vectors where the rank is 1, batches broadcast; beside NumPy, of bools the logical or of ands.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 1 or more
        C2: the last size of x equals the size of y that it is summed with
        C3: batch sizes are equal or one of them is 1
        elsewhere: torch.matmul, numpy.matmul, MatMul"""

    def batch_matmul(self, /, x: Tensor, y: Tensor, *, dtype: DType | None = None) -> Var:
        """The matrix product over the last two axes, batches broadcast; dtype f32 keeps the sums of f16 and bf16.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 2 or more
        C2: the last size of x equals the size of y that it is summed with
        C3: batch sizes are equal or one of them is 1
        elsewhere: torch.bmm"""

    def linear(self, /, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Var:
        """x times the transposed weight [N, K], plus bias.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 1 or more, weight rank 2
        C2: the last size of x equals the last size of weight
        C3: bias is a vector as long as weight has rows
        elsewhere: torch.nn.functional.linear"""

    def addmm(self, /, c: Tensor, x: Tensor, y: Tensor, *, beta: Real = 1.0, alpha: Real = 1.0) -> Var:
        """beta c + alpha x @ y for matrices.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 2
        C2: the last size of x equals the size of y that it is summed with
        C3: c broadcasts to the product
        elsewhere: torch.addmm, Gemm"""

    def outer(self, /, x: Tensor, y: Tensor) -> Var:
        """Every product of an element of x with one of y.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 1
        elsewhere: torch.outer, numpy.outer"""

    def softmax(self, /, x: Tensor, *, axis: Integer = -1) -> Var:
        """exp(x) over its sum along an axis, without overflow.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.softmax, Softmax"""

    def log_softmax(self, /, x: Tensor, *, axis: Integer = -1) -> Var:
        """The logarithm of softmax, without its loss of digits.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.log_softmax, LogSoftmax"""

    def layer_norm(self, /, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, normalized_ndim: Integer = 1, eps: Real = 1e-05) -> Var:
        """x less its mean over its standard deviation along the last axes, times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: normalized_ndim lies between 1 and the rank of x
        C2: weight and bias have the sizes of the last normalized_ndim axes of x
        elsewhere: torch.nn.functional.layer_norm, LayerNormalization"""

    def rms_norm(self, /, x: Tensor, weight: Tensor | None = None, *, normalized_ndim: Integer = 1, eps: Real | None = None) -> Var:
        """x over its root mean square along the last axes, times weight; eps none is that of f32 (of f64).

        dtypes: float16, bfloat16, float32, float64
        C1: normalized_ndim lies between 1 and the rank of x
        C2: weight and bias have the sizes of the last normalized_ndim axes of x
        elsewhere: torch.nn.functional.rms_norm, RMSNormalization"""

    def batch_norm(self, /, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: Real = 1e-05) -> Var:
        """x less a given mean over the root of a given variance along axis 1, times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the parameters are vectors as long as axis 1 of x
        elsewhere: torch.nn.functional.batch_norm, BatchNormalization"""

    def group_norm(self, /, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, groups: Integer, eps: Real = 1e-05) -> Var:
        """x standardised within groups of channels (axis 1), times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the parameters are vectors as long as axis 1 of x
        C3: groups divides the channels
        elsewhere: torch.nn.functional.group_norm, GroupNormalization"""

    def normalize(self, /, x: Tensor, *, axis: Integer = 1, eps: Real = 1e-12) -> Var:
        """x over its Euclidean norm along an axis, at least eps.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.nn.functional.normalize"""

    def sdpa(self, /, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None, *, is_causal: bool = False, scale: Real | None = None, fully_masked: str = 'zero') -> Var:
        """softmax(scale q k^T + mask) v over [batch, heads, sequence, depth]; mask is bool (true: attend) or added, lengths cuts the keys of each batch; fully_masked ("zero" or "nan") is what a row without keys gives.

        dtypes: float16, bfloat16, float32, float64
        C1: q, k and v have rank 4
        C2: q, k and v have one batch size
        C3: k and v have the same heads, and their number divides that of q
        C4: q and k have one depth
        C5: k and v have one length
        C6: there is no mask with is_causal
        C7: the mask broadcasts to [batch, heads, queries, keys]
        C8: lengths has one entry for each batch
        C9: fully_masked is "zero" or "nan"
        elsewhere: torch.nn.functional.scaled_dot_product_attention, Attention"""

    def gather(self, /, x: Tensor, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """x at the index along an axis, for every place of index; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index has the rank of x (0 counts as 1), or no elements
        C3: index is not larger than x along the other axes
        elsewhere: torch.gather, numpy.take_along_axis, GatherElements"""

    def index_select(self, /, x: Tensor, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """The slices of x that index names along an axis; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index has rank 0 or 1
        elsewhere: torch.index_select"""

    def take(self, /, x: Tensor, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """The slices of x that index names along an axis, in the shape of index; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: numpy.take, Gather"""

    def embedding(self, /, ids: Tensor, table: Tensor, *, wrap: bool = False) -> Var:
        """The rows of a table that ids name.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: table has rank 2
        elsewhere: torch.nn.functional.embedding"""

    def embedding_bag(self, /, ids: Tensor, table: Tensor, *, mode: str = 'mean', wrap: bool = False) -> Var:
        """The sum, mean or maximum of the rows of a table that each row of ids names.

        dtypes: float16, bfloat16, float32, float64
        C1: ids and table have rank 2
        C2: mode is "sum", "mean" or "max"
        C3: the bags of a maximum are not empty
        elsewhere: torch.nn.functional.embedding_bag"""

    def embedding_bag_offsets(self, /, ids: Tensor, offsets: Tensor, table: Tensor, *, mode: str = 'mean', wrap: bool = False) -> Var:
        """The sum, mean or maximum of table rows over the bags that offsets, from 0 on, cut ids into; an empty bag gives 0.

        dtypes: float16, bfloat16, float32, float64
        C1: ids and offsets have rank 1, table rank 2
        C2: mode is "sum", "mean" or "max"
        elsewhere: torch.nn.functional.embedding_bag"""

    def tril(self, /, x: Tensor, *, diagonal: Integer = 0) -> Var:
        """x with 0 above a diagonal of its last two axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        elsewhere: torch.tril, numpy.tril, Trilu"""

    def triu(self, /, x: Tensor, *, diagonal: Integer = 0) -> Var:
        """x with 0 below a diagonal of its last two axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        elsewhere: torch.triu, numpy.triu"""

    def masked_fill(self, /, x: Tensor, mask: Tensor, value: Tensor | Scalar) -> Var:
        """value where mask is true, else x; the dtype is that of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: value has rank 0
        elsewhere: torch.masked_fill"""

    def cumsum(self, /, x: Tensor, *, axis: Integer = -1, dtype: DType | None = None) -> Var:
        """The sums of the first elements along an axis; integers are summed as i64.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cumsum, numpy.cumsum, CumSum"""

    def cumprod(self, /, x: Tensor, *, axis: Integer = -1, dtype: DType | None = None) -> Var:
        """The products of the first elements along an axis; integers are multiplied as i64.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cumprod, numpy.cumprod"""

    def logcumsumexp(self, /, x: Tensor, *, axis: Integer = -1) -> Var:
        """The logarithms of the sums of the first elements' exponentials along an axis.

        dtypes: float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.logcumsumexp"""

    def cummax(self, /, x: Tensor, *, axis: Integer = -1) -> list[Var]:
        """The greatest of the first elements along an axis, and the last place it has; NaN stays.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cummax"""

    def cummin(self, /, x: Tensor, *, axis: Integer = -1) -> list[Var]:
        """The least of the first elements along an axis, and the last place it has; NaN stays.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cummin"""

    def sort(self, /, x: Tensor, *, axis: Integer = -1, descending: bool = False) -> list[Var]:
        """The elements along an axis in order, and the places they had. Equal ones keep theirs; NaN is the greatest.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.sort"""

    def argsort(self, /, x: Tensor, *, axis: Integer = -1, descending: bool = False) -> Var:
        """The places of the elements along an axis in their order, as sort has them.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.argsort, numpy.argsort"""

    def topk(self, /, x: Tensor, *, k: Integer, axis: Integer = -1, largest: bool = True) -> list[Var]:
        """The k greatest (or least) elements along an axis in order, and their places.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        C2: k lies in 0..size of the axis
        elsewhere: torch.topk, TopK"""

    def nonzero(self, /, x: Tensor) -> Var:
        """The indices of the elements that are not zero, a row each, in row-major order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nonzero, numpy.argwhere"""

    def mask_select(self, /, x: Tensor, mask: Tensor) -> Var:
        """The elements (or slices, of a mask of lower rank) of x where a mask is true, in order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the rank of mask is at most that of x
        C2: mask has the first sizes of x
        elsewhere: Compress"""

    def scatter(self, /, x: Tensor, index: Tensor, source: Tensor | Scalar, *, axis: Integer = 0, reduce: str = 'none', include_self: bool = True) -> Var:
        """x with the elements of source put at the index along an axis, for every place of index. reduce says how what goes to one place is combined, with the element of x too if include_self: "none" (the last one stays), "sum", "prod", "mean", "amax" or "amin".

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index and source have the rank of x (0 counts as 1), or index no elements
        C3: index is not larger than source, nor than x along the other axes
        C4: reduce is "none", "sum", "prod", "mean", "amax" or "amin"
        elsewhere: torch.scatter, ScatterElements"""

    def index_put(self, /, x: Tensor, values: Tensor | Scalar, *indices: Tensor | Sequence[Tensor], axis: Integer = 0, accumulate: bool = False, wrap: bool = True) -> Var:
        """x with values, broadcast, put at the places that the index tensors name together, one for each axis from axis on; or added there. With wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axes of the index tensors lie within the rank of x
        C2: aligned at the last axis, sizes are equal or one of them is 1
        C3: values are broadcast to what is chosen
        elsewhere: torch.index_put"""

    def searchsorted(self, /, sorted: Tensor, values: Tensor | Scalar, *, right: bool = False) -> Var:
        """The places at which values can be put into rows that are in order: before equal ones, or with right behind them. NaN is the greatest.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: sorted has rank 1, or that of values
        C2: sorted and values have the same sizes but for the last
        elsewhere: torch.searchsorted, numpy.searchsorted"""

    def bincount(self, /, x: Tensor, weights: Tensor | None = None, *, minlength: Integer = 0) -> Var:
        """How often each of 0, 1, ... occurs in x, or the sum of the weights where it does.

        dtypes: uint8, int8, int32, int64
        C1: x and weights have rank 1
        C2: weights have the size of x
        C3: minlength is not negative
        elsewhere: torch.bincount, numpy.bincount"""

    def repeat_index(self, /, repeats: Tensor) -> Var:
        """0 as often as the first element of repeats says, 1 as the second, and so on.

        dtypes: uint8, int8, int32, int64
        C1: repeats has rank 1
        elsewhere: torch.repeat_interleave"""

    def unique(self, /, x: Tensor, *, consecutive: bool = False, equal_nan: bool = False) -> list[Var]:
        """The elements of x in order, each once; for each element of x its place among them; and how often each occurs. With consecutive, elements are in the order of x and only neighbours count as one. NaN are equal if equal_nan.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.unique, numpy.unique"""

    def segment_reduce(self, /, x: Tensor, lengths: Tensor, *, reduce: str, initial: Real | None = None) -> Var:
        """The rows of x by segments of the given lengths, each reduced to one row: "sum", "prod", "mean", "amax" or "amin". initial is what a segment begins with.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 1 or more, lengths rank 1
        C2: reduce is "sum", "prod", "mean", "amax" or "amin"
        elsewhere: torch.segment_reduce"""

    def nms(self, /, boxes: Tensor, scores: Tensor, *, iou_threshold: Real = 0.5) -> Var:
        """The boxes (x1, y1, x2, y2), by falling score, that no kept one before covers: their intersection over union is at most iou_threshold.

        dtypes: float32, float64
        C1: boxes have rank 2, scores rank 1
        C2: a box has four sides
        C3: there is a score for each box
        elsewhere: torchvision.ops.nms"""

    def full(self, /, value: Tensor | Scalar, *, shape: Integers, dtype: DType | None = None) -> Var:
        """A tensor of one value; dtype none is that of the value.

        dtypes: float32
        C1: sizes are not negative
        C2: the value has rank 0
        elsewhere: torch.full, numpy.full, ConstantOfShape"""

    def zeros(self, /, *, shape: Integers, dtype: DType = 'float32') -> Var:
        """A tensor of zeros.

        C1: sizes are not negative
        elsewhere: torch.zeros, numpy.zeros"""

    def ones(self, /, *, shape: Integers, dtype: DType = 'float32') -> Var:
        """A tensor of ones.

        C1: sizes are not negative
        elsewhere: torch.ones, numpy.ones"""

    def full_like(self, /, x: Tensor, value: Tensor | Scalar, *, dtype: DType | None = None) -> Var:
        """A tensor of one value with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the value has rank 0
        elsewhere: torch.full_like, numpy.full_like"""

    def zeros_like(self, /, x: Tensor, *, dtype: DType | None = None) -> Var:
        """A tensor of zeros with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.zeros_like, numpy.zeros_like"""

    def ones_like(self, /, x: Tensor, *, dtype: DType | None = None) -> Var:
        """A tensor of ones with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.ones_like, numpy.ones_like"""

    def arange(self, /, *, start: Integer = 0, stop: Integer, step: Integer = 1, dtype: DType = 'int64') -> Var:
        """start, start + step, ... as long as it is before stop.

        C1: step is a constant other than 0
        elsewhere: torch.arange, numpy.arange, Range"""

    def eye(self, /, *, rows: Integer, columns: Integer | None = None, dtype: DType = 'float32') -> Var:
        """A matrix with ones on its diagonal.

        C1: sizes are not negative
        elsewhere: torch.eye, numpy.eye, EyeLike"""

    def assign(self, /, target: Tensor, source: Tensor | Scalar) -> Var:
        """Writes the source, broadcast and converted, into the target.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the source broadcasts to the target
        C2: no two elements of the target share memory, unless the source is the target
        writes its first operand
        elsewhere: torch.Tensor.copy_, numpy.copyto"""

    def fill_(self, /, target: Tensor, value: Tensor | Scalar) -> Var:
        """Writes one value into every element of the target.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the value has rank 0
        C2: no two elements of the target share memory, unless a number is written
        writes its first operand
        elsewhere: torch.Tensor.fill_, numpy.ndarray.fill"""

    def add_(self, /, x: Tensor, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """As add, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.add_"""

    def sub_(self, /, x: Tensor, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """As sub, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sub_"""

    def mul_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As mul, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.mul_"""

    def div_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As div, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.div_"""

    def floor_divide_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As floor_divide, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.floor_divide_"""

    def remainder_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As remainder, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.remainder_"""

    def fmod_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As fmod, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.fmod_"""

    def pow_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As pow, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.pow_"""

    def bitwise_and_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As bitwise_and, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_and_"""

    def bitwise_or_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As bitwise_or, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_or_"""

    def bitwise_xor_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As bitwise_xor, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_xor_"""

    def shift_left_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As shift_left, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_left_shift_"""

    def shift_right_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As shift_right, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_right_shift_"""

    def clamp_(self, /, x: Tensor, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Var:
        """As clamp, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.clamp_"""

    def lerp_(self, /, start: Tensor, end: Tensor, weight: Tensor | Scalar) -> Var:
        """As lerp, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.lerp_"""

    def addcmul_(self, /, x: Tensor, y: Tensor, z: Tensor, *, value: Real = 1.0) -> Var:
        """As addcmul, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.addcmul_"""

    def neg_(self, /, x: Tensor) -> Var:
        """As neg, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.neg_"""

    def abs_(self, /, x: Tensor) -> Var:
        """As abs, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.abs_"""

    def sqrt_(self, /, x: Tensor) -> Var:
        """As sqrt, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sqrt_"""

    def rsqrt_(self, /, x: Tensor) -> Var:
        """As rsqrt, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.rsqrt_"""

    def reciprocal_(self, /, x: Tensor) -> Var:
        """As reciprocal, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.reciprocal_"""

    def square_(self, /, x: Tensor) -> Var:
        """As square, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.square_"""

    def exp_(self, /, x: Tensor) -> Var:
        """As exp, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.exp_"""

    def exp2_(self, /, x: Tensor) -> Var:
        """As exp2, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.exp2_"""

    def expm1_(self, /, x: Tensor) -> Var:
        """As expm1, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.expm1_"""

    def log_(self, /, x: Tensor) -> Var:
        """As log, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log_"""

    def log2_(self, /, x: Tensor) -> Var:
        """As log2, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log2_"""

    def log10_(self, /, x: Tensor) -> Var:
        """As log10, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log10_"""

    def log1p_(self, /, x: Tensor) -> Var:
        """As log1p, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log1p_"""

    def sin_(self, /, x: Tensor) -> Var:
        """As sin, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sin_"""

    def cos_(self, /, x: Tensor) -> Var:
        """As cos, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.cos_"""

    def tan_(self, /, x: Tensor) -> Var:
        """As tan, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.tan_"""

    def tanh_(self, /, x: Tensor) -> Var:
        """As tanh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.tanh_"""

    def erf_(self, /, x: Tensor) -> Var:
        """As erf, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erf_"""

    def sigmoid_(self, /, x: Tensor) -> Var:
        """As sigmoid, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sigmoid_"""

    def relu_(self, /, x: Tensor) -> Var:
        """As relu, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.relu_"""

    def relu6_(self, /, x: Tensor) -> Var:
        """As relu6, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def silu_(self, /, x: Tensor) -> Var:
        """As silu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def elu_(self, /, x: Tensor, *, alpha: Real = 1.0) -> Var:
        """As elu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def leaky_relu_(self, /, x: Tensor, *, negative_slope: Real = 0.01) -> Var:
        """As leaky_relu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardswish_(self, /, x: Tensor) -> Var:
        """As hardswish, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardsigmoid_(self, /, x: Tensor) -> Var:
        """As hardsigmoid, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardtanh_(self, /, x: Tensor, *, min: Real = -1.0, max: Real = 1.0) -> Var:
        """As hardtanh, written into the first operand.

        dtypes: int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def floor_(self, /, x: Tensor) -> Var:
        """As floor, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.floor_"""

    def ceil_(self, /, x: Tensor) -> Var:
        """As ceil, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.ceil_"""

    def round_(self, /, x: Tensor) -> Var:
        """As round, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.round_"""

    def trunc_(self, /, x: Tensor) -> Var:
        """As trunc, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.trunc_"""

    def bitwise_not_(self, /, x: Tensor) -> Var:
        """As bitwise_not, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_not_"""

    def acos_(self, /, x: Tensor) -> Var:
        """As acos, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.acos_"""

    def asin_(self, /, x: Tensor) -> Var:
        """As asin, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.asin_"""

    def atan_(self, /, x: Tensor) -> Var:
        """As atan, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.atan_"""

    def acosh_(self, /, x: Tensor) -> Var:
        """As acosh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.acosh_"""

    def asinh_(self, /, x: Tensor) -> Var:
        """As asinh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.asinh_"""

    def atanh_(self, /, x: Tensor) -> Var:
        """As atanh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.atanh_"""

    def cosh_(self, /, x: Tensor) -> Var:
        """As cosh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.cosh_"""

    def sinh_(self, /, x: Tensor) -> Var:
        """As sinh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sinh_"""

    def erfc_(self, /, x: Tensor) -> Var:
        """As erfc, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erfc_"""

    def erfinv_(self, /, x: Tensor) -> Var:
        """As erfinv, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erfinv_"""

    def lgamma_(self, /, x: Tensor) -> Var:
        """As lgamma, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.lgamma_"""

    def digamma_(self, /, x: Tensor) -> Var:
        """As digamma, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.digamma_"""

    def i0_(self, /, x: Tensor) -> Var:
        """As i0, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.i0_"""

    def copysign_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As copysign, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.copysign_"""

    def hypot_(self, /, x: Tensor, y: Tensor | Scalar) -> Var:
        """As hypot, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.hypot_"""

    def tril_(self, /, x: Tensor, *, diagonal: Integer = 0) -> Var:
        """As tril, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.tril_"""

    def triu_(self, /, x: Tensor, *, diagonal: Integer = 0) -> Var:
        """As triu, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.triu_"""

    def masked_fill_(self, /, x: Tensor, mask: Tensor, value: Tensor | Scalar) -> Var:
        """As masked_fill, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: value has rank 0
        C3: the result has the sizes of the first operand
        C4: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.masked_fill_"""

    def scatter_(self, /, x: Tensor, index: Tensor, source: Tensor | Scalar, *, axis: Integer = 0, reduce: str = 'none', include_self: bool = True) -> Var:
        """As scatter, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index and source have the rank of x (0 counts as 1), or index no elements
        C3: index is not larger than source, nor than x along the other axes
        C4: reduce is "none", "sum", "prod", "mean", "amax" or "amin"
        C5: the result has the sizes of the first operand
        C6: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.scatter_"""

    def index_put_(self, /, x: Tensor, values: Tensor | Scalar, *indices: Tensor | Sequence[Tensor], axis: Integer = 0, accumulate: bool = False, wrap: bool = True) -> Var:
        """As index_put, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axes of the index tensors lie within the rank of x
        C2: aligned at the last axis, sizes are equal or one of them is 1
        C3: values are broadcast to what is chosen
        C4: the result has the sizes of the first operand
        C5: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.index_put_"""

class VarOps:
    """Every op that has an operand as a method of its first one."""

    def neg(self) -> Var:
        """Minus x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.neg, numpy.negative, Neg"""

    def abs(self) -> Var:
        """The magnitude of x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.abs, numpy.absolute, Abs"""

    def sign(self, /, *, keep_nan: bool = True) -> Var:
        """-1, 0 or 1 by the sign of x; NaN stays NaN, or gives 0 without keep_nan (as torch has it).

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sign, numpy.sign, Sign"""

    def sqrt(self) -> Var:
        """The square root of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sqrt, numpy.sqrt, Sqrt"""

    def rsqrt(self) -> Var:
        """One over the square root of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.rsqrt"""

    def reciprocal(self) -> Var:
        """One over x. Beside NumPy, integers stay integers, rounded towards zero, and a zero raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.reciprocal, numpy.reciprocal, Reciprocal"""

    def square(self) -> Var:
        """x times x; a bool becomes an integer.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.square, numpy.square"""

    def exp(self) -> Var:
        """e to the power x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.exp, numpy.exp, Exp"""

    def exp2(self) -> Var:
        """2 to the power x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.exp2, numpy.exp2"""

    def expm1(self) -> Var:
        """e to the power x, minus 1, exact near 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.expm1, numpy.expm1"""

    def log(self) -> Var:
        """The natural logarithm of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log, numpy.log, Log"""

    def log2(self) -> Var:
        """The logarithm of x to base 2.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log2, numpy.log2"""

    def log10(self) -> Var:
        """The logarithm of x to base 10.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log10, numpy.log10"""

    def log1p(self) -> Var:
        """The natural logarithm of 1 + x, exact near 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.log1p, numpy.log1p"""

    def sin(self) -> Var:
        """The sine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sin, numpy.sin, Sin"""

    def cos(self) -> Var:
        """The cosine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.cos, numpy.cos, Cos"""

    def tan(self) -> Var:
        """The tangent of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.tan, numpy.tan, Tan"""

    def tanh(self) -> Var:
        """The hyperbolic tangent of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.tanh, numpy.tanh, Tanh"""

    def erf(self) -> Var:
        """The error function of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erf, Erf"""

    def sigmoid(self) -> Var:
        """1 / (1 + exp(-x)).

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sigmoid, Sigmoid"""

    def relu(self) -> Var:
        """x where x is positive, else 0; NaN stays NaN.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.relu, Relu"""

    def relu6(self) -> Var:
        """x clamped to 0..6.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.relu6"""

    def silu(self) -> Var:
        """x times sigmoid(x).

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.silu"""

    def gelu(self, /, *, approximate: str = 'none') -> Var:
        """x times the normal distribution function at x; approximate is "none" (erf) or "tanh".

        dtypes: float16, bfloat16, float32, float64
        C1: approximate is "none" or "tanh"
        elsewhere: torch.nn.functional.gelu, Gelu"""

    def softplus(self, /, *, beta: Real = 1.0, threshold: Real = 20.0) -> Var:
        """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.softplus, Softplus"""

    def elu(self, /, *, alpha: Real = 1.0) -> Var:
        """x where x is positive, else alpha (exp(x) - 1).

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.elu, Elu"""

    def leaky_relu(self, /, *, negative_slope: Real = 0.01) -> Var:
        """x where x is positive, else negative_slope x.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.leaky_relu, LeakyRelu"""

    def hardswish(self) -> Var:
        """x times (x + 3 clamped to 0..6) / 6.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardswish, HardSwish"""

    def hardsigmoid(self) -> Var:
        """x + 3 clamped to 0..6, over 6.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardsigmoid"""

    def hardtanh(self, /, *, min: Real = -1.0, max: Real = 1.0) -> Var:
        """x clamped to min..max.

        dtypes: int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nn.functional.hardtanh"""

    def floor(self) -> Var:
        """The largest whole number not above x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.floor, numpy.floor, Floor"""

    def ceil(self) -> Var:
        """The smallest whole number not below x.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.ceil, numpy.ceil, Ceil"""

    def round(self) -> Var:
        """The nearest whole number, ties to even.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.round, numpy.round, Round"""

    def trunc(self) -> Var:
        """x without its fraction.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.trunc, numpy.trunc"""

    def isnan(self) -> Var:
        """Whether x is not a number.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isnan, numpy.isnan, IsNaN"""

    def isinf(self) -> Var:
        """Whether x is infinite.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isinf, numpy.isinf, IsInf"""

    def isfinite(self) -> Var:
        """Whether x is a finite number.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.isfinite, numpy.isfinite"""

    def logical_not(self) -> Var:
        """Whether x is zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.logical_not, numpy.logical_not, Not"""

    def bitwise_not(self) -> Var:
        """Every bit of x inverted; logical for bools.

        dtypes: bool, uint8, int8, int32, int64
        elsewhere: torch.bitwise_not, numpy.bitwise_not, BitwiseNot"""

    def cast(self, /, *, dtype: DType) -> Var:
        """x converted to another dtype: floats to integers truncate, to bool is x != 0.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.Tensor.to, numpy.ndarray.astype, Cast"""

    def add(self, /, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """x + alpha y; logical or of bools.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.add, numpy.add, Add"""

    def sub(self, /, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """x - alpha y.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.sub, numpy.subtract, Sub"""

    def mul(self, /, y: Tensor | Scalar) -> Var:
        """x times y; logical and of bools.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.mul, numpy.multiply, Mul"""

    def div(self, /, y: Tensor | Scalar) -> Var:
        """x over y as a float, whatever the dtypes are.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.div, numpy.divide, Div"""

    def floor_divide(self, /, y: Tensor | Scalar) -> Var:
        """x over y, rounded towards minus infinity; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.floor_divide, numpy.floor_divide"""

    def remainder(self, /, y: Tensor | Scalar) -> Var:
        """x - y floor(x / y): the rest with the sign of y; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.remainder, numpy.remainder, Mod"""

    def fmod(self, /, y: Tensor | Scalar) -> Var:
        """The rest of x over y with the sign of x; an integer zero divisor raises, beside NumPy it gives 0.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmod, numpy.fmod"""

    def pow(self, /, y: Tensor | Scalar) -> Var:
        """x to the power y; integers wrap, and a negative power of an integer is 0 except of 1 and -1.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.pow, numpy.power, Pow"""

    def maximum(self, /, y: Tensor | Scalar) -> Var:
        """The larger of x and y; NaN if either is.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.maximum, numpy.maximum, Max"""

    def minimum(self, /, y: Tensor | Scalar) -> Var:
        """The smaller of x and y; NaN if either is.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.minimum, numpy.minimum, Min"""

    def fmax(self, /, y: Tensor | Scalar) -> Var:
        """The larger of x and y; the other one if one is NaN.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmax, numpy.fmax"""

    def fmin(self, /, y: Tensor | Scalar) -> Var:
        """The smaller of x and y; the other one if one is NaN.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.fmin, numpy.fmin"""

    def atan2(self, /, y: Tensor | Scalar) -> Var:
        """The angle of the point (y, x), x being the ordinate, as C has it.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.atan2, numpy.arctan2"""

    def eq(self, /, y: Tensor | Scalar) -> Var:
        """Whether x equals y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.eq, numpy.equal, Equal"""

    def ne(self, /, y: Tensor | Scalar) -> Var:
        """Whether x differs from y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.ne, numpy.not_equal"""

    def lt(self, /, y: Tensor | Scalar) -> Var:
        """Whether x is less than y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lt, numpy.less, Less"""

    def le(self, /, y: Tensor | Scalar) -> Var:
        """Whether x is at most y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.le, numpy.less_equal, LessOrEqual"""

    def gt(self, /, y: Tensor | Scalar) -> Var:
        """Whether x is greater than y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.gt, numpy.greater, Greater"""

    def ge(self, /, y: Tensor | Scalar) -> Var:
        """Whether x is at least y.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.ge, numpy.greater_equal, GreaterOrEqual"""

    def logical_and(self, /, y: Tensor | Scalar) -> Var:
        """Whether x and y are both not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_and, numpy.logical_and, And"""

    def logical_or(self, /, y: Tensor | Scalar) -> Var:
        """Whether x or y is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_or, numpy.logical_or, Or"""

    def logical_xor(self, /, y: Tensor | Scalar) -> Var:
        """Whether exactly one of x and y is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.logical_xor, numpy.logical_xor, Xor"""

    def bitwise_and(self, /, y: Tensor | Scalar) -> Var:
        """The bits set in both x and y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_and, numpy.bitwise_and, BitwiseAnd"""

    def bitwise_or(self, /, y: Tensor | Scalar) -> Var:
        """The bits set in x or y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_or, numpy.bitwise_or, BitwiseOr"""

    def bitwise_xor(self, /, y: Tensor | Scalar) -> Var:
        """The bits set in exactly one of x and y.

        dtypes: bool, uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_xor, numpy.bitwise_xor, BitwiseXor"""

    def shift_left(self, /, y: Tensor | Scalar) -> Var:
        """x shifted left by y bits; 0 if y is negative or all bits leave.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_left_shift, numpy.left_shift"""

    def shift_right(self, /, y: Tensor | Scalar) -> Var:
        """x shifted right by y bits, keeping the sign.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.bitwise_right_shift, numpy.right_shift"""

    def where(self, /, y: Tensor | Scalar, z: Tensor | Scalar) -> Var:
        """y where the condition is true, else z.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.where, numpy.where, Where"""

    def clamp(self, /, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Var:
        """x, at least min and at most max; NaN stays NaN.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.clamp, numpy.clip, Clip"""

    def lerp(self, /, end: Tensor, weight: Tensor | Scalar) -> Var:
        """From start to end by weight.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lerp"""

    def addcmul(self, /, y: Tensor, z: Tensor, *, value: Real = 1.0) -> Var:
        """x + value y z.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.addcmul"""

    def acos(self) -> Var:
        """The angle whose cosine is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.acos, numpy.arccos, Acos"""

    def asin(self) -> Var:
        """The angle whose sine is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.asin, numpy.arcsin, Asin"""

    def atan(self) -> Var:
        """The angle whose tangent is x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.atan, numpy.arctan, Atan"""

    def acosh(self) -> Var:
        """The inverse of cosh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.acosh, numpy.arccosh, Acosh"""

    def asinh(self) -> Var:
        """The inverse of sinh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.asinh, numpy.arcsinh, Asinh"""

    def atanh(self) -> Var:
        """The inverse of tanh at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.atanh, numpy.arctanh, Atanh"""

    def cosh(self) -> Var:
        """The hyperbolic cosine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.cosh, numpy.cosh, Cosh"""

    def sinh(self) -> Var:
        """The hyperbolic sine of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.sinh, numpy.sinh, Sinh"""

    def erfc(self) -> Var:
        """1 - erf(x), exact where erf is near 1.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erfc"""

    def erfinv(self) -> Var:
        """The inverse of erf at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.erfinv"""

    def lgamma(self) -> Var:
        """The logarithm of the magnitude of the gamma function at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.lgamma"""

    def digamma(self) -> Var:
        """The derivative of the logarithm of the gamma function at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.digamma"""

    def i0(self) -> Var:
        """The modified Bessel function of the first kind of order 0 at x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.i0"""

    def copysign(self, /, y: Tensor | Scalar) -> Var:
        """The magnitude of x with the sign of y; the sign of NaN is positive.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.copysign, numpy.copysign"""

    def hypot(self, /, y: Tensor | Scalar) -> Var:
        """The length of the hypotenuse over x and y, without overflow between.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.hypot, numpy.hypot"""

    def gcd(self, /, y: Tensor | Scalar) -> Var:
        """The greatest common divisor of x and y.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.gcd, numpy.gcd"""

    def lcm(self, /, y: Tensor | Scalar) -> Var:
        """The least common multiple of x and y; 0 if one of them is.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.lcm, numpy.lcm"""

    def igamma(self, /, y: Tensor | Scalar) -> Var:
        """The regularised lower incomplete gamma function of order x at y.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.igamma"""

    def igammac(self, /, y: Tensor | Scalar) -> Var:
        """The regularised upper incomplete gamma function of order x at y.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        elsewhere: torch.igammac"""

    def frexp(self) -> list[Var]:
        """x as a mantissa of magnitude 0.5 up to 1, and the power of two (i32) that it is times.

        dtypes: float16, bfloat16, float32, float64
        elsewhere: torch.frexp, numpy.frexp"""

    def reduce_sum(self, /, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The sum over axes (none: all); integers and bools sum in i64.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.sum, numpy.sum, ReduceSum"""

    def reduce_mean(self, /, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The mean over axes (none: all); NaN over no elements.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.mean, numpy.mean, ReduceMean"""

    def reduce_max(self, /, *, axes: Integers | None = None, keepdim: bool = False, allow_empty: bool = False) -> Var:
        """The largest element over axes (none: all); NaN if there is one. With allow_empty, the identity over no elements, else that raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.amax, numpy.max, ReduceMax"""

    def reduce_min(self, /, *, axes: Integers | None = None, keepdim: bool = False, allow_empty: bool = False) -> Var:
        """The smallest element over axes (none: all); NaN if there is one. With allow_empty, the identity over no elements, else that raises.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.amin, numpy.min, ReduceMin"""

    def reduce_prod(self, /, *, axes: Integers | None = None, keepdim: bool = False, dtype: DType | None = None) -> Var:
        """The product over axes (none: all); integers and bools multiply in i64.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.prod, numpy.prod, ReduceProd"""

    def reduce_any(self, /, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """Whether any element over axes (none: all) is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.any, numpy.any"""

    def reduce_all(self, /, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """Whether every element over axes (none: all) is not zero.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.all, numpy.all"""

    def argmax(self, /, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The position of the first largest element along one axis (none: in row-major order); NaN wins.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.argmax, numpy.argmax, ArgMax"""

    def argmin(self, /, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The position of the first smallest element along one axis (none: in row-major order); NaN wins.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.argmin, numpy.argmin, ArgMin"""

    def var(self, /, *, axes: Integers | None = None, keepdim: bool = False, correction: Integer = 1) -> Var:
        """The variance over axes (none: all), divided by the count less the correction.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.var, numpy.var"""

    def std(self, /, *, axes: Integers | None = None, keepdim: bool = False, correction: Integer = 1) -> Var:
        """The standard deviation over axes (none: all), divided by the count less the correction.

        dtypes: float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.std, numpy.std"""

    def logsumexp(self, /, *, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """The logarithm of the sum of exp(x) over axes (none: all), without overflow.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: every axis lies within the rank of x
        C2: no axis is named twice
        C3: the reduced axes are not empty
        C4: axes is none or names one axis
        elsewhere: torch.logsumexp, ReduceLogSumExp"""

    def reshape(self, /, *, shape: Integers) -> Var:
        """x with another shape, in row-major order; one size may be -1. A view if the strides allow it.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        elsewhere: torch.reshape, numpy.reshape, Reshape"""

    def view(self, /, *, shape: Integers) -> Var:
        """x with another shape, in row-major order; one size may be -1. Raises if that is no view.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        elsewhere: torch.Tensor.view"""

    def flatten(self, /, *, start_axis: Integer = 0, end_axis: Integer = -1) -> Var:
        """The axes start_axis..end_axis of x merged into one.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the new shape holds as many elements as x
        C2: at most one size is -1
        C3: x has elements or the sizes beside a -1 are not 0
        C4: sizes are not negative
        C5: the strides of x allow the view
        C6: start_axis and end_axis lie within the rank of x, in this order
        elsewhere: torch.flatten, Flatten"""

    def contiguous(self) -> Var:
        """x in row-major order: itself if it is, else a copy.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.Tensor.contiguous, numpy.ascontiguousarray"""

    def permute(self, /, *, axes: Integers) -> Var:
        """x with its axes in another order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: axes names every axis of x
        C3: no axis is named twice
        elsewhere: torch.permute, numpy.transpose, Transpose"""

    def transpose(self, /, *, a: Integer, b: Integer) -> Var:
        """x with the axes a and b exchanged.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.transpose, numpy.swapaxes"""

    def expand(self, /, *, shape: Integers) -> Var:
        """x with axes of size 1 repeated and axes added in front; -1 keeps a size.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: a size of x is 1 or equal to the new one
        C2: the new shape has at least the rank of x
        C3: sizes are not negative
        elsewhere: torch.Tensor.expand, numpy.broadcast_to, Expand"""

    def squeeze(self, /, *, axes: Integers | None = None, strict: bool = False) -> Var:
        """x without the named axes (none: all) whose size is 1; with strict, the others raise.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: the axis has size 1
        elsewhere: torch.squeeze, numpy.squeeze, Squeeze"""

    def unsqueeze(self, /, *, axis: Integer) -> Var:
        """x with an axis of size 1 inserted.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.unsqueeze, numpy.expand_dims, Unsqueeze"""

    def slice(self, /, *, axis: Integer = 0, start: Integer | None = None, stop: Integer | None = None, step: Integer = 1) -> Var:
        """x[start:stop:step] along an axis, with Python's clamping; a negative step runs backwards.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: step is a constant other than 0
        elsewhere: Slice"""

    def select(self, /, *, axis: Integer = 0, index: Integer) -> Var:
        """x[index] along an axis, which goes; a negative index counts from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: the index lies within the axis
        elsewhere: torch.select"""

    def diagonal(self, /, *, offset: Integer = 0, a: Integer = 0, b: Integer = 1) -> Var:
        """The elements of x whose index along b is offset more than along a, as the last axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: a and b are two axes
        elsewhere: torch.diagonal, numpy.diagonal"""

    def narrow(self, /, *, axis: Integer, start: Integer, length: Integer) -> Var:
        """length elements of x from start along an axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: length is not negative
        C3: start and start + length lie within the axis
        elsewhere: torch.narrow"""

    def split(self, /, *, sizes: Integers, axis: Integer = 0) -> list[Var]:
        """x cut along an axis into pieces of the given sizes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: sizes are not negative
        C3: the sizes sum to the size of the axis
        elsewhere: torch.split, Split"""

    def clone(self) -> Var:
        """A copy of x in fresh memory, its axes in the order of x's strides.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.clone, numpy.copy, Identity"""

    def concat(self, /, *, axis: Integer = 0) -> Var:
        """The parts one after the other along an axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank
        C2: there is at least one part
        C3: all parts have one rank
        C4: the parts agree in the sizes that are not joined
        elsewhere: torch.cat, numpy.concatenate, Concat"""

    def stack(self, /, *, axis: Integer = 0) -> Var:
        """The parts side by side along a new axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank
        C2: there is at least one part
        C3: all parts have one rank
        C4: the parts agree in the sizes that are not joined
        elsewhere: torch.stack, numpy.stack"""

    def pad(self, /, *, before: Integers, after: Integers, value: Real = 0.0) -> Var:
        """x with `before` and `after` elements of a value added at the ends of each axis; negative counts cut.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: before and after name every axis of x
        C2: sizes are not negative
        elsewhere: torch.nn.functional.pad, numpy.pad, Pad"""

    def flip(self, /, *, axes: Integers) -> Var:
        """x with the order of elements reversed along axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: no axis is named twice
        elsewhere: torch.flip"""

    def roll(self, /, *, shifts: Integers, axes: Integers) -> Var:
        """x with its elements shifted along axes, the last ones coming in at the front.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: no axis is named twice
        C3: there is one shift for each axis
        elsewhere: torch.roll, numpy.roll"""

    def repeat(self, /, *, counts: Integers) -> Var:
        """x repeated along each axis.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: there is a count for every axis of x
        C2: counts are not negative
        elsewhere: torch.Tensor.repeat, numpy.tile, Tile"""

    def matmul(self, /, y: Tensor, *, dtype: DType | None = None) -> Var:
        """The matrix product over the last axes, vectors where the rank is 1, batches broadcast; beside NumPy, of bools the logical or of ands.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 1 or more
        C2: the last size of x equals the size of y that it is summed with
        C3: batch sizes are equal or one of them is 1
        elsewhere: torch.matmul, numpy.matmul, MatMul"""

    def batch_matmul(self, /, y: Tensor, *, dtype: DType | None = None) -> Var:
        """The matrix product over the last two axes, batches broadcast; dtype f32 keeps the sums of f16 and bf16.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 2 or more
        C2: the last size of x equals the size of y that it is summed with
        C3: batch sizes are equal or one of them is 1
        elsewhere: torch.bmm"""

    def linear(self, /, weight: Tensor, bias: Tensor | None = None) -> Var:
        """x times the transposed weight [N, K], plus bias.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 1 or more, weight rank 2
        C2: the last size of x equals the last size of weight
        C3: bias is a vector as long as weight has rows
        elsewhere: torch.nn.functional.linear"""

    def addmm(self, /, x: Tensor, y: Tensor, *, beta: Real = 1.0, alpha: Real = 1.0) -> Var:
        """beta c + alpha x @ y for matrices.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 2
        C2: the last size of x equals the size of y that it is summed with
        C3: c broadcasts to the product
        elsewhere: torch.addmm, Gemm"""

    def outer(self, /, y: Tensor) -> Var:
        """Every product of an element of x with one of y.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x and y have rank 1
        elsewhere: torch.outer, numpy.outer"""

    def softmax(self, /, *, axis: Integer = -1) -> Var:
        """exp(x) over its sum along an axis, without overflow.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.softmax, Softmax"""

    def log_softmax(self, /, *, axis: Integer = -1) -> Var:
        """The logarithm of softmax, without its loss of digits.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.log_softmax, LogSoftmax"""

    def layer_norm(self, /, weight: Tensor | None = None, bias: Tensor | None = None, *, normalized_ndim: Integer = 1, eps: Real = 1e-05) -> Var:
        """x less its mean over its standard deviation along the last axes, times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: normalized_ndim lies between 1 and the rank of x
        C2: weight and bias have the sizes of the last normalized_ndim axes of x
        elsewhere: torch.nn.functional.layer_norm, LayerNormalization"""

    def rms_norm(self, /, weight: Tensor | None = None, *, normalized_ndim: Integer = 1, eps: Real | None = None) -> Var:
        """x over its root mean square along the last axes, times weight; eps none is that of f32 (of f64).

        dtypes: float16, bfloat16, float32, float64
        C1: normalized_ndim lies between 1 and the rank of x
        C2: weight and bias have the sizes of the last normalized_ndim axes of x
        elsewhere: torch.nn.functional.rms_norm, RMSNormalization"""

    def batch_norm(self, /, mean: Tensor, variance: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: Real = 1e-05) -> Var:
        """x less a given mean over the root of a given variance along axis 1, times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the parameters are vectors as long as axis 1 of x
        elsewhere: torch.nn.functional.batch_norm, BatchNormalization"""

    def group_norm(self, /, weight: Tensor | None = None, bias: Tensor | None = None, *, groups: Integer, eps: Real = 1e-05) -> Var:
        """x standardised within groups of channels (axis 1), times weight, plus bias.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the parameters are vectors as long as axis 1 of x
        C3: groups divides the channels
        elsewhere: torch.nn.functional.group_norm, GroupNormalization"""

    def normalize(self, /, *, axis: Integer = 1, eps: Real = 1e-12) -> Var:
        """x over its Euclidean norm along an axis, at least eps.

        dtypes: float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: torch.nn.functional.normalize"""

    def sdpa(self, /, k: Tensor, v: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None, *, is_causal: bool = False, scale: Real | None = None, fully_masked: str = 'zero') -> Var:
        """softmax(scale q k^T + mask) v over [batch, heads, sequence, depth]; mask is bool (true: attend) or added, lengths cuts the keys of each batch; fully_masked ("zero" or "nan") is what a row without keys gives.

        dtypes: float16, bfloat16, float32, float64
        C1: q, k and v have rank 4
        C2: q, k and v have one batch size
        C3: k and v have the same heads, and their number divides that of q
        C4: q and k have one depth
        C5: k and v have one length
        C6: there is no mask with is_causal
        C7: the mask broadcasts to [batch, heads, queries, keys]
        C8: lengths has one entry for each batch
        C9: fully_masked is "zero" or "nan"
        elsewhere: torch.nn.functional.scaled_dot_product_attention, Attention"""

    def gather(self, /, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """x at the index along an axis, for every place of index; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index has the rank of x (0 counts as 1), or no elements
        C3: index is not larger than x along the other axes
        elsewhere: torch.gather, numpy.take_along_axis, GatherElements"""

    def index_select(self, /, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """The slices of x that index names along an axis; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index has rank 0 or 1
        elsewhere: torch.index_select"""

    def take(self, /, index: Tensor, *, axis: Integer = 0, wrap: bool = False) -> Var:
        """The slices of x that index names along an axis, in the shape of index; with wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        elsewhere: numpy.take, Gather"""

    def embedding(self, /, table: Tensor, *, wrap: bool = False) -> Var:
        """The rows of a table that ids name.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: table has rank 2
        elsewhere: torch.nn.functional.embedding"""

    def embedding_bag(self, /, table: Tensor, *, mode: str = 'mean', wrap: bool = False) -> Var:
        """The sum, mean or maximum of the rows of a table that each row of ids names.

        dtypes: float16, bfloat16, float32, float64
        C1: ids and table have rank 2
        C2: mode is "sum", "mean" or "max"
        C3: the bags of a maximum are not empty
        elsewhere: torch.nn.functional.embedding_bag"""

    def embedding_bag_offsets(self, /, offsets: Tensor, table: Tensor, *, mode: str = 'mean', wrap: bool = False) -> Var:
        """The sum, mean or maximum of table rows over the bags that offsets, from 0 on, cut ids into; an empty bag gives 0.

        dtypes: float16, bfloat16, float32, float64
        C1: ids and offsets have rank 1, table rank 2
        C2: mode is "sum", "mean" or "max"
        elsewhere: torch.nn.functional.embedding_bag"""

    def tril(self, /, *, diagonal: Integer = 0) -> Var:
        """x with 0 above a diagonal of its last two axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        elsewhere: torch.tril, numpy.tril, Trilu"""

    def triu(self, /, *, diagonal: Integer = 0) -> Var:
        """x with 0 below a diagonal of its last two axes.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        elsewhere: torch.triu, numpy.triu"""

    def masked_fill(self, /, mask: Tensor, value: Tensor | Scalar) -> Var:
        """value where mask is true, else x; the dtype is that of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: value has rank 0
        elsewhere: torch.masked_fill"""

    def cumsum(self, /, *, axis: Integer = -1, dtype: DType | None = None) -> Var:
        """The sums of the first elements along an axis; integers are summed as i64.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cumsum, numpy.cumsum, CumSum"""

    def cumprod(self, /, *, axis: Integer = -1, dtype: DType | None = None) -> Var:
        """The products of the first elements along an axis; integers are multiplied as i64.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cumprod, numpy.cumprod"""

    def logcumsumexp(self, /, *, axis: Integer = -1) -> Var:
        """The logarithms of the sums of the first elements' exponentials along an axis.

        dtypes: float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.logcumsumexp"""

    def cummax(self, /, *, axis: Integer = -1) -> list[Var]:
        """The greatest of the first elements along an axis, and the last place it has; NaN stays.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cummax"""

    def cummin(self, /, *, axis: Integer = -1) -> list[Var]:
        """The least of the first elements along an axis, and the last place it has; NaN stays.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.cummin"""

    def sort(self, /, *, axis: Integer = -1, descending: bool = False) -> list[Var]:
        """The elements along an axis in order, and the places they had. Equal ones keep theirs; NaN is the greatest.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.sort"""

    def argsort(self, /, *, axis: Integer = -1, descending: bool = False) -> Var:
        """The places of the elements along an axis in their order, as sort has them.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        elsewhere: torch.argsort, numpy.argsort"""

    def topk(self, /, *, k: Integer, axis: Integer = -1, largest: bool = True) -> list[Var]:
        """The k greatest (or least) elements along an axis in order, and their places.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: axis lies in the rank of x
        C2: k lies in 0..size of the axis
        elsewhere: torch.topk, TopK"""

    def nonzero(self) -> Var:
        """The indices of the elements that are not zero, a row each, in row-major order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.nonzero, numpy.argwhere"""

    def mask_select(self, /, mask: Tensor) -> Var:
        """The elements (or slices, of a mask of lower rank) of x where a mask is true, in order.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the rank of mask is at most that of x
        C2: mask has the first sizes of x
        elsewhere: Compress"""

    def scatter(self, /, index: Tensor, source: Tensor | Scalar, *, axis: Integer = 0, reduce: str = 'none', include_self: bool = True) -> Var:
        """x with the elements of source put at the index along an axis, for every place of index. reduce says how what goes to one place is combined, with the element of x too if include_self: "none" (the last one stays), "sum", "prod", "mean", "amax" or "amin".

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index and source have the rank of x (0 counts as 1), or index no elements
        C3: index is not larger than source, nor than x along the other axes
        C4: reduce is "none", "sum", "prod", "mean", "amax" or "amin"
        elsewhere: torch.scatter, ScatterElements"""

    def index_put(self, /, values: Tensor | Scalar, *indices: Tensor | Sequence[Tensor], axis: Integer = 0, accumulate: bool = False, wrap: bool = True) -> Var:
        """x with values, broadcast, put at the places that the index tensors name together, one for each axis from axis on; or added there. With wrap, negative ones count from the end.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axes of the index tensors lie within the rank of x
        C2: aligned at the last axis, sizes are equal or one of them is 1
        C3: values are broadcast to what is chosen
        elsewhere: torch.index_put"""

    def searchsorted(self, /, values: Tensor | Scalar, *, right: bool = False) -> Var:
        """The places at which values can be put into rows that are in order: before equal ones, or with right behind them. NaN is the greatest.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: sorted has rank 1, or that of values
        C2: sorted and values have the same sizes but for the last
        elsewhere: torch.searchsorted, numpy.searchsorted"""

    def bincount(self, /, weights: Tensor | None = None, *, minlength: Integer = 0) -> Var:
        """How often each of 0, 1, ... occurs in x, or the sum of the weights where it does.

        dtypes: uint8, int8, int32, int64
        C1: x and weights have rank 1
        C2: weights have the size of x
        C3: minlength is not negative
        elsewhere: torch.bincount, numpy.bincount"""

    def repeat_index(self) -> Var:
        """0 as often as the first element of repeats says, 1 as the second, and so on.

        dtypes: uint8, int8, int32, int64
        C1: repeats has rank 1
        elsewhere: torch.repeat_interleave"""

    def unique(self, /, *, consecutive: bool = False, equal_nan: bool = False) -> list[Var]:
        """The elements of x in order, each once; for each element of x its place among them; and how often each occurs. With consecutive, elements are in the order of x and only neighbours count as one. NaN are equal if equal_nan.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.unique, numpy.unique"""

    def segment_reduce(self, /, lengths: Tensor, *, reduce: str, initial: Real | None = None) -> Var:
        """The rows of x by segments of the given lengths, each reduced to one row: "sum", "prod", "mean", "amax" or "amin". initial is what a segment begins with.

        dtypes: float16, bfloat16, float32, float64
        C1: x has rank 1 or more, lengths rank 1
        C2: reduce is "sum", "prod", "mean", "amax" or "amin"
        elsewhere: torch.segment_reduce"""

    def nms(self, /, scores: Tensor, *, iou_threshold: Real = 0.5) -> Var:
        """The boxes (x1, y1, x2, y2), by falling score, that no kept one before covers: their intersection over union is at most iou_threshold.

        dtypes: float32, float64
        C1: boxes have rank 2, scores rank 1
        C2: a box has four sides
        C3: there is a score for each box
        elsewhere: torchvision.ops.nms"""

    def full(self, /, *, shape: Integers, dtype: DType | None = None) -> Var:
        """A tensor of one value; dtype none is that of the value.

        dtypes: float32
        C1: sizes are not negative
        C2: the value has rank 0
        elsewhere: torch.full, numpy.full, ConstantOfShape"""

    def full_like(self, /, value: Tensor | Scalar, *, dtype: DType | None = None) -> Var:
        """A tensor of one value with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the value has rank 0
        elsewhere: torch.full_like, numpy.full_like"""

    def zeros_like(self, /, *, dtype: DType | None = None) -> Var:
        """A tensor of zeros with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.zeros_like, numpy.zeros_like"""

    def ones_like(self, /, *, dtype: DType | None = None) -> Var:
        """A tensor of ones with the sizes and dtype of x.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        elsewhere: torch.ones_like, numpy.ones_like"""

    def assign(self, /, source: Tensor | Scalar) -> Var:
        """Writes the source, broadcast and converted, into the target.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the source broadcasts to the target
        C2: no two elements of the target share memory, unless the source is the target
        writes its first operand
        elsewhere: torch.Tensor.copy_, numpy.copyto"""

    def fill_(self, /, value: Tensor | Scalar) -> Var:
        """Writes one value into every element of the target.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the value has rank 0
        C2: no two elements of the target share memory, unless a number is written
        writes its first operand
        elsewhere: torch.Tensor.fill_, numpy.ndarray.fill"""

    def add_(self, /, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """As add, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.add_"""

    def sub_(self, /, y: Tensor | Scalar, *, alpha: Real = 1.0) -> Var:
        """As sub, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sub_"""

    def mul_(self, /, y: Tensor | Scalar) -> Var:
        """As mul, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.mul_"""

    def div_(self, /, y: Tensor | Scalar) -> Var:
        """As div, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.div_"""

    def floor_divide_(self, /, y: Tensor | Scalar) -> Var:
        """As floor_divide, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.floor_divide_"""

    def remainder_(self, /, y: Tensor | Scalar) -> Var:
        """As remainder, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.remainder_"""

    def fmod_(self, /, y: Tensor | Scalar) -> Var:
        """As fmod, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.fmod_"""

    def pow_(self, /, y: Tensor | Scalar) -> Var:
        """As pow, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.pow_"""

    def bitwise_and_(self, /, y: Tensor | Scalar) -> Var:
        """As bitwise_and, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_and_"""

    def bitwise_or_(self, /, y: Tensor | Scalar) -> Var:
        """As bitwise_or, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_or_"""

    def bitwise_xor_(self, /, y: Tensor | Scalar) -> Var:
        """As bitwise_xor, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_xor_"""

    def shift_left_(self, /, y: Tensor | Scalar) -> Var:
        """As shift_left, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_left_shift_"""

    def shift_right_(self, /, y: Tensor | Scalar) -> Var:
        """As shift_right, written into the first operand.

        dtypes: uint8, int8, int32, int64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_right_shift_"""

    def clamp_(self, /, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Var:
        """As clamp, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.clamp_"""

    def lerp_(self, /, end: Tensor, weight: Tensor | Scalar) -> Var:
        """As lerp, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.lerp_"""

    def addcmul_(self, /, y: Tensor, z: Tensor, *, value: Real = 1.0) -> Var:
        """As addcmul, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.addcmul_"""

    def neg_(self) -> Var:
        """As neg, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.neg_"""

    def abs_(self) -> Var:
        """As abs, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.abs_"""

    def sqrt_(self) -> Var:
        """As sqrt, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sqrt_"""

    def rsqrt_(self) -> Var:
        """As rsqrt, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.rsqrt_"""

    def reciprocal_(self) -> Var:
        """As reciprocal, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.reciprocal_"""

    def square_(self) -> Var:
        """As square, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.square_"""

    def exp_(self) -> Var:
        """As exp, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.exp_"""

    def exp2_(self) -> Var:
        """As exp2, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.exp2_"""

    def expm1_(self) -> Var:
        """As expm1, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.expm1_"""

    def log_(self) -> Var:
        """As log, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log_"""

    def log2_(self) -> Var:
        """As log2, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log2_"""

    def log10_(self) -> Var:
        """As log10, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log10_"""

    def log1p_(self) -> Var:
        """As log1p, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.log1p_"""

    def sin_(self) -> Var:
        """As sin, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sin_"""

    def cos_(self) -> Var:
        """As cos, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.cos_"""

    def tan_(self) -> Var:
        """As tan, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.tan_"""

    def tanh_(self) -> Var:
        """As tanh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.tanh_"""

    def erf_(self) -> Var:
        """As erf, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erf_"""

    def sigmoid_(self) -> Var:
        """As sigmoid, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sigmoid_"""

    def relu_(self) -> Var:
        """As relu, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.relu_"""

    def relu6_(self) -> Var:
        """As relu6, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def silu_(self) -> Var:
        """As silu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def elu_(self, /, *, alpha: Real = 1.0) -> Var:
        """As elu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def leaky_relu_(self, /, *, negative_slope: Real = 0.01) -> Var:
        """As leaky_relu, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardswish_(self) -> Var:
        """As hardswish, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardsigmoid_(self) -> Var:
        """As hardsigmoid, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def hardtanh_(self, /, *, min: Real = -1.0, max: Real = 1.0) -> Var:
        """As hardtanh, written into the first operand.

        dtypes: int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand"""

    def floor_(self) -> Var:
        """As floor, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.floor_"""

    def ceil_(self) -> Var:
        """As ceil, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.ceil_"""

    def round_(self) -> Var:
        """As round, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.round_"""

    def trunc_(self) -> Var:
        """As trunc, written into the first operand.

        dtypes: uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.trunc_"""

    def bitwise_not_(self) -> Var:
        """As bitwise_not, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.bitwise_not_"""

    def acos_(self) -> Var:
        """As acos, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.acos_"""

    def asin_(self) -> Var:
        """As asin, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.asin_"""

    def atan_(self) -> Var:
        """As atan, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.atan_"""

    def acosh_(self) -> Var:
        """As acosh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.acosh_"""

    def asinh_(self) -> Var:
        """As asinh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.asinh_"""

    def atanh_(self) -> Var:
        """As atanh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.atanh_"""

    def cosh_(self) -> Var:
        """As cosh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.cosh_"""

    def sinh_(self) -> Var:
        """As sinh, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.sinh_"""

    def erfc_(self) -> Var:
        """As erfc, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erfc_"""

    def erfinv_(self) -> Var:
        """As erfinv, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.erfinv_"""

    def lgamma_(self) -> Var:
        """As lgamma, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.lgamma_"""

    def digamma_(self) -> Var:
        """As digamma, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.digamma_"""

    def i0_(self) -> Var:
        """As i0, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: the result has the sizes of the first operand
        C2: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.i0_"""

    def copysign_(self, /, y: Tensor | Scalar) -> Var:
        """As copysign, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.copysign_"""

    def hypot_(self, /, y: Tensor | Scalar) -> Var:
        """As hypot, written into the first operand.

        dtypes: float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.hypot_"""

    def tril_(self, /, *, diagonal: Integer = 0) -> Var:
        """As tril, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.tril_"""

    def triu_(self, /, *, diagonal: Integer = 0) -> Var:
        """As triu, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: x has rank 2 or more
        C2: the result has the sizes of the first operand
        C3: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.triu_"""

    def masked_fill_(self, /, mask: Tensor, value: Tensor | Scalar) -> Var:
        """As masked_fill, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: aligned at the last axis, sizes are equal or one of them is 1
        C2: value has rank 0
        C3: the result has the sizes of the first operand
        C4: no two elements of the first operand share memory, unless an axis repeats them
        writes its first operand
        elsewhere: torch.Tensor.masked_fill_"""

    def scatter_(self, /, index: Tensor, source: Tensor | Scalar, *, axis: Integer = 0, reduce: str = 'none', include_self: bool = True) -> Var:
        """As scatter, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axis lies within the rank of x
        C2: index and source have the rank of x (0 counts as 1), or index no elements
        C3: index is not larger than source, nor than x along the other axes
        C4: reduce is "none", "sum", "prod", "mean", "amax" or "amin"
        C5: the result has the sizes of the first operand
        C6: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.scatter_"""

    def index_put_(self, /, values: Tensor | Scalar, *indices: Tensor | Sequence[Tensor], axis: Integer = 0, accumulate: bool = False, wrap: bool = True) -> Var:
        """As index_put, written into the first operand.

        dtypes: bool, uint8, int8, int32, int64, float16, bfloat16, float32, float64
        C1: the axes of the index tensors lie within the rank of x
        C2: aligned at the last axis, sizes are equal or one of them is 1
        C3: values are broadcast to what is chosen
        C4: the result has the sizes of the first operand
        C5: no two elements of the first operand share memory
        writes its first operand
        elsewhere: torch.Tensor.index_put_"""
