"""Worlds: each makes functions with `jit`, calls them and changes what lies around them in between; it gives everything that it has
seen, which has to be the same with flexor.jit as with the function itself."""

import collections
import dataclasses
import enum
import functools

import numpy as np

import flexor

X = np.arange(-10, 10, dtype=np.float32).reshape(4, 5) / 3


def outcome(function, arguments):
    try:
        return "returned", function(*arguments)
    except Exception as error:
        return "raised", type(error)


def tried(function, *arguments):
    kind, result = outcome(function, arguments)
    return kind, result.__name__ if kind == "raised" else result


def lists_and_dicts_of_the_caller(jit):
    @jit
    def grows(items, x):
        items += [x]
        return len(items)

    @jit
    def drops(items):
        del items["a"]
        return len(items)

    @jit
    def given(items, table):
        return items, {"table": table, "items": [items]}

    @jit
    def are_one(a, b):
        return a is b

    @jit
    def options(**others):
        others["z"] = 1
        return others.pop("a"), others

    items, table, seen = [1], {"b": 2}, []
    for _ in range(3):
        table["a"] = X
        first, rest = given(items, table)
        seen += [first is items, rest["table"] is table, rest["items"][0] is items, grows(items, 2), drops(table)]
        seen += [are_one(items, items), are_one(items, [*items]), options(a=1, b=2)]
    return seen, items, table


class Level(enum.IntEnum):
    LOW = 1


class Grade(enum.IntEnum):
    FIRST = 1


class Name(str, enum.Enum):
    A = "a"


def keys_that_are_equal_but_not_alike(jit):
    @jit
    def keys(table):
        return list(table)

    @jit
    def given(value):
        return repr(value), value

    tables = [keys({1: X}), keys({True: X}), keys({1.0: X})]
    return tables, [given(v) for v in (Level.LOW, Grade.FIRST, 1, "a", Name.A, (0.0,), (-0.0,), (1,), (True,))]


def identity_of_truth_values(jit):
    @jit
    def tells(flag, x):
        return "yes" if flag is True else "no" if flag is False else "other", (x.sum() > 0) is True, bool(x.sum() > 0) is not False

    return [tells(flag, x) for flag in (True, False, 1, None, True) for x in (X * 0 + 1, X * 0 - 1)]


def signs_and_kinds_of_numbers(jit):
    @jit
    def f(a):
        return +a, abs(a), -a

    @jit
    def copies(x):
        y = +x
        y += 1
        return y

    x = np.zeros(3)
    return [f(a) for a in (True, False, -0.0, 0.0, -2.5, float("nan"), -3)], copies(x), x, tried(copies, np.array([True]))


def sequences_compared(jit):
    @jit
    def f(x, n):
        return x.shape == [4, 5], x.shape == (4, 5), (n, 1) == [n, 1], [n] == [n], (n,) in [(n,)], [n] != (n,)

    return f(X, 3), f(X, float("nan")), f(X[:2], 3)


def integers_of_any_size(jit):
    @jit
    def f(a, b):
        return a * b, a + b, a - b, -a

    @jit
    def shifted(n):
        return 1 << n, ~n

    @jit
    def power(a, b):
        return a**b

    numbers = (2**62, -(2**63), 2**63 - 1, 3, 2**70)
    powers = [(2, 100), (2.0, 0.5), (-2.0, 0.5), (1e300, 2), (0.0, -1.0), (-2, -1), (True, 2.0)]
    return [f(a, b) for a in numbers for b in numbers], [shifted(n) for n in (3, 62, 63, 100)], [tried(power, *pair) for pair in powers]


ZERO = 0.0
TABLE = {"a": 1, "b": 2}
ARRAYS = [np.ones(5, np.float32)]


def what_guards_have_to_tell(jit):
    global ZERO

    @jit
    def zero():
        return ZERO

    @jit
    def table():
        return list(TABLE), list(TABLE.values()), [pair for pair in TABLE.items()]

    @jit
    def array(x):
        return x + ARRAYS[0]

    seen = [zero(), table(), array(X)]
    ZERO = -0.0
    TABLE["a"] = TABLE.pop("a")
    ARRAYS.clear()
    seen += [zero(), table(), tried(array, X)]
    TABLE["c"] = TABLE.pop("b")
    ARRAYS.append(2.0)
    seen += [table(), array(X)]
    ZERO = 0.0
    TABLE.clear()
    TABLE.update(a=1, b=2)
    ARRAYS[0] = np.ones(5, np.float32)
    return seen


class Holder:
    pass


