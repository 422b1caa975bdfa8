import pytest

from penstock.connect import EpochId
from penstock.distribution.key_layout import KeyLayout
from penstock.errors import DamagedCheckpoint
from penstock.query import KEPT_EPOCHS
from penstock.routing import first_router
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.layout_files import LayoutFiles
from penstock.runtime.records import EpochPlan, Manifest, StagePlan
from penstock.state.storage import Location


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(Location(str(tmp_path))).claim("digest", "a query")


def planned(channels, router, target):
    layout = KeyLayout(channels=channels, router=router, target=target)
    return EpochPlan((StagePlan.of(layout),), now=0)


def happened(checkpoint, epoch, router, target):
    plan = planned(2, router, target)
    checkpoint.write_plan(EpochId(epoch), plan)
    checkpoint.commit(Manifest(EpochId(epoch), plan))


def test_a_router_is_found_again_and_a_torn_one_is_named(checkpoint, tmp_path):
    name = LayoutFiles(checkpoint.routers).store(first_router("consistent", 3))
    again = LayoutFiles(checkpoint.routers).router(name)
    assert again.to_bytes() == first_router("consistent", 3).to_bytes()
    path = tmp_path / "routers" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedCheckpoint, match=name):
        LayoutFiles(checkpoint.routers).router(name)


def test_routers_are_kept_as_long_as_a_kept_plan_names_them(checkpoint):
    files = LayoutFiles(checkpoint.routers)
    names = [files.store(first_router("uniform", channels)) for channels in range(1, 5)]
    for epoch, (router, target) in enumerate([(0, 0), (1, 2), (2, 2), (2, 2), (2, 2)]):
        happened(checkpoint, epoch, names[router], names[target])
        checkpoint.collect(orphans=False)
    assert len((checkpoint.root / "manifests").names()) == KEPT_EPOCHS
    assert checkpoint.routers.names() == sorted([names[2], names[3]])
    # What the plan of an epoch names that has not happened yet stays, also when orphans are looked for.
    unborn = files.store(first_router("uniform", 9))
    checkpoint.write_plan(EpochId(5), planned(9, unborn, unborn))
    checkpoint.collect(orphans=True)
    assert checkpoint.routers.names() == sorted([names[2], unborn])
