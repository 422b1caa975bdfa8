from types import SimpleNamespace

import pytest

from penstock.ingest.limits import Limits
from penstock.ingest.log.log import deletable


def closed(**highs):
    return SimpleNamespace(size=100, highs=highs)


FILES = {1: closed(a=10, b=5), 2: closed(a=20), 3: closed(a=30, b=9)}
CASES = [
    ({}, []),
    ({("a", "x"): {"a": 20}}, [2]),
    ({("a", "x"): {"a": 20}, ("b", "x"): {"b": 5}}, [1, 2]),
    ({("a", "x"): {"a": 20}, ("a", "y"): {"a": 9}, ("b", "x"): {"b": 9}}, []),
    ({("a", "x"): {"a": 30}, ("b", "x"): {"b": 9}}, [1, 2, 3]),
]


@pytest.mark.parametrize(("upto", "gone"), CASES)
def test_only_what_every_reader_has_committed_goes(upto, gone):
    assert list(deletable(FILES, upto, 300, Limits())) == [(number, False) for number in gone]


def test_committed_files_are_kept_up_to_a_size():
    upto = {("a", "x"): {"a": 30}, ("b", "x"): {"b": 9}}
    assert list(deletable(FILES, upto, 300, Limits(keep_bytes=200))) == [(1, False)]


def test_uncommitted_files_go_only_if_told_so():
    assert list(deletable(FILES, {}, 300, Limits(store_bytes=150))) == []
    told = Limits(store_bytes=150, discard_uncommitted=True)
    assert list(deletable(FILES, {}, 300, told)) == [(1, True), (2, True)]