def attributes_that_come_and_go(jit):
    holder = Holder()

    @jit
    def read(x):
        return x + holder.w

    @jit
    def asks(x):
        return hasattr(holder, "w"), getattr(holder, "w", None)

    @jit
    def sets(x):
        holder.w = x
        return hasattr(holder, "w"), holder.w

    seen = [tried(read, X), asks(X)]
    holder.w = X
    seen += [read(X), asks(X)]
    del holder.w
    seen += [tried(read, X), asks(X)]
    holder.w = 3
    seen += [read(X), asks(X), sets(X), sets(X + 1), holder.w]
    del holder.w
    return seen, sets(X), holder.w


def defaults_that_change(jit):
    def helper(x, a=1, *, b=2):
        return x * a + b

    def base(x, a=3):
        return x * a

    f, g = jit(lambda x: helper(x)), jit(base)
    seen = [f(X), g(X)]
    helper.__defaults__, base.__defaults__ = (5,), (7,)
    seen += [f(X), g(X)]
    helper.__kwdefaults__["b"] = 11
    seen += [f(X)]
    helper.__kwdefaults__ = {"b": 13}
    seen += [f(X)]
    base.__code__ = (lambda x, a=0: x - a).__code__
    return [*seen, g(X)]


def containers_that_the_function_writes(jit):
    table, items, log, members = {"a": 1}, [1, X], [], set()

    @jit
    def writes(x):
        table["a"] = x.sum()
        items[-2] = x * 2
        return table["a"] + 1, items[0]

    @jit
    def counts(x):
        log.append(1)
        return len(log), log[-1]

    @jit
    def pops(x):
        log.append(2)
        return log.pop()

    @jit
    def adds(x, n):
        members.add(n)
        return len(members), n in members

    @jit
    def new(x, n):
        table[n] = n
        return table[n], n in table

    seen = [f(X + k) for k in range(3) for f in (writes, counts, pops)]
    return seen, [adds(X, n) for n in (1, 2, 2)], [new(X, n) for n in ("p", "q", "p")], table, items, log, members


NUMBER = 0


def calls_that_change_what_is_read_behind_them(jit):
    global NUMBER
    holder = Holder()
    holder.v, holder.w = 1, X

    @flexor.disable
    def bump():
        global NUMBER
        NUMBER += 1
        holder.v += 1
        holder.w = holder.w + 1

    @jit
    def number(x):
        bump()
        return x * NUMBER

    @jit
    def attribute(x):
        before = holder.v
        bump()
        return before, holder.v

    @jit
    def array(x):
        bump()
        return x + holder.w

    seen = [f(X) for _ in range(4) for f in (number, attribute, array)]
    NUMBER = 0
    return seen


def keys_that_are_missing(jit):
    counts, made = collections.Counter(), collections.defaultdict(lambda: 7)

    @jit
    def f(x):
        return x * counts["z"], made["q"]

    seen = [f(X), f(X), dict(made)]
    counts["z"] = 3
    return [*seen, f(X)]


def iterators_of_somebody_else(jit):
    @jit
    def two(it):
        return next(it), next(it)

    @jit
    def every(it):
        return list(it)

    shared = iter([1, 2, 3, 4, 5])
    return two(shared), two(shared), tried(two, shared), every(k * 2 for k in range(3)), every(map(abs, [-1, 2])), two(iter("ab"))


def lists_and_dicts_that_change_under_an_iterator(jit):
    @jit
    def grows(x):
        items, seen = [1, 2, 3], []
        for item in items:
            seen.append(item)
            if len(items) < 6:
                items.append(item * 10)
        return seen

    @jit
    def widens(x):
        table = {"a": 1}
        for key in table:
            table[key + "b"] = 2
        return table

    @jit
    def views(x):
        table = {"a": 1}
        keys, values, items = table.keys(), table.values(), table.items()
        table["b"] = 2
        return list(keys), list(values), list(items), len(keys), "b" in keys, isinstance(keys, tuple), type(values).__name__

    @jit
    def zipped(x):
        numbers = iter([1, 2, 3, 4])
        pairs = list(zip(numbers, "ab"))
        return pairs, list(numbers)

    return grows(X), tried(widens, X), views(X), zipped(X)


@dataclasses.dataclass
class Plain:
    a: object


@dataclasses.dataclass(frozen=True)
class Fixed:
    a: object
    b: int = 2


@dataclasses.dataclass(frozen=True)
class Scaled(Fixed):
    def __post_init__(self):
        object.__setattr__(self, "a", self.a * 10)


@dataclasses.dataclass
class Falsy:
    a: object

    def __bool__(self):
        return False


@dataclasses.dataclass
class Doubling:
    a: object

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


class Pair(collections.namedtuple("Pair", "x y")):
    __slots__ = ()

    def __new__(cls, x):
        return super().__new__(cls, x, x * 2)

    @property
    def flag(self):
        return False


Point = collections.namedtuple("Point", "a b", defaults=[3])


