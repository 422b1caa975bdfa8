"""The recording of control: it reads back, is bounded, and ends no run."""

import penstock as ps
from penstock.control.observation import KnownKeys
from penstock.control.recording import Recording
from penstock.control.ruling import Ruling
from penstock.control.setup import Setup
from penstock.routing import first_router, router_name
from penstock.runtime.recording import RecordingFiles
from penstock.state.storage import Location

ROUTERS = {router_name(each.to_bytes()): each for each in (first_router("balanced", n) for n in (4, 5))}
FIRST, SECOND = ROUTERS
SETUP = Setup({"layout": {}})


def observation(epoch, router=FIRST):
    loads = tuple(ps.ChannelLoad(place, 10, 0.5, 3, 7, 900, 10, 0.25) for place in range(4))
    even = (1.0, 1.0, float("inf"))
    known = KnownKeys((5, -7), (0.5, 0.25), texts={5: "five"})
    stage = ps.StageChannels(0, "agg", "balanced", 4, loads, even, (1.2,) * 3, (), router=router, known=known)
    return ps.Observation(epoch, (stage,), 1.0, 2.0, 3.0, 4.0, 2, 40)


def record(folder, epochs, **limits):
    recording = RecordingFiles(
        Location(str(folder)), 3, SETUP, ROUTERS.__getitem__, lambda: {"failures": {}}, **limits
    )
    for epoch in range(epochs):
        recording.begin()
        seen = observation(epoch, FIRST if epoch < 3 else SECOND)
        recording.add(seen, [Ruling(epoch, "mine", ps.Rescale(0, 8, reason="why"), "dry run")])
    recording.close()


def read(path):
    return Recording.parse(path.read_text().splitlines())


def test_it_reads_back(tmp_path):
    record(tmp_path, 5)
    (path,) = tmp_path.glob("*.jsonl")
    found = read(path)
    assert (found.setup, found.state) == (SETUP, {"failures": {}})
    assert [each.seen for each in found.epochs] == [
        observation(epoch, FIRST if epoch < 3 else SECOND) for epoch in range(5)
    ]
    assert found.epochs[0].rulings[0]["held"] == "dry run"
    assert {name: router.to_bytes() for name, router in found.routers.items()} == {
        name: router.to_bytes() for name, router in ROUTERS.items()
    }


def test_it_is_bounded_and_each_file_stands_for_itself(tmp_path):
    record(tmp_path, 60, most_bytes=5_000, most_files=4)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert 4 <= len(files) <= 5
    assert all(each.stat().st_size <= 10_000 for each in files)
    assert [read(path).state for path in files] == [{"failures": {}}] * len(files)
    assert all(list(read(path).routers) == [SECOND] for path in files if read(path).epochs)
    assert read(files[-1]).epochs[-1].seen.epoch == 59


def test_a_failure_to_write_ends_the_recording_alone(tmp_path, caplog):
    (tmp_path / "control").write_text("a file in its place")
    record(tmp_path / "control", 3)
    assert caplog.text.count("the recording of control ends, everything else goes on") == 1
