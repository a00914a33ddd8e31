"""Field cases, control flow and Python's arithmetic on sizes."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f093_a_branch_on_a_number_of_a_tensor(field):
    def branches(v):
        w = v + 1
        if w.item() > 2:
            return 2 * w
        return 3 * w

    f = field(branches)
    assert [f(torch.tensor([v])).item() for v in (3.0, 0.5, 1.0)] == [8, 4.5, 6]
    assert f.translations == 1
    field.is_native()


def test_f094_a_loop_between_two_numbers_compiles_once(field):
    def adds(table, start, end):
        total = torch.zeros(table.shape[1])
        for row in range(start + 1, end):
            total = total + table[row]
        return total

    f = field(adds)
    table = torch.randn(100, 100)
    f(table, 0, 10)
    compilations = flexor.stats()["compilations"]
    for start in range(1, 10):
        f(table, start, start + 10)
    assert f.translations == 1 and flexor.stats()["compilations"] == compilations
    field.is_native()


def test_f096_writes_and_reads_of_one_table_stay_in_order(field):
    def evaluates(leaves):
        table = torch.zeros(10, 4)
        for row in (0, 1, 2, 3, 4, 6):
            table[row] = leaves[row]
        table[5] = table[0] * table[1] + table[2]
        table[7] = table[3] + table[4] * table[6]
        table[8] = table[5] * table[7]
        return table[8], table

    f = field(evaluates)
    for _ in range(3):
        f(torch.randn(7, 4))
    field.is_native()


def test_f098_finding_peaks_until_there_is_none(field):
    def finds(image, threshold, weight):
        image = image.clone()
        found, values = [], []
        while image.max() > threshold:
            place = image.argmax()
            row, column = place // image.shape[1], place % image.shape[1]
            values.append(image.max())
            found.append(place)
            image[max(int(row) - 1, 0) : int(row) + 2, max(int(column) - 1, 0) : int(column) + 2] = 0.0
        out = []
        for value in values:
            out.append(weight @ torch.full((3,), 2.0) * value)
        return found, out

    f = field(finds)
    weight = torch.randn(2, 3)
    for peaks in (0, 1, 7, 2):
        image = torch.zeros(16, 16)
        for k in range(peaks):
            image[2 * k, 2 * k] = 2.0 + k
        found, out = f(image, 1.0, weight)
        assert len(found) == len(out) == peaks
    field.is_native()


def test_f099_a_counter_that_changes_its_shape_in_a_branch(field):
    """The graph of the report, as a function: there is no reader of ONNX files."""

    def counts(trips, limit):
        count = torch.zeros((), dtype=torch.int64)
        seen = torch.zeros(1, dtype=torch.int64)
        for trip in range(trips):
            count = count + 1
            if trip > limit:
                seen = count.reshape(1)
        return count, seen

    f = field(counts)
    for trips, limit in ((5, 2), (3, 10), (0, 0), (1, -1)):
        f(trips, limit)
    field.is_native()


def test_f100_a_tensor_that_grows_in_a_loop(field):
    def grows(start, length):
        x = start
        while x.shape[0] < length:
            x = torch.cat([x, torch.full((1,), 2, dtype=x.dtype)])
        return x

    f = field(grows)
    for length in (10, 1, 25, 3):
        assert f(torch.tensor([1]), length).tolist() == [1] + [2] * (length - 1)
    assert f.translations == 1
    field.is_native()


def test_f102_a_size_rounded_to_tens(field):
    def rounds(x):
        n = x.shape[0]
        return round(n, -1), x * round(5 * n, -1), round(n / 2), round(n)

    f = field(rounds)
    assert [f(torch.ones(n))[0] for n in (14, 15, 16, 25)] == [10, 20, 20, 20]
    assert [f(torch.ones(n))[1][0].item() for n in (14, 15, 16, 25)] == [70, 80, 80, 120]
    assert f.translations == 1
    field.is_native()


def test_f104_a_loop_over_a_time_that_is_a_tensor(field):
    def integrates(x, dt):
        t, steps = torch.tensor(1.0), 0
        while t >= -dt / 2:
            x = x + dt * x
            t = t + dt
            steps += 1
        return x, steps

    f = field(integrates)
    assert f(torch.ones(3), torch.tensor(-0.1))[1] == 10
    for dt in (-0.1, -0.25, -0.03):
        f(torch.randn(4), torch.tensor(dt))
    assert f.translations == 1
    field.is_native()


def test_f105_a_cache_that_begins_empty_and_grows_by_one_row(field):
    def steps(past, row):
        joined = torch.cat([past, row], dim=1)
        return joined, (joined * 2).sum(1)

    f = field(steps)
    for _ in range(2):
        past = torch.zeros(1, 0, 4, 8)
        for length in range(1, 51):
            past, _ = f(past, torch.randn(1, 1, 4, 8))
            assert past.shape[1] == length
    assert f.translations == 1
    field.is_native()
