from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.client.calls import DueQueue

CHANGES = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 9))), max_size=40)


@given(CHANGES, st.integers(0, 9))
def test_items_come_by_their_last_time_and_once(changes, now):
    schedule, last = DueQueue(), {}
    for item, due in changes:
        schedule.set(item, due)
        last[item] = due
    due = {item: at for item, at in last.items() if at is not None}
    assert schedule.first() == min(due.values(), default=None)
    popped = []
    while (item := schedule.pop(now)) is not None:
        popped.append(item)
    assert sorted(popped) == sorted(item for item, at in due.items() if at <= now)
    assert [due[item] for item in popped] == sorted(due[item] for item in popped)
