"""`penstock node`: what a controller runs on another host to start and stop gates there."""

__all__ = ["node"]


def node() -> None:
    """Start and stop gates on this host for a controller elsewhere, which runs this command itself.

    It follows orders on standard input until that ends; gates go on then. A file for `penstock controller
    --nodes` says how it is run on each host.

    Example: penstock node
    """
    from penstock.ingest.directory.node_agent import main_node  # noqa: PLC0415 -- --help does not need it

    main_node()
