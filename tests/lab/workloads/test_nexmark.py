import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.expressions.schema import schema_of
from penstock_lab.workloads.nexmark import AUCTION, BID, PERSON, Nexmark

HOUSE = Nexmark(events=50_000)


@pytest.mark.parametrize(("name", "ddl"), [("person", PERSON), ("auction", AUCTION), ("bid", BID)])
def test_each_stream_has_its_columns_in_order_of_time_and_no_nulls(name, ddl):
    table = HOUSE.tables[name]
    assert tuple(table.column_names) == schema_of(ddl).names
    times = table["date_time"].cast("int64").to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert all(column.null_count == 0 for column in table.columns)


def test_bids_refer_to_auctions_that_have_begun_and_half_of_them_to_a_hot_one():
    auctions = dict(
        zip(HOUSE.auctions["id"].to_pylist(), HOUSE.auctions["date_time"].to_pylist(), strict=True)
    )
    bids = HOUSE.bids.slice(20_000, 2_000).to_pylist()
    assert all(auctions[bid["auction"]] <= bid["date_time"] for bid in bids)
    hot = sum(bid["auction"] % 100 == 0 for bid in bids)
    assert 900 < hot < 1150


def test_prices_are_log_uniform_and_a_few_sellers_have_most_auctions():
    prices = HOUSE.bids["price"].to_numpy()
    assert prices.min() >= 100
    assert prices.max() <= 100_000_000
    assert 0.32 < (prices < 10_000).mean() < 0.35
    sellers = pc.value_counts(HOUSE.auctions["seller"]).field("counts").to_numpy()
    assert sorted(sellers)[-10:][0] > 150


def test_the_same_seed_gives_the_same_events_and_another_seed_others():
    assert Nexmark(events=5000).bids == Nexmark(events=5000).bids
    assert Nexmark(events=5000).bids != Nexmark(events=5000, seed=8).bids


def test_files_cover_the_same_time_in_each_stream(tmp_path):
    house = Nexmark(events=10_000)
    folders = house.write(tmp_path, files=4)
    latest = {
        name: [pq.read_table(path)["date_time"][-1].value for path in sorted(folder.iterdir())]
        for name, folder in folders.items()
    }
    for place in range(4):
        found = [each[place] for each in latest.values()]
        assert max(found) - min(found) <= 50 * 100
    assert sum(pq.read_table(path).num_rows for path in folders["bid"].iterdir()) == house.bids.num_rows
