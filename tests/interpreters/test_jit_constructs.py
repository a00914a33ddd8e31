"""Constructs of Python under flexor.jit, each beside Python, and followed: by no fallback, and but for what is named by no foreign call."""

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator

import numpy as np
import pytest
from test_jit_python import agree

import flexor

X = np.arange(-10, 10, dtype=np.float32).reshape(4, 5) / 3

CASES = {}


def case(*calls, leaves=()):
    """Registers a function with argument tuples, and the foreign calls that it needs."""

    def add(function):
        CASES[function.__name__] = (function, calls, set(leaves))
        return function

    return add


# ------------------------------------------------------------------------------------------------------------ generators


def counted(n):
    total = 0
    for i in range(n):
        total += i
        yield i, total
    return total


def rows_of(x):
    for row in x:
        yield row * 2


@case((X,), (X[:1],))
def generators_that_builtins_read(x):
    halves = (row / 2 for row in x)
    pairs = list(zip((k * 2 for k in range(4)), "abc"))
    numbered = [(k, v) for k, v in enumerate(k + 1 for k in range(3))]
    table = dict((k, k * k) for k in range(3))
    first = next(k for k in range(5) if k > 2)
    return (
        sum(row.sum() for row in halves), pairs, numbered, table, first, any(k > 2 for k in range(4)), all(k > 2 for k in range(4)),
        tuple(k for k in range(3)), sorted(-k for k in range(3)), max((k % 3 for k in range(5)), default=9), min((), default=7),
        {k % 2 for k in range(5)}, ",".join(str(k) for k in range(3)), list(map(lambda k: k + 1, (k for k in range(3)))),
    )  # fmt: skip


@case((X,))
def generators_that_are_unpacked(x):
    a, b, c = (k * 2 for k in range(3))
    first, *rest = (row for row in (x, x + 1, x + 2))
    both = [*(k for k in range(2)), *(k for k in range(3))]
    both += (k for k in range(2))
    both.extend(k for k in range(2))
    return a, b, c, first, rest, both, 3 in (k for k in range(5)), 7 not in (k for k in range(5)), max(*(k for k in range(4)))


@case((X,), (X[:0],), (X[:1],))
def yield_from(x):
    def inner(n):
        done = yield from counted(n)
        yield done, -1
        yield from ("a", "b")
        return "end"

    def outer():
        result = yield from inner(3)
        yield result

    def rows():
        yield from rows_of(x)

    return list(outer()), list(rows())


@case((X, 3), (X, 0))
def unpacking_of_what_the_run_measures(x, n):
    rows = []
    for k in range(n):
        rows.append(x * k)
    a, b, c = rows
    first, second, third, fourth = x
    return a + b + c, first, fourth


# --------------------------------------------------------------------------------------------------------------- patterns


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y


@dataclasses.dataclass
class Box:
    low: object
    high: object = None


@case((X, 0), (X, 1), (X, 2), (X, 3), (X, 4), (X, 5), (X, 6), (X, 7))
def patterns(x, which):
    subject = None
    if which == 0:
        subject = Point(x, 2)
    elif which == 1:
        subject = Box(x)
    elif which == 2:
        subject = [1, x, 3]
    elif which == 3:
        subject = {"a": x, "b": 1}
    elif which == 4:
        subject = 5
    elif which == 5:
        subject = "text"
    elif which == 6:
        subject = Box(x, high=(1, 2))
    match subject:
        case Point(a, y=b):
            return "point", a, b
        case Box(low, high=(p, q)):
            return "box", low, p, q
        case Box(low=value, high=None):
            return "open box", value
        case [1, *middle, 3]:
            return "sequence", middle
        case {"a": a, **rest}:
            return "mapping", a, rest
        case int(n) if n > 3:
            return "int", n
        case str() as text:
            return "str", text
        case _:
            return "none"


# ------------------------------------------------------------------------------------------------- lists, dicts, places


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


