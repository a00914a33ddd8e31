"""Losses, recurrent layers and what else torch.nn has in C++, beside eager: values, dtypes, errors, and that nothing falls back."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import torch.nn.functional as F  # noqa: E402

REDUCTIONS = ("mean", "sum", "none")

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_grad():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def random(*sizes):
    return torch.randn(sizes)


def classes(count, *sizes):
    return torch.randint(0, count, sizes)


def _leaves(value):
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _outcome(function, arguments):
    try:
        return _leaves(function(*arguments))
    except Exception as error:
        return type(error)


def compare(function, *calls, refused=()):
    """One jitted function for all the calls, then for `refused`, which eager refuses or keeps: the same outcome twice each, and
    no foreign call for `calls`."""
    jitted = flexor.jit(function, fallback="silent")
    for native, arguments in [(True, c) for c in calls] + [(False, c) for c in refused]:
        wanted = _outcome(function, arguments)
        for _ in range(2):
            found = _outcome(jitted, arguments)
            if isinstance(wanted, type) or isinstance(found, type):
                assert found == wanted
            else:
                torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
        if native:
            computed = [name for _, _, name in jitted.stats()["foreign_calls"] if name not in ("format", "f-string", "str.format", "warn")]
            assert not computed and not jitted.stats()["fallbacks"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
class TestLosses:
    SIZES = (0, 1, 2, 15, 16, 17, 33)

    def test_of_two(self, reduction):
        pairs = [(random(n, 5) * 3, random(n, 5)) for n in self.SIZES] + [(torch.full((2, 5), float("nan")), random(2, 5))]
        for kind in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
            compare(lambda x, y: kind(x, y, reduction=reduction), *pairs)
        for beta in (0.5, 0.0, 2.0):
            compare(lambda x, y: F.smooth_l1_loss(x, y, reduction=reduction, beta=beta), *pairs)
        compare(lambda x, y: F.huber_loss(x, y, reduction=reduction, delta=0.7), *pairs)

    def test_divergence(self, reduction):
        reduction = "batchmean" if reduction == "mean" else reduction
        for of_log in (False, True):
            pairs = [(random(n, 5).log_softmax(-1), torch.rand(n, 5) * classes(2, n, 5)) for n in self.SIZES]
            compare(lambda x, y: F.kl_div(x, y, reduction=reduction, log_target=of_log), *pairs)

    def test_logistic(self, reduction):
        for weight in (None, torch.rand(5)):
            for positive in (None, torch.rand(5)):
                calls = [(random(n, 5) * 50, torch.rand(n, 5), weight, positive) for n in self.SIZES]
                compare(lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, reduction=reduction, pos_weight=p), *calls)

    def test_probabilities(self, reduction):
        for weight in (None, torch.rand(5)):
            calls = [(torch.rand(n, 5), torch.rand(n, 5), weight) for n in self.SIZES]
            edges = [(torch.tensor([[0.0, 1.0, 0.5, 1e-30, 1 - 1e-7]]), torch.tensor([[0.0, 1.0, 1.0, 1.0, 0.0]]), weight)]
            compare(lambda x, y, w: F.binary_cross_entropy(x, y, w, reduction=reduction), *calls, *edges)
            compare(lambda x, y, w: torch.nn.BCELoss(w, reduction=reduction)(x, y), *edges)

    def test_classes(self, reduction):
        nothing = torch.full((3,), -100)
        rows = [(random(n, 5), classes(5, n)) for n in self.SIZES] + [(random(3, 5), torch.tensor([0, -100, 1])), (random(3, 5), nothing)]
        wrong = [(random(3, 5), torch.tensor([0, 7, 1])), (random(3, 5), torch.tensor([0, 1])), (random(5), torch.tensor(2))]
        compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction), *rows, refused=wrong)
        compare(lambda x, t: F.nll_loss(x, t, reduction=reduction), *rows, refused=wrong)
        compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=0.1), *rows, refused=wrong)
        weighted = [(x, t, torch.rand(5)) for x, t in rows]
        compare(lambda x, t, w: F.cross_entropy(x, t, w, reduction=reduction), *weighted, refused=[(*weighted[3][:2], torch.rand(4))])
        maps = [(random(n, 5, 3, 2), classes(5, n, 3, 2)) for n in (1, 2, 3)]
        compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction, ignore_index=2), *maps)

    def test_infinite_logits_of_what_is_left_out_count_nothing(self, reduction):
        logits = torch.tensor([[0.0, -torch.inf], [1.0, 2.0]])
        compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction, ignore_index=1), (logits, torch.tensor([1, 0])))
        compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction, ignore_index=0), (logits, torch.tensor([0, 1])))

    def test_probabilities(self, reduction):
        for smoothing in (0.0, 0.2):
            for sizes in ((2, 5), (3, 5, 4)):
                calls = [(random(*sizes), torch.rand(sizes))]
                compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing), *calls)


CELLS = {"LSTM": torch.nn.LSTMCell, "GRU": torch.nn.GRUCell, "RNN": torch.nn.RNNCell}
OPTIONS = ({}, {"bias": False}, {"batch_first": True}, {"num_layers": 2, "bidirectional": True, "dropout": 0.5})


class TestRecurrent:
    @pytest.mark.parametrize("kind", CELLS)
    @pytest.mark.quick
    def test_cell(self, kind):
        for options in ({}, {"bias": False}, *([{"nonlinearity": "relu"}] if kind == "RNN" else [])):
            compare(CELLS[kind](4, 6, **options).eval(), *[(random(n, 4),) for n in (0, 1, 3, 17)])

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    @pytest.mark.parametrize("kind", CELLS)
    def test_layer(self, kind, options):
        layer = getattr(torch.nn, kind)(4, 6, **options).eval()
        lengths = (1, 2, 5, 16, 17)
        compare(layer, *[(random(3, n, 4) if "batch_first" in options else random(n, 3, 4),) for n in lengths])

    def test_one_compilation_for_all_lengths(self):
        jitted = flexor.jit(torch.nn.LSTM(4, 6).eval())
        jitted(random(2, 2, 4)), jitted(random(3, 2, 4))
        before = flexor.default_session().stats()["compilations"]
        for length in range(4, 20):
            jitted(random(length, 2, 4))
        assert flexor.default_session().stats()["compilations"] == before
        assert jitted.stats()["translations"] == 1

    def test_a_replaced_weight_is_seen(self):
        layer = torch.nn.GRU(4, 6).eval()
        jitted = flexor.jit(layer)
        x = random(3, 2, 4)
        torch.testing.assert_close(jitted(x), layer(x))
        layer.weight_hh_l0 = torch.nn.Parameter(random(18, 6))
        torch.testing.assert_close(jitted(x), layer(x))
        layer.weight_hh_l0.mul_(0.5)
        torch.testing.assert_close(jitted(x), layer(x))

    def test_what_is_torchs_own(self):
        layer = torch.nn.LSTM(4, 6).eval()
        packed = torch.nn.utils.rnn.pack_sequence([random(3, 4), random(2, 4)])
        jitted = flexor.jit(layer, fallback="silent")
        torch.testing.assert_close(jitted(packed)[0].data, layer(packed)[0].data)
        assert _outcome(jitted, (random(0, 2, 4),)) == _outcome(layer, (random(0, 2, 4),)) == RuntimeError


class TestLayers:
    def test_rectified(self):
        weights = [(random(3, 4), random(1)), (torch.tensor([float("nan"), -1.0, 0.0]), random(1))]
        compare(F.prelu, *weights, (random(3, 4), random(4)), refused=[(random(3, 4), random(3))])
        compare(F.prelu, (random(3, 4, 2), random(4)))
        compare(torch.nn.PReLU(4), (random(3, 4),), (random(1, 4),))

    def test_bilinear(self):
        for bias in (None, random(6)):
            calls = [(random(n, 4), random(n, 5), random(6, 4, 5), bias) for n in (0, 1, 3)]
            compare(F.bilinear, *calls, (random(2, 3, 4), random(2, 3, 5), random(6, 4, 5), bias))

    def test_pixels(self):
        compare(torch.nn.Sequential(torch.nn.Unflatten(1, (8, 3)), torch.nn.PixelShuffle(2)), *[(random(n, 24, 5),) for n in (1, 3)])
        both = torch.nn.Sequential(torch.nn.Unflatten(1, (2, 4, 6)), torch.nn.PixelUnshuffle(2))
        compare(both, *[(random(n, 48),) for n in (1, 3)], refused=[(random(0, 48),)])
        compare(lambda x: F.pixel_shuffle(x, 2), refused=[(random(1, 6, 3, 3),), (random(8, 3),)])

    def test_normalised(self):
        compare(lambda x: F.instance_norm(x), (random(2, 3, 4),), (random(1, 3, 2),), refused=[(random(2, 3, 1),)])
        compare(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), (random(2, 3, 4, 5), random(3), random(3)))

    @pytest.mark.parametrize("mode", ("sum", "mean", "max"))
    def test_bags(self, mode):
        table = random(20, 6)
        rows = [(classes(20, *sizes), table) for sizes in ((2, 3), (1, 1), (0, 3), (5, 4))]
        wrong = [(classes(20, 2, 0), table), (torch.tensor([[25]]), table), (torch.tensor([[-1]]), table)]
        compare(lambda i, w: F.embedding_bag(i, w, mode=mode), *rows, refused=wrong)
        cut = [(classes(20, n), table, torch.tensor(o)) for n, o in ((5, [0, 2]), (5, [0, 2, 2, 4]), (3, [0]))]
        wrong = [(classes(20, 4), table, torch.tensor(o)) for o in ([0, 9], [1, 2])]
        compare(lambda i, w, o: F.embedding_bag(i, w, o, mode=mode), *cut, refused=wrong)
