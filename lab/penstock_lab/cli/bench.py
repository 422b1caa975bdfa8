"""`penstock bench`: the measurements, as tables for people or as one JSON object for programs."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from penstock_lab.cli.delivery import deliver

__all__ = ["bench"]

bench = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure Penstock on this machine. The exit status is 0 only if no check failed.\n\n"
    "Example: penstock bench windows --quick",
)

Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, progress on standard error.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller form of the same measurement.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the data.")]
Rows = Annotated[int, typer.Option(min=1, help="Rows to measure with.")]
Keys = Annotated[int, typer.Option(min=1, help="Keys, drawn from a Zipf distribution.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Keep the data here and use it again; otherwise new data is made each time."),
]


@bench.command()
def windows(  # noqa: PLR0913 -- each is one option of the command
    *,
    rows: Rows = 10_000_000,
    seconds: Annotated[int, typer.Option(min=1, help="Event time that the rows span.")] = 2000,
    keys: Keys = 16_384,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; the best one counts.")] = 3,
    files_per_epoch: Annotated[int, typer.Option(min=1, help="Files that one epoch takes.")] = 10,
    data_dir: DataDir = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare sliding windows with Spark's own two ways to aggregate them.

    Example: penstock bench windows --quick --json > windows.json
    """
    from penstock_lab.bench.windows import windows as measure  # noqa: PLC0415 -- Spark is slow to import

    report = measure(
        rows=rows,
        seconds=seconds,
        keys=keys,
        repeats=repeats,
        files_per_epoch=files_per_epoch,
        data_dir=data_dir,
        seed=seed,
        quick=quick,
    )
    deliver(report, json=json)


@bench.command()
def latency(  # noqa: PLR0913 -- each is one option of the command
    *,
    rows_per_s: Annotated[int, typer.Option("--rate", min=1, help="Rows that arrive each second.")] = 20_000,
    seconds: Annotated[int, typer.Option(min=11, help="Length; the first 10 are warm-up.")] = 60,
    keys: Keys = 1000,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how long after a window could close its result is delivered.

    Example: penstock bench latency --rate 20000 --seconds 60
    """
    from penstock_lab.bench.latency import latency as measure  # noqa: PLC0415 -- Spark is slow to import

    report = measure(rows_per_s=rows_per_s, seconds=seconds, keys=keys, seed=seed, quick=quick)
    deliver(report, json=json)


@bench.command()
def pacing(
    *,
    seconds: Annotated[int, typer.Option(min=5, help="Length of each case, after its warm-up.")] = 40,
    keys: Keys = 1000,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure what a latency bound costs in processor time, and whether it is kept.

    Example: penstock bench pacing --quick
    """
    from penstock_lab.bench.pacing import pacing as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(seconds=seconds, keys=keys, seed=seed, quick=quick), json=json)


