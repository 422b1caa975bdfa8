"""A plan as a Mermaid flowchart: a subgraph for each stage, arrows for feeds."""

from dataclasses import dataclass, field

from penstock.compile.outline import Outline, router_kind
from penstock.compile.stages import Feed, Stage
from penstock.operators import Step
from penstock.query import Stream

__all__ = ["explain_mermaid"]


def explain_mermaid(plan: Outline) -> str:
    """The text of the flowchart; each step is in the stage in which it runs."""
    chart = _Chart([[] for _ in plan.stages])
    for stage in plan.stages:
        chart.inner[stage.number].append(f'stage{stage.number}_op["{_safe(stage.operator)}"]')
    for stage in plan.stages:
        for name, port in zip(stage.operator.ports, stage.ports, strict=True):
            side = f"{name}, " if len(stage.ports) > 1 else ""
            for feed in port:
                chart.lead(feed, f"stage{stage.number}_op", f"{side}{router_kind(stage)}")
    for place, port in enumerate(plan.subqueries.outputs):
        chart.nodes.append(f'output{place}(["output {place}"])')
        for feed in port:
            chart.lead(feed, f"output{place}", "")
    streams = [f'{_id(each)}[/"{each.name}"/]' for each in plan.subqueries.query.streams]
    lines = [*streams, *chart.nodes]
    for stage in plan.stages:
        title = f"stage {stage.number}: {_channels(plan, stage)}"
        lines += [f'subgraph stage{stage.number}["{title}"]', *_indented(chart.inner[stage.number]), "end"]
    return "\n".join(["flowchart LR", *_indented(lines + chart.arrows)])


@dataclass
class _Chart:
    """Nodes inside each stage, nodes outside all stages, and arrows, in order of first use."""

    inner: list[list[str]]
    nodes: list[str] = field(default_factory=list)
    arrows: list[str] = field(default_factory=list)
    steps: int = 0

    def lead(self, feed: Feed, target: str, label: str) -> None:
        """Draw a feed from its origin through its steps to a node."""
        origin = feed.origin
        at = _id(origin) if isinstance(origin, Stream) else f"stage{origin}_op"
        for step in feed.inside:
            at = self._step(step, at, self.inner[origin] if isinstance(origin, int) else self.nodes)
        for step in feed.outside + feed.beyond:
            at = self._step(step, at, self.nodes)
        self.arrows.append(f"{at} -->{f'|{label}|' if label else ''} {target}")

    def _step(self, step: Step, at: str, nodes: list[str]) -> str:
        name = f"step{self.steps}"
        self.steps += 1
        nodes.append(f'{name}["{_safe(step)}"]')
        self.arrows.append(f"{at} --> {name}")
        return name


def _channels(plan: Outline, stage: Stage) -> str:
    if stage.host is not None:
        return f"in the channels of stage {stage.host}"
    count = plan.channels[stage.number]
    return "one channel per core" if count is None else f"{count} channel{'s' if count > 1 else ''}"


def _id(stream: Stream) -> str:
    # The prefix avoids the stream name "end", which would close a subgraph.
    return f"stream_{stream.name}"


def _safe(shown: object) -> str:
    """A label without characters that Mermaid or HTML would read as markup."""
    text = str(shown).replace("`", "").replace("#", "#35;").replace('"', "#quot;")
    return text.replace("<", "#lt;").replace(">", "#gt;")


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
