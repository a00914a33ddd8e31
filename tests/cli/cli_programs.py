"""Small programs in the text form."""

CLASSIC = """
.func main(x: f32[B, S, 8], mask: bool[B, S]?) -> 1     ; '?' may be none
.symbol S in 1..64
  LOAD_TENSOR x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  REDUCE_SUM axes=[-1], keepdim=false
  STORE_TENSOR out
"""

# Returns its arguments: what goes in must come out.
ECHO = """
.func main(x: any[...]) -> (y)
  LOAD_LOCAL x
  RETURN 1
"""

SCALE = """
.func main(x: f32[N], factor: float, twice: bool) -> (scaled, size)
  LOAD_LOCAL x
  LOAD_LOCAL factor
  CALL_OP mul 2
  STORE_LOCAL x
  LOAD_LOCAL twice
  BRANCH_IF_FALSE done
  LOAD_LOCAL x
  LOAD_CONST 2.0
  CALL_OP mul 2
  STORE_LOCAL x
done:
  LOAD_LOCAL x
  LOAD_LOCAL x
  GET_DIM 0
  RETURN 2
.end

.func negated(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_OP neg 1
  RETURN 1
.end
"""

ADD = """
.func main(a: f32[N], b: f32[N]) -> 1
  LOAD_LOCAL a
  LOAD_LOCAL b
  CALL_OP add 2
  RETURN 1
"""

ENDLESS = """
.func main(x: f32[N]) -> 1
again:
  LOOP_HEAD
  LOAD_LOCAL x
  LOAD_CONST 0.5
  CALL_OP mul 2
  STORE_LOCAL x
  JUMP again
"""

# Writes its argument.
WRITE = """
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  LOAD_CONST 0.0
  CALL_OP fill_ 2
  RETURN 1
"""

DIVIDE = """
.func main(x: i64[N], y: i64[N]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP floor_divide 2
  RETURN 1
"""

# Sizes that must agree, with each other and with a weight.
PRODUCTS = """
.weight w f32[5, 32] = ones
.func main(x: f32[A, B], y: f32[C, D]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP matmul 2
  LOAD_WEIGHT w
  CALL_OP linear 2
  RETURN 1
"""