LAYERS = [Scale(2.0), Scale(3.0), np.tanh, lambda x: x - 1]


@case((X, 0), (X, 3), (X, -1), (X, -4), (X, 4), (X, 2))
def lists_at_a_place_of_the_run(x, n):
    return LAYERS[n](x), [x, x + 1, x + 2, x + 3][n], (1, 2.5, "a", None)[n], [10, 20, 30, 40][n]


@case((X, 4), (X, 0), (X, 30))
def lists_written_at_a_place_of_the_run(x, n):
    seen = [0, 0, 0]
    kinds = [x, 1, "a"]
    for k in range(n):
        seen[k % 3] = seen[k % 3] + k
    kinds[n % 3] = None
    return seen, kinds


@case((X,))
def slices_of_lists_written(x):
    items = [0, 1, 2, x, 4, 5]
    items[1:3] = [9, 9, 9]
    items[::3] = (7 for _ in range(3))
    del items[1]
    del items[2:4]
    items[1:1] = "ab"
    return items


@case((X,))
def a_slice_that_does_not_fit(x):
    items = [0, 1, 2, x]
    items[::2] = [1]
    return items


@case((X,))
def lists_sorted(x):
    boxes = [Box(k % 3, x * k) for k in range(4)]
    boxes.sort(key=lambda box: -box.low)
    numbers = [3, 1, 2]
    numbers.sort(reverse=True)
    return [box.high.sum() for box in boxes], numbers


@case((X, 1), (X, 2), (X, 5))
def dicts_asked_for_a_number_of_the_run(x, n):
    return {1: x, 2: x * 2, 3: None}[n]


@case((X, 3), leaves=("set",))
def sets_of_numbers_of_the_run(x, n):
    return {n, 1, n + 1}, {k % 2 for k in range(5)}, frozenset((1, 2))


# ---------------------------------------------------------------------------------------------------------------- classes


class Vector:
    def __init__(self, *parts):
        self.parts = list(parts)

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*(a + b for a, b in zip(self.parts, other.parts)))

    def __radd__(self, other):
        return Vector(*(other + a for a in self.parts))

    def __iadd__(self, other):
        self.parts.append(other)
        return self

    def __eq__(self, other):
        return isinstance(other, Vector) and len(self.parts) == len(other.parts)

    def __lt__(self, other):
        return len(self.parts) < len(other.parts)

    def __neg__(self):
        return Vector(*(-a for a in self.parts))

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, at):
        return self.parts[at]

    def __setitem__(self, at, value):
        self.parts[at] = value

    def __iter__(self):
        for part in self.parts:
            yield part

    def __contains__(self, value):
        return value == "here"


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Base:
    kind = "base"

    def __init__(self, x):
        super().__init__()
        self._x = x
        self.reads = 0

    @property
    def x(self):
        self.reads += 1
        return self._x

    @x.setter
    def x(self, value):
        self._x = value * 2

    @functools.cached_property
    def twice(self):
        return self._x * 2

    @classmethod
    def made(cls, x):
        return cls(x)

    @staticmethod
    def plain(x):
        return x + 1


class Derived(Base):
    kind = "derived"

    def __init__(self, x):
        super().__init__(x + 1)

    def __getattr__(self, name):
        if name == "absent":
            return "found"
        raise AttributeError(name)


@case((X,))
def instances_of_classes_of_python(x):
    a = Derived.made(x)
    a.x = x
    del a.reads
    a.reads = 5
    slotted = Slotted(x)
    slotted.b = 1
    return a.x, a.reads, a.twice, a.twice is a.twice, a.kind, a.plain(1), a.absent, type(a).__name__, a.__class__ is Derived, slotted.a, slotted.b


@case((X,))
def operators_of_classes_of_python(x):
    a, b = Vector(x, 1), Vector(2, 3)
    c = a + b
    d = 5 + a
    b += 7
    b[0] = "zero"
    total = 0
    for part in c:
        total = total + part
    return (
        c.parts, d.parts, b.parts, a == c, a != c, a == b, a < b, (-a).parts, len(b), a[1], list(c), "here" in a, "there" in a, total,
        bool(Vector()), 1 if a else 2, [*a],
    )  # fmt: skip


