import pytest

from penstock_lab.bench.even_channels import busiest_over_mean, ideal_saving, part_saved


def test_channels_that_are_even_have_nothing_to_save():
    assert ideal_saving([[10, 10], [20, 20]], [3, 3], 0.1) == 0
    assert busiest_over_mean([[10, 10], [20, 20]]) == 1


def test_every_epoch_waits_for_its_own_busiest_channel():
    # Even over both epochs together, yet each takes 30 rows where 20 would do.
    assert busiest_over_mean([[30, 10], [10, 30]]) == 1
    assert ideal_saving([[30, 10], [10, 30]], [5, 5], 0.1) == pytest.approx(2.0)


def test_a_key_above_a_fair_share_stays_in_one_channel():
    assert ideal_saving([[35, 5]], [28], 0.1) == pytest.approx(0.7)


def test_what_is_saved_is_a_part_of_the_ideal():
    assert part_saved(20.0, 17.0, 4.0) == pytest.approx(0.75)
    assert part_saved(20.0, 21.0, 4.0) == pytest.approx(-0.25)
