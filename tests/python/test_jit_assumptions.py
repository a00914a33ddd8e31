"""What a program takes for granted of its values, behind a write that cannot be done twice: eager's error, or Python from the start."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def masked(x, mask):
    x += 1
    return x[mask]


def power(x, n):
    x += 1
    return torch.tensor([2, 3]) ** n


def ranged(x, stop):
    x += 1
    return torch.arange(2, stop)


def normalised(x, mean, var):
    mean.add_(0.5)
    return torch.nn.functional.batch_norm(x, mean, var, training=True)


def pieces(x, y):
    x += 1
    return y.chunk(4)


def limited(x, low, high):
    x += 1
    return x.clamp(low, high)


def outcome(function, arguments):
    mine = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    try:
        return function(*mine), None, mine
    except Exception as error:
        return None, error, mine


@pytest.mark.parametrize(
    ("function", "good", "others"),
    [
        (masked, (torch.ones(3), torch.tensor([True, False, True])), [(torch.ones(3), torch.tensor([True, False]))]),
        (power, (torch.ones(2), 2), [(torch.ones(2), -1), (torch.ones(2), 0)]),
        (ranged, (torch.ones(2), 5), [(torch.ones(2), 1), (torch.ones(2), 2)]),
        (normalised, (torch.ones(4, 3), torch.zeros(3), torch.ones(3)), [(torch.ones(1, 3), torch.zeros(3), torch.ones(3))]),
        (pieces, (torch.ones(2), torch.ones(8)), [(torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(0))]),
        (limited, (torch.ones(2), 0.0, 1.5), [(torch.ones(2), 1.5, 0.0), (torch.ones(2), 0.0, 0.0)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_assumptions_behind_a_write(function, good, others):
    jitted = flexor.jit(function, fallback="silent")
    for arguments in [good, good, *others, *others, good]:
        want, refused, theirs = outcome(function, arguments)
        got, raised, mine = outcome(jitted, arguments)
        assert (refused is None) == (raised is None), (refused, raised)
        assert refused is None or isinstance(raised, type(refused)), (refused, raised)
        for a, b in zip((got, *mine), (want, *theirs)):
            a, b = (a, b) if isinstance(b, tuple) else ((a,), (b,))
            assert len(a) == len(b)
            for part, other in zip(a, b):
                assert torch.equal(part, other) if isinstance(other, torch.Tensor) else part == other