@case((X,))
def an_operator_that_no_class_has(x):
    return Vector(x) + 1


@case((X,))
def an_attribute_that_is_not_there(x):
    return Slotted(x).b


SLOTTED = Slotted(3)


@case((X,))
def an_attribute_that_has_no_slot(x):
    slotted = Slotted(x)
    slotted.other = 1
    return slotted.a


class Shaped(abc.ABC):
    @abc.abstractmethod
    def area(self):
        """Of the shape."""


class Square(Shaped):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


@case((X,))
def classes_with_methods_to_fill_in(x):
    return Square(x).area(), isinstance(Square(1), Shaped)


@case((X,), leaves=("Shaped",))
def an_abstract_class_has_no_instances(x):
    return Shaped()


Pair = collections.namedtuple("Pair", "a b")


@case((X, 1), (X, 2))
def named_tuples_compared(x, n):
    return Pair(1, n) == Pair(1, 2), [Pair(n, n)] == [Pair(2, 2)], Pair(n, 1) in [Pair(2, 1)], Pair(1, 2) == (1, 2), Pair(1, x)._replace(b=n)


@case((X,))
def slots_of_known_objects_written(x):
    before = SLOTTED.a
    SLOTTED.a = 4
    after = SLOTTED.a
    SLOTTED.a = before
    return x * after, before


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    scale: float = 2.0


@case((X,))
def dataclasses_replaced(x):
    box = dataclasses.replace(Box(x), high=2)
    config = dataclasses.replace(Config(1), width=3)
    return box.low, box.high, config.width, config.scale


class Color(enum.Enum):
    RED = 1
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 4


@case((X,))
def members_of_enumerations(x):
    color = Color.RED
    chosen = x * 2 if color is Color.RED and color == Color.RED else x
    return chosen, color.value, color.name, color, Level.HIGH > Level.LOW, Level.LOW + 1, Color("g"), Level.HIGH == 4


# ---------------------------------------------------------------------------------------------------------- functions


def affine(x, scale, *, shift=0.0):
    return x * scale + shift


CLIPPED = functools.partial(np.clip, a_min=0.0, a_max=1.0)


@functools.lru_cache(maxsize=None)
def table_of(n):
    return tuple(k * k for k in range(n))


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@traced
def halved(x):
    return x / 2


@case((X,), (X[:2],))
def functools_(x):
    double = functools.partial(affine, scale=2.0)
    shifted = functools.partial(double, shift=1.0)

    @traced
    def local(y):
        """Adds."""
        return y + 10

    return (
        double(x), shifted(x, shift=3.0), CLIPPED(x), table_of(4), halved(x), local(x), local.__name__, functools.reduce(operator.add, [x, x, x]),
        double.keywords,
    )  # fmt: skip


@case((X,))
def operator_(x):
    second = operator.itemgetter(1)
    shape = operator.attrgetter("shape")
    return (
        operator.add(x, 1), operator.mul(x, x), operator.neg(x), second([1, x]), shape(x), operator.itemgetter(0, 1)((1, 2)),
        operator.getitem([3, 4], 1), operator.lt(1, 2), operator.not_(0), operator.methodcaller("sum", axis=0)(x),
    )  # fmt: skip


@case((X,))
def operator_writes(x):
    items, table = [1, 2], {}
    operator.setitem(items, 0, x)
    operator.setitem(table, "a", 1)
    return items, table, operator.iadd(items, [3]) is items


