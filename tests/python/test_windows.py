"""Pooling, unfolding, padding and resizing of images beside torch, natively, over sizes and layouts."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
F = torch.nn.functional
nn = torch.nn

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def images(count, sizes, channels=4):
    """Images of sizes, contiguous and not, with a NaN among them."""
    for size in sizes:
        x = torch.randn(2, channels, *([size] * count))
        yield x
        yield torch.randn(2, *([size] * count), channels).movedim(-1, 1)
        y = x.clone()
        if y.numel():
            y.view(-1)[y.numel() // 2] = float("nan")
        yield y


def outcome(function, x):
    try:
        return function(x), None
    except Exception as error:
        return None, error


def check(function, inputs):
    jitted = flexor.jit(function, fallback="silent")
    for x in inputs:
        want, refused = outcome(function, x)
        got, raised = outcome(jitted, x)
        assert (refused is None) == (raised is None), (x.shape, refused, raised)
        if refused is None:
            assert got.dtype == want.dtype and got.shape == want.shape
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)
        else:
            assert isinstance(raised, type(refused)), (raised, refused)
    stats = jitted.stats()
    assert not stats["foreign_calls"] and all("assumption" in reason or "refuses" in reason for reason in stats["fallbacks"]), stats


SIZES = (1, 2, 3, 7, 15, 16, 17, 33)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 1, "dilation": 2},
        {"kernel_size": 1},
        {"kernel_size": 5, "stride": 3, "padding": 2},
    ],
    ids=str,
)
def test_max_pooling(options):
    check(lambda x: F.max_pool2d(x, **options), images(2, SIZES))
    check(lambda x: F.max_pool1d(x, **options), images(1, SIZES))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
        {"kernel_size": 1, "stride": 2},
    ],
    ids=str,
)
def test_mean_pooling(options):
    check(lambda x: F.avg_pool2d(x, **options), images(2, SIZES))
    check(lambda x: F.avg_pool1d(x, **options), images(1, SIZES))


def test_windows_of_several_sizes():
    check(lambda x: F.max_pool2d(x, (2, 3), (1, 2), (1, 0)), images(2, SIZES))
    check(lambda x: F.avg_pool2d(x, (3, 2), divisor_override=5), images(2, SIZES))
    check(lambda x: F.max_pool3d(x, 2), images(3, (2, 3, 5)))
    check(lambda x: F.max_pool2d(x, 2), [torch.randn(3, 8, 6)])
    check(lambda x: F.lp_pool2d(x, 2, 2), images(2, (2, 7, 16)))


def test_adaptive_pooling():
    check(lambda x: F.adaptive_avg_pool2d(x, 1), images(2, SIZES))
    check(lambda x: F.adaptive_avg_pool1d(x, 1), images(1, SIZES))
    check(nn.AdaptiveAvgPool2d((1, None)), [torch.randn(2, 3, 5, 4)])


@pytest.mark.parametrize("options", [(2,), (3, 1, 1), (3, 2, 0, 1), (2, 1, 1, 2)], ids=str)
def test_unfolding(options):
    check(lambda x: F.unfold(x, *options), images(2, SIZES))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(1, 2), (2, 0, 1, 3), (0, 0, 0, 0)], ids=str)
def test_padding(mode, pad):
    check(lambda x: F.pad(x, pad, mode), images(len(pad) // 2, (1, 2, 3, 4, 7, 17)))


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("factor", [2, 3, 0.5, 1.7, (2, 0.4)], ids=str)
def test_resizing_by_factors(mode, factor):
    check(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), list(images(2, (4, 7, 16, 17)))[:9])


@pytest.mark.parametrize("size", [1, 5, 16, (3, 9)], ids=str)
def test_resizing_to_sizes(size):
    for mode in ("nearest", "bilinear"):
        check(lambda x: F.interpolate(x, size, mode=mode), images(2, (4, 7, 16)))
    if isinstance(size, int):
        check(lambda x: F.interpolate(x, size, mode="linear"), images(1, (1, 4, 7, 16)))


@pytest.mark.quick
def test_channels():
    check(lambda x: F.channel_shuffle(x, 2), images(2, (1, 3, 8)))
    check(lambda x: F.pixel_shuffle(x, 2), [*images(2, (1, 3, 8)), torch.randn(2, 3, 2, 2)])
    check(lambda x: F.pixel_unshuffle(x, 2), [torch.randn(2, 3, 4, 6), torch.randn(1, 1, 2, 2), torch.randn(1, 1, 3, 2)])


@pytest.mark.quick
def test_distances_and_shrinking():
    check(lambda x: F.pairwise_distance(x, x.flip(0)), [torch.randn(4, 5), torch.randn(3, 1), torch.randn(2, 3, 4)])
    for bound in (0.5, 0.0, 2.0):
        check(lambda x: F.softshrink(x, bound), images(1, (1, 15, 16, 17)))
