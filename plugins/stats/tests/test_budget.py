import unittest

from budget import parse_max, spend


class Budget(unittest.TestCase):
    def test_calls_are_counted_by_tool_and_end_at_the_budget(self):
        store = {}
        said = [spend("grep", 2, store.get, store.__setitem__) for _ in range(3)]
        self.assertEqual(said[:2], [None, None])
        self.assertIn("`grep` was called 2 times and may be called 2 times", said[2])
        self.assertIsNone(spend("calc", 2, store.get, store.__setitem__))
        self.assertEqual(store, {"calls/grep": b"2", "calls/calc": b"1"})

    def test_without_a_budget_they_are_only_counted(self):
        store = {"calls/grep": b"1000000"}
        self.assertIsNone(spend("grep", None, store.get, store.__setitem__))

    def test_the_operators_number(self):
        self.assertEqual((parse_max(None), parse_max("12")), (None, 12))
        for text in ["", "-1", "many", "1.5", "²"]:
            with self.assertRaises(ValueError):
                parse_max(text)
