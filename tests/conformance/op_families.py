"""Which family of the registry each record of torch's `op_db` (names a..m) belongs to; a record of none says why.

Records stand under their names without variants.
"""

from __future__ import annotations

FAMILIES = {
    "unary": """abs acos acosh angle asin asinh atan atanh bitwise_not ceil clone conj conj_physical cos cosh deg2rad digamma erf erfc
        erfinv exp exp2 expm1 floor frac frexp i0 imag isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2
        logical_not logit mvlgamma alias_copy contiguous""",
    "binary": """add addcdiv addcmul atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp clamp_max
        clamp_min copysign div float_power floor_divide fmax fmin fmod gcd heaviside hypot igamma igammac lcm ldexp lerp logaddexp
        logaddexp2 logical_and logical_or logical_xor masked.logaddexp max.binary maximum min.binary minimum mul""",
    "compare": "allclose eq equal ge gt isclose isin le lt",
    "where": "masked_fill",
    "cast": "bfloat16 bool byte char double float half int long",
    "reductions": """all amax amin aminmax any argmax argmin corrcoef count_nonzero cov dist logsumexp masked.amax masked.amin masked.argmax
        masked.argmin masked.logsumexp masked.mean masked.prod masked.std masked.sum masked.var max.reduction_no_dim
        max.reduction_with_dim mean min.reduction_no_dim min.reduction_with_dim""",
    "views": """H as_strided as_strided_copy as_strided_scatter atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to
        cat chunk column_stack constant_pad_nd diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff dsplit dstack expand
        expand_as expand_copy flatten flip fliplr flipud gradient hsplit hstack linalg.diagonal mH mT meshgrid movedim""",
    "indexing": """argwhere cartesian_prod combinations gather index_add index_copy index_fill index_put index_reduce index_select
        masked_scatter masked_select""",
    "matmul": """addbmm addmm addmv addr baddbmm bmm cdist cross dot einsum inner kron linalg.cross linalg.matrix_power linalg.multi_dot
        linalg.vecdot matmul mm mv""",
    "softmax": "log_softmax masked.log_softmax masked.softmax masked.softmin",
    "norms": "linalg.matrix_norm linalg.norm linalg.vector_norm masked.norm masked.normalize",
    "creation": """arange empty empty_like empty_permuted eye fill full full_like linalg.vander linspace logspace""",
    "order": """argsort bincount bucketize cummax cummin cumprod cumsum cumulative_trapezoid kthvalue logcumsumexp masked.cumprod
        masked.cumsum masked.median median mode msort""",
}

OUTSIDE = {
    "complex numbers": "cdouble cfloat chalf complex",
    "random numbers, or a wrapper that sets their seed": """bernoulli cauchy empty_strided exponential geometric item log_normal
        multinomial""",
    "Fourier transforms": """fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ifftshift
        fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn istft""",
    "solvers and decompositions": """cholesky cholesky_inverse cholesky_solve geqrf linalg.cholesky linalg.cholesky_ex linalg.cond linalg.det
        linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_factor
        linalg.ldl_factor_ex linalg.ldl_solve linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve
        linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd
        linalg.svdvals linalg.tensorinv linalg.tensorsolve logdet lu lu_solve lu_unpack matrix_exp""",
    "histograms and hashes": "hash_tensor histc histogram histogramdd",
    "sampling of images": "grid_sampler_2d grid_sampler_3d max_pool2d_with_indices_backward",
    "kernels of CUDA": """jiterator_2inputs_2outputs jiterator_4inputs_with_extra_args jiterator_binary jiterator_binary_return_by_ref
        jiterator_unary""",
    "no tensors": "broadcast_shapes",
}

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}
_OUTSIDE = {name: why for why, names in OUTSIDE.items() for name in names.split()}


def family_of(record: str) -> str:
    """The family of a record, by its name with or without variant; for a record of none "- " and the reason, "" for an unknown name."""
    for name in (record, record.rpartition(".")[0]):
        if name in _FAMILY_OF:
            return _FAMILY_OF[name]
        if name in _OUTSIDE:
            return f"- {_OUTSIDE[name]}"
    return ""