@case((X,))
def itertools_(x):
    return (
        list(itertools.chain([1, 2], (x,))), list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.islice(itertools.count(3), 2, 8, 2)),
        list(itertools.accumulate([1, 2, 3])), list(itertools.product((1, 2), "ab")), list(itertools.combinations([x, 1, 2], 2)),
        list(itertools.permutations((1, 2))), list(itertools.zip_longest([1, 2, 3], "a", fillvalue=x)), list(itertools.repeat(x, 2)),
        list(itertools.takewhile(lambda k: k < 3, itertools.count())), list(itertools.dropwhile(lambda k: k < 2, range(4))),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.pairwise([1, 2, 3])), list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.islice(itertools.cycle((1, 2)), 5)), list(itertools.filterfalse(None, [0, 1, 2])),
    )  # fmt: skip


@case((X, 7, 2.5), (X, 25, -2.5), (X, 15, 3.5), (X, -7, 0.2))
def numbers_rounded(x, n, a):
    return math.floor(a), math.ceil(a), math.trunc(a), round(a), round(n), round(n, -1), math.floor(n / 2), math.ceil(n / 2), x * round(n, -1)


@case((X,))
def closures_rebound(x):
    scale = x + 1

    def scaled(y, offset=scale, *, power=lambda v: v * v):
        return power(y * scale) + offset

    first = scaled(x)
    scale = x - 1
    functions = [lambda y, k=k: y * k for k in range(3)]

    def counter():
        count = 0

        def bump():
            nonlocal count
            count += 1
            return count

        return bump

    bump = counter()
    return first, scaled(x), [f(x) for f in functions], bump(), bump()


@case((X,), (X[:2],))
def lists_made_of_texts_are_new_for_every_call(x):
    words = "a b".split()
    words.append(str(len(words)))
    table = dict.fromkeys(("a", "b"), 0)
    table["a"] += 1
    return words, table, sorted((3, 1, 2)), divmod(7, 2)


TOTAL = 0


@case((X,))
def globals_written(x):
    global TOTAL
    TOTAL = TOTAL + 1
    result = x * TOTAL
    TOTAL -= 1
    return result, TOTAL


@case((X, 2.0), leaves=("format", "f-string", "%", "str.format"))
def texts_of_values_of_the_run(x, a):
    return f"{a:.2f} of {x.shape}", "%s" % a, "{} {}".format(a, 1)


# ------------------------------------------------------------------------------------------------------- context managers


class Scaled:
    def __init__(self, factor):
        self.factor, self.depth = factor, 0

    def __enter__(self):
        self.depth += 1
        return self.factor

    def __exit__(self, kind, error, traceback):
        self.depth -= 1


@contextlib.contextmanager
def doubled(x):
    yield x * 2


SETTINGS = Scale(1.0)


@contextlib.contextmanager
def scaled_by(factor):
    before = SETTINGS.factor
    SETTINGS.factor = factor
    try:
        yield before
    finally:
        SETTINGS.factor = before


@case((X,), (X[:1],))
def managers_of_generators_with_finally(x):
    with scaled_by(3.0) as before:
        y = SETTINGS(x) + before
        with scaled_by(5.0):
            y = y + SETTINGS.factor
    return y, SETTINGS.factor


@case((X, 2), (X, 3))
def dicts_and_sets_compared(x, n):
    made = {"a": 1, "b": n}
    return made == {"b": n, "a": 1}, made != {"a": 1}, {1, 2} == {2, 1}, {1} != {2}, made == [1], {} == (), {"a": n} == {"a": 2}


SCALED = Scaled(3.0)


@case((X,), (X[:1],))
def context_managers_of_python(x):
    with SCALED as factor, Scaled(2.0) as other:
        y = x * factor + SCALED.depth
    with doubled(y) as z:
        y = z + other
    with contextlib.nullcontext(), contextlib.nullcontext(5) as five:
        y = y + five
    for k in range(3):
        with SCALED:
            if k == 1:
                break
    return y, SCALED.depth, k


@pytest.mark.parametrize("name", CASES)
def test_constructs(name):
    function, calls, leaves = CASES[name]
    jitted = flexor.jit(function, fallback="silent")
    for arguments in calls:
        agree(jitted, function, copy.deepcopy(arguments))
    stats = jitted.stats()
    assert not stats["fallbacks"]
    assert {what for _, _, what in stats["foreign_calls"]} == leaves


