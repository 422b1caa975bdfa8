from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.directory.assignment import GateLoad, assign

RATES = st.dictionaries(st.text("abc", min_size=1), st.one_of(st.none(), st.floats(0, 100)), max_size=20)


@given(RATES, st.integers(1, 4))
def test_every_stream_gets_a_gate_and_none_has_much_more_than_another(rates, gates):
    loads = [GateLoad(f"g{n}", 0, 0.0) for n in range(gates)]
    chosen = assign(rates, loads, average=10.0)
    assert set(chosen) == set(rates)
    sums = dict.fromkeys((load.gate for load in loads), 0.0)
    for stream, gate in chosen.items():
        sums[gate] += 10.0 if rates[stream] is None else rates[stream]
    # Whoever got the last stream had the least before it.
    largest = max((10.0 if rate is None else rate for rate in rates.values()), default=0.0)
    assert max(sums.values()) - min(sums.values()) <= largest + 1e-6


@given(RATES)
def test_the_order_in_which_streams_and_gates_are_named_decides_nothing(rates):
    loads = [GateLoad("b", 1, 5.0), GateLoad("a", 1, 5.0), GateLoad("c", 0, 5.0)]
    assert assign(rates, loads, 1.0) == assign(dict(reversed(rates.items())), loads[::-1], 1.0)
