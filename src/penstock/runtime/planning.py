"""The plan of an epoch, durable before it runs: how each stage is laid out, what is read, the time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.compile import is_single
from penstock.connect import EpochId
from penstock.control.rescale import Rescale
from penstock.distribution.distribution import Held, Layout, Sample
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.frontier import SteadyTime
from penstock.runtime.graph import Graph
from penstock.runtime.records import EpochPlan, Manifest, StagePlan, StreamRead
from penstock.runtime.requests import Asked, Requests
from penstock.runtime.stage import StageRunner, members_of

__all__ = ["Planner", "Samples"]

Samples = Callable[[int, int, int], Iterator[Any]]
"""The hashes of the keys that the epoch is about to read for a stage and a port; at a time of day."""


@dataclass
class Planner:
    """Makes the plan of each epoch; `followed` are the requests that the last one follows."""

    graph: Graph
    checkpoint: Checkpoint
    channels: tuple[int, ...]
    requests: Requests
    clock: Callable[[], float]
    steady: SteadyTime
    followed: Asked = field(init=False, default_factory=dict)
    _ended: int = field(init=False, default=0)

    def resume(self, last: Manifest) -> None:
        """Go on after the last epoch of an earlier run."""
        self.steady.resume(last.plan.steady)
        self._ended = last.plan.steady
        for number, steering in self.requests.steering.items():
            steering.resume(last.plan.stages[number].own, last.stages[number].keys)

    def ended(self) -> None:
        """The epoch has ended; what the next one is offered comes later than this."""
        self._ended = self.steady.read()

    def known(self, epoch_id: EpochId) -> EpochPlan | None:
        """The plan that an earlier attempt of an epoch left."""
        return self.checkpoint.plan(epoch_id)

    def plan(
        self,
        epoch_id: EpochId,
        last: Manifest | None,
        reads: Mapping[str, StreamRead],
        tasks: tuple[int, int],
        samples: Samples,
    ) -> EpochPlan:
        """The plan that an earlier attempt left, or a new one that reads so far.

        `tasks` are the most tasks that read, and the bytes that are worth one.
        """
        self.followed = {}
        known = self.checkpoint.plan(epoch_id)
        if known is not None:
            self.steady.resume(known.steady)
            return known
        asked = {} if epoch_id.drain else self.requests.asked()
        now = int(self.clock() * 1e6)
        stages: list[StagePlan] = []
        for runner in self.graph.stages:
            if runner.stage.host is not None:
                stages.append(StagePlan(stages[runner.stage.host].channels))
                continue

            def sample(port: int, stage: int = runner.number) -> Iterator[Any]:
                return samples(stage, port, now)

            own = {setting: wish for (stage, setting), wish in asked.items() if stage == runner.number}
            stages.append(StagePlan.of(self._layout(runner, last, own, sample, drain=epoch_id.drain)))
        plan = EpochPlan(tuple(stages), now, self.steady.read(), self._ended, reads, *tasks)
        self.checkpoint.write_plan(epoch_id, plan)
        self.requests.planned(asked)
        self.followed = asked
        return plan

    def match(self, last: Manifest | None, given: int | tuple[int, int]) -> None:
        """Request the given numbers of channels where the checkpoint has others, or others than a range.

        A total that is shared out in another way stays as it is.
        """
        if last is None:
            return
        steering = self.requests.steering
        targets = {number: each.target(last.plan.stages[number].own) for number, each in steering.items()}
        wanted = {number: self.channels[number] for number in steering}
        if isinstance(given, int):
            wanted = targets if sum(targets.values()) == sum(wanted.values()) else wanted
        else:
            least, most = given
            several = [each.number for each in self.graph.stages if not is_single(each.stage)]
            wanted |= {each: min(max(targets[each], least), most) for each in several if each in targets}
        for number, channels in wanted.items():
            if targets[number] != channels:
                reason = "started with another number of channels"
                self.requests.ask(Rescale(number, channels, reason=reason))

    def _layout(
        self,
        runner: StageRunner,
        last: Manifest | None,
        asked: Mapping[str, Any],
        sample: Sample,
        *,
        drain: bool,
    ) -> Layout:
        """How a stage is laid out, as before or as requested."""
        steering = self.requests.steering[runner.number]
        if last is None:
            wish = asked.get(Rescale.setting)
            first: Layout = steering.first(wish.channels if wish else self.channels[runner.number], sample)
            return first
        before = last.plan.stages[runner.number].own
        found: Layout = (
            steering.drain(before)
            if drain
            else steering.follow(before, asked, self._held(runner, last), sample)
        )
        return found

    def _held(self, runner: StageRunner, last: Manifest) -> Held:
        """What a stage has, and those in its channels."""
        record = last.stages[runner.number]
        members = [last.stages[each.number] for each in members_of(self.graph.stages, runner.number)]
        own = [segment for channel in record.channels for segment in channel]
        return Held(
            form=record.form(runner.kernel),
            bytes=sum(
                segment.living_bytes for each in members for channel in each.channels for segment in channel
            ),
            tuples=record.tuples,
            bounds=(min(each.first for each in own), max(each.end for each in own)) if own else None,
            in_bucket=record.in_bucket,
            rows=last.counts.rows,
        )
