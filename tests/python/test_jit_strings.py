"""Strings among the arguments of jitted functions: one program for all of them where only their letters count, else one for each."""

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

WORDS = ("hello", "", "a", "xyz", "éü", "😀b", "\ud800", "zz zz")
PLACE = {letter: place for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
NAME = {place: letter for letter, place in PLACE.items()} | {100 + i: f"<{i}>" for i in range(60)}
TABLE = torch.arange(84.0).reshape(28, 3)
NUMBERS = np.arange(28.0)


def counted(word):
    total = 0
    for letter in word:
        if letter == "l" or letter in {"x", "é"}:
            total += 1
        elif letter != "a":
            total += 10
    return total


def last(word):
    found = ""
    for letter in word:
        found = letter
    return found


def joined(word):
    out = []
    for letter in word:
        out.append(letter)
        out = out + ["-", "</s>"]
    return out


FOR_ALL = {
    "its length": lambda word: (len(word), 1 if word else 2),
    "places": lambda word: [PLACE.get(letter, -1) for letter in word],
    "an array of places": lambda word: np.take(NUMBERS, np.expand_dims([PLACE.get(c, 26) for c in word] + [27], 0), axis=0),
    "rows of a table": lambda word: TABLE[torch.tensor([PLACE.get(c, 26) for c in word] + [27])].sum(0),
    "there and back": lambda word: [NAME.get(PLACE.get(c, 103), "?") for c in list(word) + ["b", "</s>"]],
    "those that differ": lambda word: [c for c in word if c != "l"],
    "beside its letters": lambda word: [a == b for a, b in zip(word, list(word) + ["x"])],
    "compared letters": counted,
    "the last": last,
    "a longer list": joined,
}
BY_VALUE = {
    "itself": lambda word: word,
    "made longer": lambda word: word + "!",
    "in a text": lambda word: f"{word} has {len(word)}",
    "a letter": lambda word: word[-1] if word else None,
    "a pattern": lambda word: {"a": 1}.get(word, len(word)),
    "keys": lambda word: {letter: at for at, letter in enumerate(word)},
    "numbers of letters": lambda word: [ord(letter) for letter in word],
    "unused": lambda word: torch.ones(2),
    "its class": lambda word: (type(word), isinstance(word, str), word is None),
}


@pytest.mark.parametrize("name", [*FOR_ALL, *BY_VALUE])
def test_strings(name):
    function = FOR_ALL[name] if name in FOR_ALL else BY_VALUE[name]
    jitted = flexor.jit(function, fallback="raise")
    for word in WORDS * 2:
        found, wanted = jitted(word), function(word)
        assert repr(found) == repr(wanted) and type(found) is type(wanted)
    stats = jitted.stats()
    assert not stats["foreign_calls"] and stats["translations"] == (1 if name in FOR_ALL else len(WORDS))


def test_what_a_string_chooses_is_translated_for_each():
    def by_name(x, how="relu", *, axes=None):
        return getattr(torch, how)(x) if axes is None else torch.einsum(axes, x, x)

    jitted = flexor.jit(by_name, fallback="raise")
    x = torch.randn(5)
    for arguments, named in [((x,), {}), ((x, "exp"), {}), ((x, "relu"), {}), ((x,), {"axes": "i,i->i"}), ((x,), {"axes": "i,i->"})]:
        assert torch.allclose(jitted(*arguments, **named), by_name(*arguments, **named))
    assert jitted.stats()["translations"] == 4


def listed(x, most):
    places, sums, flags = [], [], []
    for i in range(most):
        places.append(i * i)
        sums.append(x[i].sum().item())
        flags.append(sums[-1] > 1)
    return places, sums, flags, sum(places), max(sums), torch.tensor(places), torch.tensor(sums)


def test_lists_of_numbers_are_one_compilation_whatever_their_length():
    jitted = flexor.jit(listed, fallback="raise")
    before = flexor.stats()["compilations"]
    for most in (1, 2, 15, 16, 17, 33, 5):
        x = torch.randn(most, 2)
        found, wanted = jitted(x, most), listed(x, most)
        assert repr(found[:5]) == repr(wanted[:5]) and torch.equal(found[5], wanted[5]) and torch.equal(found[6], wanted[6])
        if most == 2:
            after = flexor.stats()["compilations"]
    assert flexor.stats()["compilations"] == after and after - before < 8 and jitted.stats()["translations"] == 1
