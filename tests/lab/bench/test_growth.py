from penstock_lab.bench.growth import QUICK, checks
from penstock_lab.bench.growth_plot import EpochRecord, draw


def records(epochs, seconds, state):
    return [EpochRecord(epoch, seconds(epoch), state(epoch), 100) for epoch in range(epochs)]


def test_steady_epochs_pass():
    steady = records(300, lambda epoch: 0.5 + 0.01 * (epoch % 3), lambda epoch: 30_000 + epoch % 7)
    assert [check.ok for check in checks(steady)] == [True, True]


def test_epochs_that_slow_down_and_state_that_leaks_fail():
    growing = records(300, lambda epoch: 0.5 + 0.002 * epoch, lambda epoch: 30_000 + 10 * epoch)
    assert [check.ok for check in checks(growing)] == [False, False]


def test_too_few_epochs_prove_nothing():
    assert [check.value for check in checks(records(60, lambda _: 0.5, lambda _: 30_000))] == [None, None]


def test_the_quick_form_compares_fewer_epochs():
    steady = records(60, lambda _: 0.5, lambda epoch: 30_000 + epoch % 7)
    assert [check.value for check in checks(steady, QUICK)] == [1.0, 1.0]


def test_the_figure_is_a_png(tmp_path):
    path = tmp_path / "plots" / "growth.png"
    draw(path, {1: 9e5, 1000: 7e5}, {1000: 8e5, 10_000: 7e5}, records(5, lambda _: 0.5, lambda _: 3))
    assert path.read_bytes().startswith(b"\x89PNG")
