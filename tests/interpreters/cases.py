"""Python of every kind that the front end reads, each with calls. `CASES`: name -> (function, argument tuples)."""

import contextlib
import dataclasses

CASES = {}


def case(*calls):
    def add(function):
        CASES[function.__name__] = (function, calls)
        return function

    return add


@case((3, 4), (0.5, -2), (-7, 2))
def arithmetic(a, b):
    c = (a + b) * a - b / 2 + (a // b) % 5
    return -c, +a, a**2, not a, a * b, (c, a)


@case((6, 3), (5, 1))
def integers(a, b):
    return ~a, a << b, a >> 1, a & b, a | b, a ^ b


@case((5,), (0,), (-1,))
def augmented(n):
    n += 3
    n -= 1
    n *= 2
    n **= 2
    n //= 3
    n %= 7
    n <<= 2
    n >>= 1
    n |= 1
    n &= 15
    n ^= 2
    x = n
    x /= 4
    return x


@case((1, 2, 3), (3, 2, 1), (2, 2, 2))
def chained(a, b, c):
    return a < b < c, a <= b <= c, a != b != c, a < b > c, (a < b) == (b < c), a == b == c


@case((None,), (0,), ([],), ("x",))
def tests(x):
    if x is None:
        return "none"
    if x is not None and not x:
        return "empty"
    return x in ("x", "y"), x not in {"x"}, x or "or", x and "and", "a" if x else "b"


@case(([1, 2, 3, 4, 5],), ([],), ([7, 7],))
def loops(xs):
    total, seen = 0, []
    for i, x in enumerate(xs):
        if x == 2:
            continue
        if i > 3:
            break
        total += x
        for y in (x, x + 1):
            seen.append(y)
    else:
        seen.append("whole")
    while total > 3:
        total -= 2
        if total == 4:
            break
    else:
        seen.append("small")
    return total, seen


@case(([3, 1, 2], {"a": 1}), ([], {}))
def comprehensions(xs, d):
    k = 10
    a = [x * k for x in xs if x > 1]
    b = {x: y for x in xs for y in range(x)}
    c = {x % 2 for x in xs}
    e = [[i * j for j in range(2)] for i in xs]
    f = [n for n, m in d.items()]
    g = sorted(x + k for x in xs)
    return a, b, c, e, f, g, [x for x in [k for k in xs]]


@case((1,), (5,))
def shadowed(x):
    y = [x for x in range(x)]
    return x, y


@case(([1, 2, 3, 4],), ((1, 2, 3),), ("abcd",))
def unpacking(xs):
    a, b, *rest = xs
    first, *middle, last = xs
    (c, d), e = (a, b), rest
    a, b = b, a
    a, b, c = c, a, b
    a, b, c, d = d, c, b, a
    return a, b, rest, first, middle, last, c, d, e, [*xs, *xs], (*xs, 1), {*xs}


@case(({"a": 1},), ({},))
def displays(d):
    return {**d, "b": 2}, {"x": 1, "y": d}, {1: 2, **d}, [1, 2, 3], (), [], {}, {"k": 1, "l": 2, "m": 3}, {1, 2, 3}


@case(([0, 1, 2, 3, 4, 5], 1, 4), ("abcdef", -3, 5))
def slices(xs, i, j):
    return xs[i], xs[i:j], xs[:j], xs[i:], xs[::2], xs[j:i:-1], xs[:], xs[-1]


@case(([0, 1, 2, 3, 4, 5],))
def slice_writes(xs):
    xs = list(xs)
    xs[1:3] = [9, 9, 9]
    xs[0] = -1
    xs[::3] = [7] * len(xs[::3])
    del xs[1]
    del xs[2:4]
    xs[0] += 5
    return xs


def _target(a, b=2, *args, c=3, **kw):
    return a, b, args, c, sorted(kw.items())


@case((1, (2, 3), {"z": 4}), (0, (), {}))
def calls(a, args, kw):
    return (
        _target(a),
        _target(a, 5),
        _target(a, c=6),
        _target(a, b=7, d=8),
        _target(a, *args),
        _target(a, *args, c=9, **kw),
        _target(*args, a, **kw) if args else None,
        _target(**{"a": a}, **kw),
        max(a, 1, key=lambda v: -v),
    )


@case(("some text",))
def methods(s):
    parts = s.split(" ")
    upper = s.upper
    return parts, upper(), s.replace("s", "S", 1), ",".join(parts).title(), s.split(sep="e", maxsplit=1)


@case((3.14159, "x"), (-2, 5))
def strings(a, b):
    return f"{a}", f"{a!r:>10}|{b!s}", f"{a:{8}.{3}}", f"<{b!a}>", f"{a:+}{b}{{}}", f"", "a" "b", f"{a=}"


@case((2,), (0,))
def closures(n):
    total = 0

    def add(k=n, *, twice=False):
        nonlocal total
        total += k * 2 if twice else k
        return lambda: total + n

    first = add()
    second = add(5, twice=True)
    n += 100
    return first(), second(), [f() for f in [lambda i=i: i + n for i in range(3)]]


@case((2,))
def cells_of_comprehensions(n):
    fs = [lambda: i for i in range(n)]
    return [f() for f in fs], [(lambda: j + n)() for j in range(n)]


@case((1,))
def annotated(a: int, b: "str" = "x") -> tuple:
    c: int = a
    d: float

    def inner(x: int, *, y: float = 1.0) -> int:
        return x

    return c, b, inner(3), sorted(inner.__annotations__), inner.__kwdefaults__


@case((1,), (2,), (3,))
def walrus(n):
    if (m := n * 2) > 3:
        return m, [last := i for i in range(n)], last
    return m


@case((5,), (0,), (-1,))
def early(n):
    if n > 3:
        return "big"
    if n < 0:
        return
    return "small"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

    @property
    def norm(self):
        return abs(self.x) + abs(self.y)


class Base:
    def __init__(self, n):
        self.n = n

    def value(self):
        return self.n


class Derived(Base):
    scale = 3

    def __init__(self, n):
        super().__init__(n + 1)

    def value(self):
        return super().value() * self.scale


@case((4,))
def objects(n):
    p = Point(n, y=n + 1)
    p.x += 2
    p.z = p.norm
    del p.z
    d = Derived(n)
    d.n -= 1
    return p, d.value(), hasattr(p, "z"), isinstance(d, Base)


@case((4,))
def classes(n):
    class Local(Base):
        k = n

        def more(self):
            return self.k + self.n

    return Local(1).more(), Local.__name__


@case((1,), (2.5,), ("s",), ([1, 2],), ([1, 2, 3, 4],), ({"k": 1, "l": 2},), (Point(1, 2),), (Point(0, 5),), (None,), (True,), ({},), ((3,),))
def matches(x):
    match x:
        case 1 | 2:
            return "one or two"
        case float(v):
            return "float", v
        case str():
            return "text"
        case [a, b]:
            return "two", a, b
        case [a, *rest]:
            return "more", a, rest
        case {"k": v, **others}:
            return "mapping", v, others
        case Point(0, y=y):
            return "axis", y
        case Point(x=a, y=b) if a < b:
            return "point", a, b
        case None:
            return "none"
        case _:
            return "other", x


@contextlib.contextmanager
def _noted(log, name):
    log.append("enter " + name)
    yield name
    log.append("exit " + name)


@case((1,), (7,))
def managers(n):
    log = []
    with _noted(log, "a") as a, _noted(log, "b"):
        log.append(a)
        if n > 5:
            return log
    with _noted(log, "c"):
        for i in range(n):
            if i == 0:
                continue
    return log


@case((3,), (0,))
def finals(n):
    log = []
    try:
        log.append(n)
        if not n:
            return log
    finally:
        log.append("last")
    try:
        x = n
    except ValueError:
        x = None
    else:
        log.append("no error")
    for i in range(n):
        try:
            if i == 1:
                continue
        finally:
            log.append(i)
    return log, x


@case((1,), (0,))
def errors(n):
    if n == 0:
        raise ValueError("zero")
    assert n == 2, f"n is {n}"


@case((1,), (2,))
def unset(n):
    if n == 2:
        m = 1
    x = 3
    del x
    return m


@case((5,))
def imports(n):
    import math
    import os.path as path
    from collections import OrderedDict, deque

    return math.floor(n / 2), path.basename("a/b"), OrderedDict(a=1), deque([n])


@case((2,))
def deletes(n):
    d = {"a": 1, n: 2}
    del d["a"]
    p = Point(n)
    del p.x
    a, b = 1, 2
    del a, b
    return d, hasattr(p, "x")


counter = 0


@case((3,))
def globals_(n):
    global counter
    counter = n
    counter += 1
    value = counter
    del counter
    return value


@case(([3, 0, 4],))
def conditions(xs):
    out = []
    for x in xs:
        out.append((x and 1) or 2)
        out.append(x > 1 and x < 4 or x == 0)
        out.append(None if x == 0 else (x if x > 3 else -x))
        while x:
            x -= 1
            if x == 1:
                break
    return out, any(x for x in xs), not (xs and xs[0])