def test_a_manager_of_python_is_left_when_the_run_raises():
    seen = []

    class Manager:
        def __enter__(self):
            seen.append("enter")

        def __exit__(self, kind, error, traceback):
            seen.append(kind)

    manager = Manager()

    def f(x, rows):
        with manager:
            seen.append("inside")
            return x.reshape(rows, -1) + 1

    jitted = flexor.jit(f, fallback="raise")
    for rows in (4, 2):
        assert np.array_equal(jitted(X, rows), X.reshape(rows, -1) + 1)
    del seen[:]
    with pytest.raises(ValueError, match="reshape"):
        jitted(X, 3)
    assert seen[:2] == ["enter", "inside"] and issubclass(seen[2], ValueError)


def test_a_manager_of_a_generator_is_left_when_the_run_raises():
    def f(x, rows):
        with scaled_by(3.0):
            return SETTINGS(x).reshape(rows, -1)

    jitted = flexor.jit(f, fallback="silent")
    for rows in (4, 2):
        assert np.array_equal(jitted(X, rows), X.reshape(rows, -1) * 3)
    with pytest.raises(ValueError, match="reshape"):
        jitted(X, 3)
    assert SETTINGS.factor == 1.0 and jitted.stats()["translations"] == 1


def test_a_manager_that_may_swallow_leaves_such_calls_to_python():
    class Suppressing:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            return kind is ValueError

    suppressing = Suppressing()

    def f(x, rows):
        with suppressing:
            return x.reshape(rows, -1)
        return None

    jitted = flexor.jit(f, fallback="silent")
    for rows in (4, 3, 2, 7):
        got, want = jitted(X, rows), f(X, rows)
        assert (got is None and want is None) or np.array_equal(got, want)
    assert jitted.stats()["translations"] == 1 and jitted.stats()["fallbacks"]


def test_a_return_inside_try_with_finally_is_followed():
    marks = []

    def f(x, rows):
        try:
            return x.reshape(rows, -1)
        finally:
            marks.append(rows)

    jitted = flexor.jit(f, fallback="silent")
    for rows in (4, 2, 1):
        assert np.array_equal(jitted(X, rows), X.reshape(rows, -1))
    assert marks == [4, 2, 1] and not jitted.stats()["fallbacks"]
    with pytest.raises(ValueError, match="reshape"):
        jitted(X, 3)
    assert marks == [4, 2, 1, 3]


def test_an_exception_behind_an_effect_is_not_caught_by_a_program():
    seen = []

    def f(x, rows):
        try:
            seen.append(1)
            return x.reshape(rows, -1)
        except ValueError:
            return x

    jitted = flexor.jit(f, fallback="silent")
    for rows in (4, 3):
        assert np.array_equal(jitted(X, rows), X if rows == 3 else X.reshape(rows, -1))
    assert seen == [1, 1] and "an exception that the function catches" in next(iter(jitted.stats()["fallbacks"]))


def test_an_object_that_python_may_keep_is_python_s():
    kept = []

    @flexor.jit(fallback="raise")
    def f(x):
        box = Box(x)
        kept.append(box)
        point = Point(1, 2)
        kept.append(point)
        return point.x + 1

    assert [f(X) for _ in range(3)] == [2, 2, 2]
    assert [type(obj) for obj in kept] == [Box, Point] * 3 and kept[1].y == 2


def test_cached_functions_are_asked_again():
    answers = {"n": 1}

    @functools.lru_cache(maxsize=None)
    def cached(n):
        return answers["n"]

    f = flexor.jit(lambda x: x * cached(3), fallback="raise")
    assert np.array_equal(f(X), X)
    answers["n"] = 2
    assert np.array_equal(f(X), X)
    cached.cache_clear()
    assert np.array_equal(f(X), X * 2)
