import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import BadDuration, BadWindow
from penstock.operators.windows import Window, window_of

CALLS = ps.stream("calls", "time timestamp, k bigint", time="time")


def test_the_slide_defaults_to_the_size():
    assert window_of("5 minutes", None, None) == Window(300_000_000, 300_000_000, 0)


@pytest.mark.parametrize(
    ("size", "slide", "pane"),
    [(100, 100, 100), (100, 1, 1), (9, 6, 3), (60, 25, 5)],
)
def test_the_pane_is_the_greatest_common_divisor(size, slide, pane):
    assert Window(size, slide, 0).pane == pane


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_the_offset_is_normalised_into_the_slide(offset, slide):
    window = Window(slide * 3, slide, offset)
    assert 0 <= window.offset < slide
    assert (window.offset - offset) % slide == 0


def test_a_negative_offset():
    assert window_of("1 hour", "1 minute", "-10 seconds").offset == 50_000_000


@pytest.mark.parametrize(
    ("size", "slide", "reason"),
    [
        ("0 seconds", None, "above zero"),
        ("1 minute", "0 seconds", "above zero"),
    ],
)
def test_refuses(size, slide, reason):
    with pytest.raises(BadWindow, match=reason):
        window_of(size, slide, None)


@pytest.mark.parametrize(
    ("windowed", "reason"),
    [
        (lambda: CALLS.cumulate("1 hour", "25 minutes"), "whole number of steps"),
        (CALLS.windows, "at least one"),
        (lambda: CALLS.windows("1 minute"), r"ps\.window"),
        (lambda: CALLS.windows(ps.window("1 minute"), ps.window("60 seconds", "10 s")), "told apart"),
        (lambda: CALLS.window("1 minute", late="later"), "'count' or 'drop'"),
        (lambda: CALLS.window("1 minute", late="drop", lateness="1 minute"), "leave one"),
        (lambda: CALLS.window("1 minute", early="0 seconds"), "above zero"),
    ],
)
def test_refuses_windows_that_cannot_be(windowed, reason):
    with pytest.raises(BadWindow, match=reason):
        windowed()


def test_groups_without_an_aggregate_are_windows_and_keys():
    assert CALLS.group_by("k").window("1 minute").agg().schema.names == ("window_start", "window_end", "k")


def test_results_that_are_corrected_begin_with_the_change_and_keep_it():
    corrected = CALLS.group_by("k").window("1 minute", lateness="1 hour").agg(n=ps.count())
    assert corrected.select("n").schema.names == ("change", "window_start", "window_end", "n")
    assert corrected.order == ("window_start",)


def test_refuses_a_negative_size():
    with pytest.raises(BadDuration, match="negative"):
        window_of("-1 minute", None, None)