def instances_with_rules_of_their_own(jit):
    @jit
    def frozen(x):
        fixed = Fixed(x)
        fixed.a = 1
        return fixed.a

    @jit
    def scaled(x):
        return Scaled(x).a

    @jit
    def falsy(x):
        return 1 if Falsy(x) else 2

    @jit
    def doubled(x):
        value = Doubling(x)
        value.a = x + 1
        return value.a

    @jit
    def pair(x):
        made = Pair(x)
        return made.y, 1 if made.flag else 2

    @jit
    def wrong(x, n):
        return Point() if n == "none" else Point(1, zz=2) if n == "name" else Fixed(c=1) if n == "field" else Fixed(1, 2, 3)

    @jit
    def plain(x):
        return Plain(x).a

    seen = [tried(frozen, X), scaled(X), falsy(X), doubled(X), pair(X), plain(X)]
    seen += [tried(wrong, X, n) for n in ("none", "name", "field", "many")]
    own = Plain.__init__

    def other(self, a):
        self.a = a * 100

    Plain.__init__ = other
    seen.append(plain(X))
    Plain.__init__ = own
    return seen


def functions_under_other_functions(jit):
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*arguments, **keywords):
            return function(*arguments, **keywords) * 2

        return wrapper

    @jit
    @doubled
    def f(x, k=1):
        return x + k

    class Scale:
        factor = 2

        @jit
        def times(self, x):
            return x * self.factor

        @staticmethod
        @jit
        def plus(x):
            return x + 1

        @classmethod
        @jit
        def of_class(cls, x):
            return x * cls.factor

        @jit
        def __call__(self, x):
            return self.times(x) + self.plus(x) + self.of_class(x)

    scale = Scale()
    seen = [f(X), f(X, k=3), f(X, 2), scale(X)]
    Scale.factor = 5
    return [*seen, scale(X), scale.times(X), Scale.of_class(X)]


class Counting:
    def __init__(self):
        self.reads = 0

    def __get__(self, instance, owner=None):
        self.reads += 1
        return self.reads


class Described:
    value = Counting()


def attributes_behind_descriptors(jit):
    described = Described()
    vars(Described)["value"].reads = 0

    @jit
    def f(x):
        return described.value, described.value

    return [f(X) for _ in range(3)], vars(Described)["value"].reads


LATE = 5


def builtins_that_look_at_their_caller(jit):
    @jit
    def f(x):
        return "LATE" in globals(), globals()["LATE"]

    @jit
    def names(x):
        kept = 1
        return sorted(locals()), kept, eval("kept + 1")

    return f(X), names(X)


def results_with_one_object_in_two_places(jit):
    @jit
    def f(x):
        items, table = [x], {"a": 1}
        table["b"] = 2
        return items, items, [table, {"again": table}]

    @jit
    def cycle(x):
        items = [1]
        items.append(items)
        return items

    first, second, (table, other) = f(X)
    first.append(3)
    whole = cycle(X)
    return first is second, len(second), other["again"] is table, whole[1] is whole, f(X)


def functions_handed_to_builtins(jit):
    log = []

    @jit
    def f(x, n):
        log_before = len(log)
        doubled = list(map(lambda v: v * n * x, [1, 2]))
        chosen = [v for v in filter(lambda v: v > 1, [1, 2, 3])]
        ordered = sorted([3, 1, 2], key=lambda v: -v), sorted([(1, x), (0, x)], key=lambda pair: pair[0], reverse=True)
        most = max([1, -5, 3], key=abs), min([2, 1, 1.0], key=lambda v: v), max("a", "b", key=lambda v: v)
        return doubled, chosen, ordered, most, functools.reduce(lambda a, b: a + b, [x, x], 1), log_before

    @jit
    def nothing(x):
        return max([], key=lambda v: v)

    @jit
    def lazy(x):
        pairs = map(lambda v: log.append(v), [1, 2])
        log.append(0)
        list(pairs)
        return x

    return f(X, 1), f(X, 2.5), tried(nothing, X), lazy(X), log


def lists_sorted_in_place(jit):
    @jit
    def f(x):
        items = [3, 1, 2]
        items.sort()
        items.remove(2)
        return items

    @jit
    def mixed(x):
        [3, "a"].sort()

    @jit
    def missing(x):
        [3].remove(5)

    return f(X), tried(mixed, X), tried(missing, X)


def recursion(jit):
    @jit
    def down(n, x):
        return x if n == 0 else down(n - 1, x + 1)

    @jit
    def numbers(n):
        for i in range(n):
            yield i

    @jit
    def endless(x):
        return endless(x)

    return down(3, X), down(200, X), tried(endless, X), list(numbers(3))


