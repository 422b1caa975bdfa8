from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadDuration
from penstock.expressions.durations import microseconds, signed_microseconds, words


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("5 seconds", 5_000_000),
        ("1 minute", 60_000_000),
        ("250 milliseconds", 250_000),
        ("10 us", 10),
        ("1h 30m", 5_400_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("INTERVAL 5 SECONDS", 5_000_000),
        ("interval '5' second", 5_000_000),
        ("1.5 seconds", 1_500_000),
        ("2 days", 172_800_000_000),
        ("0 seconds", 0),
        (timedelta(minutes=2), 120_000_000),
    ],
)
def test_reads(text, length):
    assert microseconds(text) == length


@pytest.mark.parametrize(
    "text", ["", "5", "seconds", "5 parsecs", "5 seconds later", "0.5 us", "5 s -", 5, None]
)
def test_refuses(text):
    with pytest.raises(BadDuration):
        microseconds(text)


@pytest.mark.parametrize("unit", ["month", "months", "year", "quarter"])
def test_refuses_units_without_a_fixed_length(unit):
    with pytest.raises(BadDuration, match="no fixed length"):
        microseconds(f"1 {unit}")


def test_only_the_signed_form_takes_a_minus():
    assert signed_microseconds("-1 s") == -1_000_000
    with pytest.raises(BadDuration, match="negative"):
        microseconds("-1 s")


@given(st.integers(0, 10**15))
def test_words_are_read_back(length):
    assert microseconds(words(length)) == length


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0 seconds"), (60_000_000, "1 minute"), (90_000_000, "90 seconds"), (7 * 86_400_000_000, "7 days")],
)
def test_words(length, text):
    assert words(length) == text
