"""Classes that a function makes for itself, beside Python."""

import dataclasses
import functools

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = torch.arange(6.0).reshape(3, 2)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def outcome(function, *arguments):
    try:
        return repr(function(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def checked(function, *arguments):
    """The jitted function, which gives what Python gives, call after call."""
    jitted = flexor.jit(function, fallback="silent")
    want = outcome(function, *arguments)
    for _ in range(3):
        assert outcome(jitted, *arguments) == want
    return jitted.stats()


def holds(x):
    y = x + 10

    class Holder:
        def __init__(self, value):
            self.value = value

        def doubled(self):
            return self.value * 2

    made = Holder(x)
    return made.value - y, made.doubled()


def has_a_body(x):
    i = 7

    class Small:
        """Docs."""

        y: int = 1
        i = 3
        listed = [j * 2 for j in range(3)]
        if x.shape[0] > 2:
            way = 1
        else:
            way = 2
        gone = 5
        del gone
        seen = way + i

        def scaled(self):
            return x * self.i + self.way

    return Small().scaled() + Small.listed[1] + i, Small.__doc__, Small.__name__, hasattr(Small, "gone"), Small.seen


def shares_variables(x):
    n = 0

    class Counter:
        def count(self):
            nonlocal n
            n += 1
            return x * n

    counter = Counter()
    first = counter.count() + counter.count()
    x = x + 100
    return first, counter.count(), n


def inherits(x):
    class Base:
        def f(self):
            return x + 1

    class Derived(Base):
        def f(self):
            return super().f() * 2

        @property
        def p(self):
            return self.f() + x

        @staticmethod
        def scaled(a, k=3):
            return a * k

        @classmethod
        def made(cls):
            return cls().f()

        @functools.cached_property
        def kept(self):
            return x * 3

    d = Derived()
    return d.f(), d.p, d.scaled(x), Derived.made(), d.kept + d.kept, isinstance(d, Base), type(d) is Derived


def has_operators(x):
    class Pair:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Pair(self.value + other.value)

        def __eq__(self, other):
            return bool((self.value == other.value).all())

        def __iter__(self):
            return iter([self.value, self.value * 2])

    made = Pair(x) + Pair(x * 2)
    first, second = made
    return made.value, made == made, first + second


def has_data(x):
    @dataclasses.dataclass
    class Point:
        a: torch.Tensor
        b: int = 3
        c: int = dataclasses.field(default=4)

        def total(self):
            return self.a * self.b + self.c

    @dataclasses.dataclass(frozen=True)
    class Fixed:
        a: torch.Tensor

    return Point(x).total() + Point(x, b=5).total() + Fixed(x).a


def in_a_loop(x):
    out = x
    for k in range(3):

        class Step:
            number = k

            def __call__(self):
                return out * self.number + k

        out = Step()() + out
    return out


def in_a_loop_of_the_run(x):
    while x.sum() < 1000:

        class Step:
            def grown(self):
                return x * 2

        x = Step().grown() + 1
    return x


def on_two_ways(x):
    if x.sum() > 0:

        class Way:
            def f(self):
                return x

    else:

        class Way:
            def f(self):
                return -x

    return Way().f() * 2


def raises_its_own(x):
    class Mine(Exception):
        pass

    try:
        if x.shape[0] == 3:
            raise Mine("a")
    except Mine:
        return x + 1
    return x


def has_no_such_name(x):
    class Lacking:
        def f(self):
            return nowhere  # noqa: F821

    return Lacking().f() + x


@pytest.mark.parametrize(
    "function",
    (holds, shares_variables, inherits, has_operators, has_data, in_a_loop, in_a_loop_of_the_run, on_two_ways, raises_its_own, has_no_such_name),
    ids=lambda f: f.__name__,
)
def test_a_class_of_the_functions_own(function):
    stats = checked(function, X)
    assert not stats["fallbacks"] and not stats["foreign_calls"]


def test_the_body_of_a_class():
    for rows in (2, 3, 3):
        checked(has_a_body, X[:rows])


def shows(x):
    class Shown:
        def __init__(self, value):
            self.value = value

        def f(self):
            return self.value + x

    return Shown(x)


def test_classes_that_are_shown_are_anew_for_every_call():
    jitted = flexor.jit(shows, fallback="silent")
    first, second = jitted(X), jitted(X)
    assert type(first) is not type(second) and torch.equal(second.f(), X * 2)
    assert [r.startswith("a class of the function's own, or a part of it, handed to others") for r in jitted.stats()["fallbacks"]] == [True]


def changes_its_list(x):
    class Keeps:
        items = []

        def add(self):
            self.items.append(x)
            return len(self.items)

    return Keeps().add() + Keeps().add()


def changes_its_class(x):
    class Small:
        k = 3

    Small.k = 4
    return x * Small.k


def has_a_tensor(x):
    class Small:
        twice = x * 2

    return Small.twice


def is_a_layer(x):
    class Doubles(torch.nn.Module):
        def forward(self, value):
            return value * 2 + x

    return Doubles()(x)


def has_arguments(x):
    class Base:
        def __init_subclass__(cls, scale=1):
            cls.scale = scale

    class Scaled(Base, scale=5):
        pass

    return x * Scaled.scale


@pytest.mark.parametrize("function", (changes_its_list, changes_its_class, has_a_tensor, is_a_layer, has_arguments), ids=lambda f: f.__name__)
def test_what_is_not_followed_is_pythons(function):
    assert checked(function, X)["fallbacks"]