def scalars_of_numpy(jit):
    @jit
    def f(a, x):
        return a, [a], a * 2, isinstance(a, np.ndarray), isinstance(a, np.floating), isinstance(x.sum(), np.ndarray), type(x.sum()).__name__

    return [f(a, X) for a in (np.float64(1), np.int8(3), np.bool_(True), np.array(2.5), np.float32(-0.0))]


def scalars_of_numpy_are_no_views(jit):
    @jit
    def sorted_by_bubbles(x):
        for _ in range(len(x)):
            for i in range(len(x) - 1):
                if x[i] > x[i + 1]:
                    x[i], x[i + 1] = x[i + 1], x[i]
        return x

    @jit
    def kept(x, log):
        first, items = x[0, 0], [v for v in x[1]]
        log.append(x[0, 1])
        x += 1
        return first, items, x[0, 0]

    @jit
    def counted(x, n):
        total = x.sum()
        before = total
        for i in range(n):
            total += x[0, i]
        total *= 2
        return before, total

    @jit
    def without_axes(x):
        part, other = x[0, 0, ...], x[:1, 0].squeeze()
        part += 1
        other *= 3
        return part, other, x

    @jit
    def read(x):
        return x[0, 0] + x[1, 1], [row[0] for row in x]

    seen = []
    for n in (1, 2, 4, 17):
        x, log = np.arange(4.0 * n).reshape(4, n)[:, ::-1].copy(), []
        seen += [sorted_by_bubbles(x[0]), counted(x, n), without_axes(x.copy()), tried(kept, x, log), log, tried(read, x)]
    return seen


def arrays_made_of_numbers(jit):
    @jit
    def made(n, x):
        return np.zeros(n), np.ones((n, 2), bool), np.full(n, 2), np.full((2, n), x[0]), np.arange(1, n), np.eye(n, 3), np.empty((0, n))

    @jit
    def gathered(n, x):
        out = []
        for i in range(n):
            out.append(x[i] * 2)
        return np.array(out), np.array([x, x]), np.asarray(x, np.float32), np.array(x) is x, np.asarray(x) is x

    @jit
    def alone(n):
        table = np.zeros(n + 1, np.int64)
        for i in range(1, n + 1):
            table[i] = table[i - 1] + i
        return table

    @jit
    def ordered(x):
        return np.argsort(x % 3, kind="stable"), x.argsort(stable=True)

    x = np.array([3.0, np.nan, 1.0, 2.0, 1.0, 0.0])
    seen = [tried(f, n, x) for n in (3, 1, 2, 0, -1) for f in (made, gathered)]
    return seen, [tried(alone, n) for n in (4, 1, 0, -1, -2)], ordered(x), ordered(np.arange(40) % 7)


def writes_that_meet_what_they_read(jit):
    @jit
    def summed(x):
        x[1:] += x[:-1]
        return x

    @jit
    def turned(x):
        x[...] = x.T
        x[:] = x[::-1] * 2
        return x

    @jit
    def moved(x, order):
        x[:] = x[order]
        return x

    return [
        (summed(np.arange(n * 1.0)), turned(np.arange(1.0 * n * n).reshape(n, n)), moved(np.arange(n * 1.0), np.arange(n)[::-1].copy()))
        for n in (1, 2, 16, 17, 33)
    ]


def classes_that_change(jit):
    class Base:
        k = 1

    class Other(Base):
        k = 50

    class Last:
        k = 7

    holder = Base()

    @jit
    def f(x):
        return x * holder.k

    seen = [f(X)]
    holder.__class__ = Other
    seen.append(f(X))
    del Other.k
    seen.append(f(X))
    Other.__bases__ = (Last,)
    return [*seen, f(X)]


def generators_that_are_left(jit):
    log = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    @jit
    def f(x):
        for number in numbers():
            break
        log.append("behind")
        return x * number

    return f(X), f(X), log


WORLDS = [
    lists_and_dicts_of_the_caller,
    keys_that_are_equal_but_not_alike,
    identity_of_truth_values,
    signs_and_kinds_of_numbers,
    sequences_compared,
    integers_of_any_size,
    what_guards_have_to_tell,
    attributes_that_come_and_go,
    defaults_that_change,
    containers_that_the_function_writes,
    calls_that_change_what_is_read_behind_them,
    keys_that_are_missing,
    iterators_of_somebody_else,
    lists_and_dicts_that_change_under_an_iterator,
    instances_with_rules_of_their_own,
    functions_under_other_functions,
    attributes_behind_descriptors,
    builtins_that_look_at_their_caller,
    results_with_one_object_in_two_places,
    functions_handed_to_builtins,
    lists_sorted_in_place,
    recursion,
    scalars_of_numpy,
    scalars_of_numpy_are_no_views,
    arrays_made_of_numbers,
    writes_that_meet_what_they_read,
    classes_that_change,
    generators_that_are_left,
]