@bench.command()
def executors(  # noqa: PLR0913 -- each is one option of the command
    *,
    policies: Annotated[
        str, typer.Option(help="Scaling policies; static is all executors all the time.")
    ] = "static,penstock,autoscale,qos,incremental",
    bound: Annotated[float, typer.Option(min=1, help="Latency bound in seconds.")] = 8.0,
    share: Annotated[float, typer.Option(min=0.05, max=1, help="Part of a core for an executor.")] = 0.3,
    resume: Annotated[
        Path | None, typer.Option(help="Keep rows in this file, and measure only those that it lacks.")
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Let executors of a cluster on this machine follow a load, by each policy.

    Example: penstock bench executors --policies static,penstock --resume rows.jsonl
    """
    from penstock_lab.bench.executors import executors as measure  # noqa: PLC0415 -- Spark is slow to import

    found = measure(
        policies=policies.split(","), bound=bound, share=share, seed=seed, quick=quick, resume=resume
    )
    deliver(found, json=json)


@bench.command()
def growth(  # noqa: PLR0913 -- each is one option of the command
    *,
    rows: Rows = 1_000_000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the long run.")] = 300,
    data_dir: DataDir = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the figure into this PNG file.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure what happens as windows overlap more, keys multiply and time passes.

    Example: penstock bench growth --plot growth.png
    """
    from penstock_lab.bench.growth import growth as measure  # noqa: PLC0415 -- Spark is slow to import

    report = measure(rows=rows, epochs=epochs, data_dir=data_dir, plot=plot, seed=seed, quick=quick)
    deliver(report, json=json)


@bench.command()
def routing(
    *,
    items: Annotated[int, typer.Option(min=1, help="Items to route and to count.")] = 2_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each; the best one counts.")] = 15,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure routers and sketches on one core, without Spark.

    Example: penstock bench routing --json > routing.json
    """
    from penstock_lab.bench.routing import routing as measure  # noqa: PLC0415 -- numpy is slow to import

    deliver(measure(items=items, repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command()
def migration(
    *,
    rows: Rows = 4_000_000,
    keys: Annotated[
        Path | None, typer.Option(help="Keys to use, one whole number a line; else Zipf 1.0 over a million.")
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure what rescaling moves and how even it leaves the channels, for every partitioning function.

    Example: penstock bench migration --keys keys.txt.gz --json > migration.json
    """
    from penstock_lab.bench.migration import migration as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(rows=rows, keys=keys, seed=seed, quick=quick), json=json)


@bench.command()
def skew(  # noqa: PLR0913 -- each is one option of the command
    *,
    case: Annotated[
        list[str] | None,
        typer.Option(help="Only this case, such as waiting or outer-join-1.2. May be repeated."),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Also run over real keys, one whole number a line, as they arrived.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(min=2, help="Pairs of each case, or each of its seeds; 6 or 2 by default."),
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure what control costs and gains while hot keys come and go: in pairs, control on and off.

    Example: penstock bench skew --keys keys.txt.gz --json > skew.json
    """
    from penstock_lab.bench.skew_control import skew as measure  # noqa: PLC0415 -- Spark is slow to import

    report = measure(only=tuple(case or ()), keys=keys, pairs=pairs, seed=seed, quick=quick)
    deliver(report, json=json)


@bench.command()
def channels(
    *,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Let the number of channels follow a load that rises eightfold and falls, against eight of them.

    Example: penstock bench channels --json > channels.json
    """
    from penstock_lab.bench.channels import channels as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(seed=seed, quick=quick), json=json)


@bench.command()
def rescale(
    *,
    state_mb: Annotated[int, typer.Option(min=1, help="Megabytes of state.")] = 1024,
    only: Annotated[
        str | None,
        typer.Option(
            help="Only these of spark (the comparison), keyed, join and panes (epoch by epoch), such as join."
        ),
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare how long a stream stands still from 4 to 8 channels with Spark's offline repartitioning.

    Example: penstock bench rescale --quick --json > rescale.json
    """
    from penstock_lab.bench.rescale import PARTS  # noqa: PLC0415 -- Spark is slow to import
    from penstock_lab.bench.rescale import rescale as measure  # noqa: PLC0415

    chosen = PARTS if only is None else _named(only)
    deliver(measure(state_mb=state_mb, seed=seed, quick=quick, only=chosen), json=json)


@bench.command()
def splits(
    *,
    rows: Rows = 10_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; their median counts.")] = 5,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how much more a tuple costs with skew-proof splits than with plain routing.

    Example: penstock bench splits --quick --json > splits.json
    """
    from penstock_lab.bench.splits import splits as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(rows=rows, repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command()
def process(
    *,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; the best one counts.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare keyed stateful functions with Spark's two ways to run them in Python.

    Example: penstock bench process --quick --json > process.json
    """
    from penstock_lab.bench.process import process as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command()
def operators(
    *,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; the best one counts.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare joins with Spark's own; measure the Cartesian product, single operators and strategies.

    Example: penstock bench operators --quick --json > operators.json
    """
    from penstock_lab.bench.operators import operators as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command()
def shuffle(
    *,
    channels: Annotated[
        int | None, typer.Option(min=2, help="Channels and task slots; by default as many as cores.")
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare ways to place the rows of a function whose cost depends on the value.

    Example: penstock bench shuffle --quick --json > shuffle.json
    """
    from penstock_lab.bench.shuffle import shuffle as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(channels=channels, seed=seed, quick=quick), json=json)


@bench.command()
def subkeys(  # noqa: PLR0913 -- each is one option of the command
    *,
    rows: Annotated[int, typer.Option(min=1000, help="Rows of an epoch.")] = 50_000,
    epochs: Annotated[int, typer.Option(min=2, help="Epochs; the first one is not measured.")] = 6,
    keys: Annotated[
        Path | None, typer.Option(help="A text file with one key a line, plain or .gz, instead of Zipf 1.5.")
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how evenly costly user code over hot keys falls on eight channels of a standalone cluster.

    Example: penstock bench subkeys --quick --json > subkeys.json
    """
    from penstock_lab.bench.sub_keys import sub_keys as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(rows=rows, epochs=epochs, keys=keys, seed=seed, quick=quick), json=json)


@bench.command()
def admission(  # noqa: PLR0913 -- each is one option of the command
    *,
    streams: Annotated[int, typer.Option(min=1, help="Streams, each with a client.")] = 200,
    periods: Annotated[int, typer.Option(min=4, help="Periods of the controller.")] = 60,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of a period.")] = 3.0,
    capacity: Annotated[float, typer.Option(min=1, help="Rows per second that a gate takes.")] = 1000.0,
    strategy: Annotated[
        list[str] | None, typer.Option(help="Only this strategy. May be repeated; all three by default.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Only this workload. May be repeated; sfvar and bursty by default."),
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare strategies of admission on live gates, which are started, relieved and stopped meanwhile.

    Example: penstock bench admission --quick
    """
    from penstock_lab.bench.admission import QUICK, STRATEGIES, Size  # noqa: PLC0415 -- Flight is slow to import
    from penstock_lab.bench.admission import admission as measure  # noqa: PLC0415

    size = QUICK if quick else Size(streams, periods, seconds, capacity)
    size = replace(size, workloads=tuple(workload)) if workload else size
    deliver(measure(size, strategies=tuple(strategy or STRATEGIES), seed=seed), json=json)


@bench.command()
def gates(
    *,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; the best one counts.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how fast rows enter through a gate, against a bare Flight server and Redis Streams.

    Example: penstock bench gates --quick --json > gates.json
    """
    from penstock_lab.bench.gates import gates as measure  # noqa: PLC0415 -- Flight is slow to import

    deliver(measure(repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command()
def inlet(
    *,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; their median counts.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how fast a query takes rows from a gate: filled logs, live, and a backlog of 50 million.

    Example: penstock bench inlet --quick --json > inlet.json
    """
    from penstock_lab.bench.inlet import inlet as measure  # noqa: PLC0415 -- Spark is slow to import

    deliver(measure(repeats=repeats, seed=seed, quick=quick), json=json)


@bench.command(name="admission-decisions")
def admission_decisions(
    *,
    most: Annotated[
        int, typer.Option(min=10_000, help="The most streams; a million needs about 4 GB.")
    ] = 1_000_000,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure what one period of admission costs with up to a million streams, and a simulated day.

    Example: penstock bench admission-decisions --quick --json > decisions.json
    """
    from penstock_lab.bench.decisions import decisions as measure  # noqa: PLC0415 -- numpy is slow to import

    deliver(measure(most=most, seed=seed, quick=quick), json=json)


@bench.command()
def scaling(
    *,
    nab: Annotated[
        Path | None, typer.Option(help="A tar file with series of the Numenta Anomaly Benchmark.")
    ] = None,
    nasa: Annotated[
        Path | None, typer.Option(help="Requests of each second of a web server, a line each, .gz.")
    ] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Run scaling policies on measured rates, on paper: bound kept, node hours and changes.

    Example: penstock bench scaling --nab nab_selected.tar.gz --nasa nasa_requests_per_second.txt.gz
    """
    from penstock_lab.bench.scaling import scaling as measure  # noqa: PLC0415 -- numpy is slow to import

    deliver(measure(nab=nab, nasa=nasa, seed=seed, quick=quick), json=json)


@bench.command()
def order(
    *,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how a bound on disorder trades order for delay while one channel is slow.

    Example: penstock bench order --quick --json > order.json
    """
    from penstock_lab.bench.order import FULL, QUICK  # noqa: PLC0415 -- Spark is slow to import
    from penstock_lab.bench.order import order as measure  # noqa: PLC0415

    deliver(measure(QUICK if quick else FULL, seed=seed, quick=quick), json=json)


@bench.command()
def nexmark(  # noqa: PLR0913 -- each is one option of the command
    *,
    queries: Annotated[
        str | None, typer.Option(help="Only these, such as q0,q5; all that can be said by default.")
    ] = None,
    events: Annotated[int | None, typer.Option(min=1000, help="Persons, auctions and bids together.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; the best one counts.")] = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare the queries of NEXMark with Spark Structured Streaming.

    Example: penstock bench nexmark --queries q0,q5 --json > nexmark.json
    """
    from penstock_lab.bench.nexmark import FULL, QUICK  # noqa: PLC0415 -- Spark is slow to import
    from penstock_lab.bench.nexmark import nexmark as measure  # noqa: PLC0415

    size = QUICK if quick else FULL
    chosen = size.queries if queries is None else _named(queries)
    size = replace(size, queries=chosen, events=events or size.events, repeats=repeats or size.repeats)
    deliver(measure(size, seed=seed, quick=quick), json=json)


@bench.command()
def peers(  # noqa: PLR0913 -- each is one option of the command
    *,
    only: Annotated[
        str | None,
        typer.Option(
            help="Only these of filter, tumbling, 60-by-10, 100-by-1, join, small-epochs and epoch-sizes, "
            "such as filter,join."
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            help="Only these of penstock, spark, spark-tuned, duckdb and polars; by default all but "
            "spark-tuned, polars where it is installed."
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rounds; their median counts.")] = None,
    warm_epochs: Annotated[
        int | None, typer.Option(min=1, help="Small epochs before those that are measured; 200 by default.")
    ] = None,
    data_dir: DataDir = None,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Compare six queries with Spark Structured Streaming, and with DuckDB and Polars in batch.

    Example: penstock bench peers --only filter,join --json > peers.json
    """
    from penstock_lab.bench.peers import FULL, PARTS, QUICK  # noqa: PLC0415 -- Spark is slow to import
    from penstock_lab.bench.peers import peers as measure  # noqa: PLC0415

    size = QUICK if quick else FULL
    if repeats is not None:
        size = replace(size, rounds=replace(size.rounds, repeats=repeats))
    if warm_epochs is not None:
        size = replace(size, small=replace(size.small, warm=warm_epochs))
    report = measure(
        size,
        only=PARTS if only is None else _named(only),
        engines=None if engines is None else _named(engines),
        seed=seed,
        quick=quick,
        data_dir=data_dir,
    )
    deliver(report, json=json)


def _named(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))


@bench.command(name="linear-road")
def linear_road(  # noqa: PLR0913 -- each is one option of the command
    *,
    expressways: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Numbers of expressways to measure; else the largest is searched for."),
    ] = None,
    first: Annotated[int, typer.Option(min=1, help="The number that the search begins with.")] = 1,
    trials: Annotated[int, typer.Option(min=1, help="The most numbers that are measured.")] = 9,
    seconds: Annotated[
        int, typer.Option(min=10, help="Length of each number, by the clock, after its warm-up.")
    ] = 60,
    windows: Annotated[bool, typer.Option(help="Also measure the windows over the same reports.")] = True,
    seed: Seed = 7,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Measure how many expressways of Linear Road get all answers within five seconds.

    Example: penstock bench linear-road --expressways 4 --expressways 8 --json > linear-road.json
    """
    from penstock_lab.bench.linear_road import linear_road_bench as measure  # noqa: PLC0415 -- Spark is slow to import

    report = measure(
        expressways=tuple(expressways or ()),
        first=first,
        trials=trials,
        seconds=seconds,
        windows=windows,
        seed=seed,
        quick=quick,
    )
    deliver(report, json=json)
