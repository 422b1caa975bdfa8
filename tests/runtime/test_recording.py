"""The recording of control: it reads back, is bounded, and ends no run."""

import base64
import json
import zlib

import numpy as np

import penstock as ps
from penstock.control.observation import KnownKeys
from penstock.control.ruling import Ruling
from penstock.routing import HashPair, first_router, router_name
from penstock.runtime.recording import Recording
from penstock.state.storage import Location

ROUTERS = {router_name(each.to_bytes()): each for each in (first_router("balanced", n) for n in (4, 5))}
FIRST, SECOND = ROUTERS


def observation(epoch, router=FIRST):
    loads = tuple(ps.ChannelLoad(place, 10, 0.5, 3, 7, 900, 10, 0.25) for place in range(4))
    even = (1.0, 1.0, float("inf"))
    known = KnownKeys((5, -7), (0.5, 0.25), texts={5: "five"})
    stage = ps.StageChannels(0, "agg", "balanced", 4, loads, even, (1.2,) * 3, (), router=router, known=known)
    return ps.Observation(epoch, (stage,), 1.0, 2.0, 3.0, 4.0, 2, 40)


def lines(folder):
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def record(folder, epochs, **limits):
    recording = Recording(Location(str(folder)), 3, ROUTERS.__getitem__, lambda: {"failures": {}}, **limits)
    for epoch in range(epochs):
        recording.begin()
        seen = observation(epoch, FIRST if epoch < 3 else SECOND)
        recording.add(seen, [Ruling(epoch, "mine", ps.Rescale(0, 8, reason="why"), "dry run")])
    recording.close()


def test_it_reads_back(tmp_path):
    record(tmp_path / "control", 5)
    found = lines(tmp_path / "control")
    kinds = [each["kind"] for each in found]
    assert kinds == ["controller", "router", "epoch", "epoch", "epoch", "router", "epoch", "epoch"]
    assert found[0]["state"] == {"failures": {}}
    seen = [ps.Observation.from_json(each["observation"]) for each in found if each["kind"] == "epoch"]
    assert seen == [observation(epoch, FIRST if epoch < 3 else SECOND) for epoch in range(5)]
    router = HashPair.from_bytes(zlib.decompress(base64.b85decode(found[1]["data"])))
    hashes = np.arange(1000, dtype=np.uint64) << np.uint64(54)
    assert (router.route(hashes) == ROUTERS[found[1]["name"]].route(hashes)).all()
    assert found[2]["rulings"][0]["held"] == "dry run"


def test_it_is_bounded_and_each_file_stands_for_itself(tmp_path):
    record(tmp_path / "control", 60, most_bytes=5_000, most_files=4)
    files = sorted((tmp_path / "control").iterdir())
    assert 4 <= len(files) <= 5
    assert all(each.stat().st_size <= 10_000 for each in files)
    for path in files:
        kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
        assert kinds[:3] == ["controller", "router", "epoch"]


def test_a_failure_to_write_ends_the_recording_alone(tmp_path, caplog):
    (tmp_path / "control").write_text("a file in its place")
    record(tmp_path / "control", 3)
    assert caplog.text.count("the recording of control ends, the run goes on") == 1
