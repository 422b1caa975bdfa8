import json
import math

import numpy as np

from penstock.control.observation import ChannelLoad, KnownKeys, Moved, Observation, StageChannels
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.routing import LQL, Spread


def test_an_observation_reads_back_as_it_was():
    stage = StageChannels(
        stage=1,
        name="join",
        partitioning="balanced",
        target=4,
        channels=(ChannelLoad(0, 10, 0.1, 3, 7, 700, rows=8, cpu_seconds=0.05),),
        imbalance=(1.0, math.inf, 1.5),
        tolerated=(1.2, 1.3, 1.4),
        router="ab.router",
        resources=LQL,
        known=KnownKeys((-5, 7), (0.25, 0.1), ((0.2, 0.1), (0.3, 0.1)), (10.0, 20.0), {-5: "berlin"}),
        domain=1000,
        spread=Spread((-5,), (2,), (1,), (0, 1)),
        sub_keys=SubKeyPlan((SplitKey(7, 0.1, 3, "x"),)),
        copied="both",
        moved=Moved(1, 4, 4, rows=3, bytes=10, seconds=0.5),
    )
    seen = Observation(7, (stage,), 1.0, 2.0, 3.0, 4.0, slots=2, rows=10)
    again = Observation.from_json(json.loads(json.dumps(seen.to_json(), allow_nan=False)))
    assert again == seen
    assert again.stages[0].known.frequencies.hashes.tolist() == [2**64 - 5, 7]
    assert np.isclose(again.stages[0].known.frequencies.shares.sum(), 0.35)
