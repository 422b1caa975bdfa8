import numpy as np
import pyarrow as pa

from penstock.operators.event_order import in_event_order
from penstock.state.keys import ordered


def test_rows_of_one_time_go_by_content_also_by_lists_and_nulls():
    content = pa.table({"a": [1, 1, None, 1], "b": [[2], [1], [0], None]})
    orders = []
    for arrival in ([0, 1, 2, 3], [3, 1, 0, 2]):
        given = content.take(pa.array(arrival))
        times, hashes = np.zeros(4, np.int64), np.full(4, 7, np.uint64)
        found = in_event_order(ordered(hashes, times, pa.table({"k": [1] * 4})), times, given)
        orders.append(given.take(pa.array(found.order)).to_pylist())
    assert orders[0] == orders[1]
