from penstock.runtime.frontier import Frontier


def advance(frontier, seen, now=0, delay=0, idle=None):
    return frontier.advance(seen, now=now, delay=delay, idle=idle)


def test_the_slowest_stream_decides():
    assert advance(Frontier(), {"a": 100, "b": 40}, delay=10).value == 30


def test_it_never_goes_back():
    first = advance(Frontier(), {"a": 100})
    assert advance(first, {"b": 5}).value == 100


def test_an_idle_stream_holds_nobody_back():
    #   a ──100────────200──▶
    #   b ──40── (silent) ──▶
    first = advance(Frontier(), {"a": 100, "b": 40}, now=0, idle=50)
    assert advance(first, {"a": 200}, now=60, idle=50).value == 200


def test_an_idle_stream_that_comes_back_counts_again():
    first = advance(Frontier(), {"a": 100, "b": 40}, now=0, idle=50)
    second = advance(first, {"a": 200}, now=60, idle=50)
    assert advance(second, {"a": 300, "b": 250}, now=70, idle=50).value == 250


def test_nothing_seen_is_no_promise():
    assert advance(Frontier(), {}).value is None
