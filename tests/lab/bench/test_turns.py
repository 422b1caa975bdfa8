import threading

from penstock_lab.bench.turns import Turns


def order_of(counts):
    """Who had each turn, where runs take so many turns each and then end."""
    turns, order = Turns("a", "b"), []

    def run(name, count):
        for _ in range(count):
            turns.take(name)
            order.append(name)
        turns.leave(name)

    threads = [threading.Thread(target=run, args=each) for each in counts.items()]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    return "".join(order), turns


def test_the_order_turns_around_with_every_epoch():
    order, turns = order_of({"a": 4, "b": 4})
    assert order == "abbaabba"
    assert all(each.wall_s > 0 for each in turns.spent.values())


def test_who_has_left_is_not_waited_for():
    assert order_of({"a": 1, "b": 3})[0] == "abbb"
    assert order_of({"a": 3, "b": 0})[0] == "aaa"
