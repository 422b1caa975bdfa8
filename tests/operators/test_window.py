import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadDuration, BadWindow
from penstock.operators.windows import Window, window_of


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
        ("1 minute", "2 minutes", r"between windows would be lost.*where\(\)"),
    ],
)
def test_refuses(size, slide, reason):
    with pytest.raises(BadWindow, match=reason):
        window_of(size, slide, None)


def test_refuses_a_negative_size():
    with pytest.raises(BadDuration, match="negative"):
        window_of("-1 minute", None, None)
