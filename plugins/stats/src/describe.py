"""What a list of numbers looks like. Nothing here knows that it runs in a plugin."""

import math
import random
import statistics
from typing import Callable, Optional

# Draws between two looks at whether to go on: some milliseconds.
STRIDE = 20_000


def describe(numbers: list[float]) -> dict[str, float]:
    """Count, sum, mean and spread. The quartiles and the deviation need two numbers."""
    facts: dict[str, float] = {
        "count": len(numbers),
        "sum": math.fsum(numbers),
        "mean": math.fsum(numbers) / len(numbers),
        "min": min(numbers),
        "median": statistics.median(numbers),
        "max": max(numbers),
    }
    if len(numbers) > 1:
        low, _, high = statistics.quantiles(numbers, method="inclusive")
        facts |= {
            "lower_quartile": low,
            "upper_quartile": high,
            "standard_deviation": statistics.stdev(numbers),
        }
    return facts


def interval(
    numbers: list[float],
    level: float,
    resamples: int,
    go_on: Callable[[int, int], bool] = lambda done, all: True,
) -> Optional[tuple[float, float]]:
    """Between which values the mean lies at this level of confidence, by resampling.

    `go_on` is told how far it is, and says whether to go on; None if it said no. The same numbers
    have the same answer: the draws come from a generator with a fixed seed.
    """
    draw = random.Random(1)
    size = len(numbers)
    every = max(1, STRIDE // size)
    means: list[float] = []
    for done in range(resamples):
        if done and done % every == 0 and not go_on(done, resamples):
            return None
        means.append(math.fsum(draw.choices(numbers, k=size)) / size)
    means.sort()
    cut = round((1 - level) / 2 * (resamples - 1))
    return means[cut], means[resamples - 1 - cut]


def show(facts: dict[str, float]) -> str:
    """The facts as people and models read them."""
    return "\n".join(f"{name.replace('_', ' ')}: {value:.10g}" for name, value in facts.items())


def numbers_in(text: str) -> Optional[list[float]]:
    """The numbers of a text such as `1, 2.5; 3`; None if something else is in it."""
    words = text.replace(",", " ").replace(";", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
