"""`penstock token`: make a token and the lines under which a gate knows it."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

__all__ = ["token"]


def token(
    name: Annotated[str, typer.Argument(help="Name of the token, for people.")],
    *,
    push: Annotated[
        list[str] | None, typer.Option(help="Streams that it may push to, such as 'reports/*'.")
    ] = None,
    read: Annotated[list[str] | None, typer.Option(help="Streams that it may read.")] = None,
    administer: Annotated[
        bool, typer.Option("--administer", help="It may suspend, redirect and drain.")
    ] = False,
    days: Annotated[int, typer.Option(min=1, help="Days until it expires.")] = 365,
) -> None:
    """Make a token: the secret goes to standard error, the entry for the gate's file to standard output.

    The gate keeps only a hash. Give the secret to the client, which sends it as a bearer token.

    Example: [bold]penstock token vehicles --push 'reports/*' >> tokens.toml[/]
    """
    from penstock.ingest.tokens import hash_of, new_token  # noqa: PLC0415 -- --help has no need of it

    secret = new_token()
    expires = datetime.now(UTC) + timedelta(days=days)
    typer.echo(secret, err=True)
    typer.echo(
        f'[[token]]\nname = {_quoted(name)}\nsha256 = "{hash_of(secret)}"\n'
        f"push = [{', '.join(map(_quoted, push or []))}]\nread = [{', '.join(map(_quoted, read or []))}]\n"
        f"administer = {str(administer).lower()}\nexpires = {expires:%Y-%m-%dT%H:%M:%SZ}\n"
    )


def _quoted(text: str) -> str:
    if not text.isprintable() or "'" in text:
        raise typer.BadParameter(f"{text!r} has characters that a token entry cannot hold; leave them out")
    return f"'{text}'"
