"""Field cases, sizes made by data: nothing selected, everything selected, and what lies between share one translation."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f106_places_of_matches_written_through(field):
    def places(values, table):
        rows, columns = torch.nonzero(values[:, None] == table[None, :], as_tuple=True)
        out = torch.zeros(values.shape[0], dtype=torch.int64)
        out[rows] = columns
        return out

    f = field(places)
    table = torch.tensor([0, 3, 4, 5, 7])
    assert f(torch.tensor([1, 2, 3, 5, 6, 7]), table).tolist() == [0, 0, 1, 3, 0, 4]
    for values in ([9, 9], [0, 3, 4], [7]):
        f(torch.tensor(values), table)
    assert f.translations == 1
    field.is_native()


def test_f108_rows_repeated_by_counts_with_a_promised_total(field):
    def repeats(x, counts):
        return torch.repeat_interleave(x, counts, dim=0, output_size=10)

    f = field(repeats)
    rows = torch.arange(4)
    assert f(rows, torch.tensor([1, 2, 3, 4])).tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert f(rows, torch.tensor([0, 0, 5, 5])).tolist() == [2] * 5 + [3] * 5
    with pytest.raises(RuntimeError):
        f(rows, torch.tensor([1, 1, 1, 1]))
    field.is_native()


@pytest.mark.parametrize("share", (0.7, 0.0, 1.0))
def test_f109_a_normalised_selection_written_back(field, share):
    def normalises(h, mask, mean, var):
        out = h.clone()
        out[mask] = torch.nn.functional.batch_norm(h[mask], mean, var)
        return out

    f = field(normalises)
    mean, var = torch.randn(8), torch.rand(8) + 0.5
    for rows in (64, 7):
        f(torch.randn(rows, 8), torch.rand(rows) < share, mean, var)
    one = torch.zeros(64, dtype=torch.bool)
    one[5] = True
    f(torch.randn(64, 8), one, mean, var)
    field.is_native()


def test_f109_one_row_in_training_mode_is_the_error_of_eager(field):
    def normalises(h, mask):
        out = h.clone()
        out[mask] = torch.nn.functional.batch_norm(h[mask], None, None, training=True)
        return out

    f = field(normalises)
    one = torch.zeros(64, dtype=torch.bool)
    f(torch.randn(64, 8), ~one)
    one[5] = True
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        f(torch.randn(64, 8), one)
    field.is_native()


def test_f110_what_a_mask_selects(field):
    def selects(t):
        chosen = t[t > 0.5]
        return chosen, chosen.mean()

    f = field(selects)
    for t in (torch.rand(3, 16, 16), torch.zeros(3, 16, 16), torch.ones(3, 16, 16), torch.eye(16)[None].repeat(3, 1, 1)):
        f(t)
    compilations = flexor.stats()["compilations"]
    for rows in (3, 5, 2):
        f(torch.rand(rows, 16, 16))
    assert f.translations == 1 and flexor.stats()["compilations"] == compilations
    field.is_native()


def suppressed(boxes, scores, limit, overlap):
    """Greedy suppression in plain tensor Python: the indices that stay, at most `limit` (None: all)."""
    order = torch.argsort(scores, descending=True)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.shape[0] > 0 and (limit is None or len(kept) < limit):
        best = order[0]
        kept.append(best)
        rest = order[1:]
        low = torch.maximum(boxes[rest, :2], boxes[best, :2])
        high = torch.minimum(boxes[rest, 2:], boxes[best, 2:])
        both = (high - low).clamp(min=0).prod(1)
        order = rest[both / (area[rest] + area[best] - both) <= overlap]
    return kept


def boxes_of(count):
    corner = torch.rand(count, 2) * 3
    return torch.cat([corner, corner + 1 + torch.rand(count, 2)], 1), torch.rand(count)


def test_f112_suppression_with_a_limit(field):
    """ONNX's operator as a function: there is no reader of ONNX files."""
    f = field(suppressed)
    torch.manual_seed(3)
    boxes, scores = boxes_of(6)
    for limit, most in ((None, 6), (0, 0), (1, 1), (100, 6)):
        assert len(f(boxes, scores, limit, 0.5)) <= most
    f(boxes[:0], scores[:0], 3, 0.5)
    field.is_native()


def test_f114_suppression_class_by_class(field):
    def by_class(boxes, scores, labels):
        keep = torch.zeros(scores.shape[0], dtype=torch.bool)
        for label in torch.unique(labels):
            index = torch.nonzero(labels == label)[:, 0]
            order = index[torch.argsort(scores[index], descending=True)]
            while order.shape[0] > 0:
                best = order[0]
                keep[best] = True
                rest = order[1:]
                low = torch.maximum(boxes[rest, :2], boxes[best, :2])
                high = torch.minimum(boxes[rest, 2:], boxes[best, 2:])
                order = rest[(high - low).clamp(min=0).prod(1) <= 0.3]
        kept = torch.nonzero(keep)[:, 0]
        return kept[torch.argsort(scores[kept], descending=True)]

    f = field(by_class)
    torch.manual_seed(4)
    for count in (40, 0, 3, 17):
        boxes, scores = boxes_of(count)
        f(boxes, scores, torch.tensor([0, 1, 5])[torch.randint(0, 3, (count,))])
    field.is_native()


def test_f116_the_order_of_equal_keys(field):
    def orders(x):
        values, places = torch.sort(x, dim=0, descending=True, stable=True)
        top = torch.topk(x, 2, dim=0).values
        return values, places, torch.sort(x, 0).values, top, torch.gather(x, 0, torch.argsort(x, dim=0))

    f = field(orders)
    for _ in range(2):
        f(torch.randint(1, 3, (8, 3)).float())
    assert orders(torch.ones(8, 3))[1][:, 0].tolist() == list(range(8)) == f(torch.ones(8, 3))[1][:, 0].tolist()
    field.is_native()


def test_f118_pairs_of_segment_and_chunk(field):
    def pairs(ends):
        begins = torch.cat([torch.zeros(1, dtype=ends.dtype), ends[:-1]])
        chunks = (ends - begins + 63) // 64
        total = chunks.sum()
        segment = torch.repeat_interleave(torch.arange(chunks.shape[0]), chunks)
        first = torch.cumsum(chunks, 0) - chunks
        return segment, torch.arange(total.item()) - first[segment]

    f = field(pairs)
    for segments in (8, 64, 1_024, 1):
        f(torch.cumsum(torch.randint(0, 200, (segments,)), 0))
    assert f.translations <= 2
    field.is_native()


def test_f119_a_range_whose_length_is_data(field):
    def sums(k):
        return torch.arange(k.item()).sum()

    f = field(sums)
    f(torch.tensor(5))
    compilations = flexor.stats()["compilations"]
    for k in torch.randint(0, 100, (50,)):
        assert f(k).item() == k * (k - 1) // 2
    assert f.translations == 1 and flexor.stats()["compilations"] == compilations
    field.is_native()
