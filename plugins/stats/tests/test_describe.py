import unittest

from describe import describe, interval, numbers_in, show


class Describe(unittest.TestCase):
    def test_the_facts(self):
        facts = describe([2, 4, 4, 4, 5, 5, 7, 9])
        self.assertEqual((facts["count"], facts["sum"], facts["mean"]), (8, 40, 5))
        self.assertEqual((facts["min"], facts["median"], facts["max"]), (2, 4.5, 9))
        self.assertEqual((facts["lower_quartile"], facts["upper_quartile"]), (4, 5.5))
        self.assertAlmostEqual(facts["standard_deviation"], 2.138089935)

    def test_one_number_has_no_spread(self):
        self.assertEqual(show(describe([3])), "count: 1\nsum: 3\nmean: 3\nmin: 3\nmedian: 3\nmax: 3")

    def test_sums_are_exact(self):
        self.assertEqual(describe([1e16, 1, -1e16])["sum"], 1)


class Interval(unittest.TestCase):
    def test_the_mean_lies_in_it_and_it_is_the_same_each_time(self):
        numbers = list(range(100))
        low, high = interval(numbers, 0.95, 500)
        self.assertTrue(low < 49.5 < high and high - low < 15, (low, high))
        self.assertEqual(interval(numbers, 0.95, 500), (low, high))

    def test_more_confidence_is_wider(self):
        numbers = list(range(100))
        narrow, wide = interval(numbers, 0.5, 500), interval(numbers, 0.99, 500)
        self.assertTrue(wide[0] < narrow[0] and narrow[1] < wide[1])

    def test_it_stops_when_told_to(self):
        told = []

        def go_on(done, all):
            told.append((done, all))
            return len(told) < 2

        self.assertIsNone(interval([1.0] * 10_000, 0.95, 1_000, go_on))
        self.assertEqual(told, [(2, 1_000), (4, 1_000)])


class Numbers(unittest.TestCase):
    def test_texts_with_numbers(self):
        self.assertEqual(numbers_in("1, 2.5;3\n-4e2"), [1, 2.5, 3, -400])
        for text in ["one", "1, two", "nan", "inf"]:
            self.assertIsNone(numbers_in(text), text)
