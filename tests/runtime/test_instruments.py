from octavo_runtime.instruments import Histogram, Rate, length_buckets


def test_buckets_count_values_up_to_their_bound():
    histogram = Histogram((1, 2.5))
    for value in (0.5, 1, 2, 2.5, 3):
        histogram.observe(value)
    assert histogram.cumulative() == ([("1.0", 2), ("2.5", 4), ("+Inf", 5)], 9.0)


def test_length_buckets_end_at_the_context():
    assert length_buckets(2048) == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def test_rate_forgets():
    rate = Rate(0.0)
    rate.update(100.0, 50)
    assert rate.value(100.0, 50) == 5.0
    assert rate.value(111.0, 50) == 0.0
