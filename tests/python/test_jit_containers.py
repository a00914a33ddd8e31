"""Lists and dicts that change, the program's and the caller's: jitted functions beside Python, results and arguments afterwards."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = torch.arange(6.0).reshape(3, 2)
HELD = [1, 2]
CASES = {}


def case(*calls, follows=True, leaves=()):
    """Registers a function with argument tuples; whether programs do its calls that raise nothing, and what they leave to Python."""

    def add(function):
        CASES[function.__name__] = (function, calls, follows, set(leaves))
        return function

    return add


def table_of(x):
    table = {}
    for i in range(x.shape[0]):
        table[int(x[i, 0])] = x[i].sum()
    return table


@case(([5, 6, 7], 2), ([1], 3), ([], 4))
def grows_by_a_later_argument(items, x):
    items.append(x)
    items += [x + 1]
    return len(items), items[0]


@case((X, [5, 6], 2.5, X + 1), (X[:2], [1, 2], 3.5, X))
def writes_between_tensors(x, items, number, y):
    items[0] = number
    items.insert(1, 7)
    return x * number + items[2], y


@case((([5, 6], X), {"a": 1}, 2), (([1], X[:1]), {"a": 4}, 3), follows=False)
def writes_inside_a_tuple(pair, table, number):
    pair[0].reverse()
    table["b"] = number
    return pair[1] * number, table["a"]


@case((X, 2), (X, 4), (X, 1), (X[:0], 1))
def deletes(x, key):
    table = table_of(x)
    del table[key]
    return table


@case((X,), (X[:2],))
def updates(x):
    table, other = table_of(x), {9: x[0].sum()}
    table.update({7: x[0, 0]})
    other.update(table)
    return table, other


@case((X, 2), (X, 7), (X[:0], 7))
def pops_keys(x, key):
    table = table_of(x)
    value = table.pop(key, x.sum())
    return table, value, table.pop(0, None) is None


@case((X, 2), (X, 7))
def pops_keys_that_may_be_missing(x, key):
    return table_of(x).pop(key)


@case((X,), (-X,), (X[:1],))
def sorts_items(x):
    table, names = table_of(x), {"b": x[0], "a": x[-1]}
    return sorted(table.items()), sorted(table.items(), reverse=True), [value for _, value in sorted(names.items())], list(table.items())


def rows_of(x):
    out = []
    for row in x:
        out.append(row * 2)
    return out


@case((X,), (X[:2],), (X[:0],))
def goes_backwards(x):
    rows = rows_of(x)
    again = [row + 1 for row in reversed(rows)]
    rows.reverse()
    return again, rows, rows[::-1], rows[1:], rows[-2:None:-1], rows[-5:1], rows[7:], [row for row in reversed(x)]


@case((X,), (X[:2],), (X[:1],))
def pops(x):
    rows = rows_of(x)
    last, first = rows.pop(), rows.pop(0)
    return last, first, rows


@case((X,), (X[:0],))
def works_off(x):
    todo, total = [], torch.zeros(())
    for row in x:
        todo.append(row.sum())
    todo.insert(1, x.sum())
    todo.insert(-9, x.sum() + 1)
    while todo:
        total = total * 2 + todo.pop()
    return total


@case((X,), (X[:2],))
def grows_by_tuples(x):
    out = [(0, x.sum())]
    for i, row in enumerate(x):
        out.append((i, row.sum()))
    return out, [total for _, total in out]


@case((X,), (-X,), (X * float("nan"),))
def chooses(x):
    return max(x[0, 0], x[1, 0], x[2, 1]), min(x[0]), max(x[:, 0]), min(x.sum(), x[1, 1]), max(x[0, 1], 0.5)


@case((X, []), (-X, [1]), (X, []))
def appends(x, items):
    if x.sum() > 3:
        items.append(x.sum())
    else:
        items.insert(0, 5)
    return x, items


@case((X, [], []), (X, [1], [2]))
def appends_to_two(x, first, second):
    first.append(1)
    second += [x, x[0]]
    return first is second, len(first), len(second)


@case((X, []), (-X, []), (X, [3]))
def raises_behind_a_write(x, items):
    items.append(x.sum())
    if x.sum() > 3:
        raise ValueError("more than 3")
    return x


@case((X, [1, 2, 3]), (X, [X, X]))
def pops_from_the_caller(x, items):
    return items.pop(), items.pop(0), x


@case((X, {"a": 1, "b": 2}), (X, {"a": X, "b": 2, "c": 3}), (X, {"a": 1}))
def writes_keys(x, table):
    table["a"] += 1
    table["z"] = x.sum()
    del table["b"]
    return table.pop("c", 7), len(table), list(table)


@case((X, {}), (X, {"q": 2}))
def updates_the_caller(x, table):
    table.setdefault("q", x)
    table.update({"r": 2})
    return table


@case((X, [X, X]), (X, [X + 1, 2 * X]))
def writes_to_what_it_holds(x, items):
    items[0].add_(1)
    items[1] = x
    items.reverse()
    return items[0] is x


@case((X, [3, 1, 2], {1: 2}), (X, [3.5, 1.0], {}))
def empties(x, items, table):
    first = items[0]
    items.clear()
    table.clear()
    return x + first


@case((X, [3.0, 1.0, 2.0]), (X, [3.5, X]))
def slices(x, items):
    items[1:2] = [x, x]
    del items[0]
    items *= 2
    return len(items)


@case((X, [[]]), (X, [[1]]))
def appends_to_a_list_in_a_list(x, items):
    items[0].append(x)
    return items


@case((X, {}), (X, {"n": {"a": 1}}), (X, {"n": 3}))
def writes_to_a_dict_in_a_dict(x, table):
    table["k"] = x.sum()
    if isinstance(table.get("n"), dict):
        table["n"]["m"] = x
        table["n"]["q"] = [x]
    return table


@case((X, [X * 2]), (X, [X]))
def stores_again_what_it_holds(x, items):
    items.append(items[0])
    items[0] = x
    items[1], items[0] = items[0], items[1]
    return items[1] is x, torch.cat(items)


@case((X, []), (X[:2], [1]), follows=False)
def appends_in_a_loop_of_the_run(x, items):
    for row in x:
        items.append(row.sum())
    return len(items)


@case((X, [3.0, 1.0], 1), (X, [3.5, 1.0], 0), (X, [3.5, 1.0], 5), follows=False)
def writes_where_the_run_says(x, items, place):
    items[place] = 3.5
    return x


def outcome(function, arguments):
    try:
        return "returned", function(*arguments), arguments
    except Exception as error:
        return "raised", type(error), str(error), arguments


@pytest.mark.parametrize("name", CASES)
def test_what_changes_is_pythons(name):
    function, calls, follows, leaves = CASES[name]
    jitted = flexor.jit(function, fallback="silent")
    raised = 0
    for arguments in (*calls, *calls):
        want, got = outcome(function, copy.deepcopy(arguments)), outcome(jitted, copy.deepcopy(arguments))
        assert repr(got) == repr(want)
        raised += want[0] == "raised"
    stats = jitted.stats()
    if follows:
        assert sum(stats["fallbacks"].values()) <= raised, stats
        assert {what for _, _, what in stats["foreign_calls"]} <= leaves, stats
    else:
        assert stats["fallbacks"]


def test_a_list_that_is_found_elsewhere_too_is_pythons():
    def appends(x, items):
        items.append(4)
        return len(HELD)

    jitted = flexor.jit(appends, fallback="silent")
    assert [jitted(X, [1]), jitted(X, HELD), jitted(X, HELD), jitted(X, [2])] == [2, 3, 4, 4] and HELD == [1, 2, 4, 4]


def test_two_arguments_that_are_one_list():
    def appends(x, first, second):
        first.append(1)
        second.append(2)
        return len(first)

    jitted = flexor.jit(appends, fallback="silent")
    one = [0]
    assert jitted(X, [0], [0]) == 2 and jitted(X, one, one) == 3 and one == [0, 1, 2] and jitted(X, [0], [0]) == 2


def test_numbers_of_a_list_that_is_written_are_of_the_run():
    def counts(x, items):
        items[0] += 1
        return x * items[0]

    jitted = flexor.jit(counts, fallback="raise")
    items = [0]
    for i in range(5):
        assert torch.equal(jitted(X, items), X * (i + 1)) and items == [i + 1]
    assert jitted.stats()["translations"] == 1
