"""`penstock token`: makes a token and its entry for the file of a gate."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

__all__ = ["token"]


def token(  # noqa: PLR0913 -- each is one option of the command
    name: Annotated[str, typer.Argument(help="Name of the token; shown when it has expired.")],
    *,
    push: Annotated[
        list[str] | None, typer.Option(help="Streams that may be pushed, such as 'reports/*'.")
    ] = None,
    read: Annotated[list[str] | None, typer.Option(help="Streams that may be read.")] = None,
    commit: Annotated[
        list[str] | None,
        typer.Option(help="Streams whose rows may be committed, after which gates delete them: for runs."),
    ] = None,
    administer: Annotated[
        bool, typer.Option("--administer", help="Allow status, suspend, resume, redirect, drain and forget.")
    ] = False,
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose token it is: tokens of one tenant share its limits and its part of a gate."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="Days until it expires.")] = 365,
) -> None:
    """Make a token: the secret goes to standard error, the entry for the gate's file to standard output.

    The gate keeps only a hash. Give the secret to the client, for example in PENSTOCK_TOKEN.

    A run reads and commits: give its token both rights.

    Example: penstock token vehicles --push 'reports/*' >> tokens.toml
    """
    from penstock.ingest.security import hash_of, new_token  # noqa: PLC0415 -- --help does not need it

    secret = new_token()
    expires = datetime.now(UTC) + timedelta(days=days)
    typer.echo(secret, err=True)
    typer.echo(
        f'[[token]]\nname = {_quoted(name)}\nsha256 = "{hash_of(secret)}"\n'
        f"push = [{', '.join(map(_quoted, push or []))}]\nread = [{', '.join(map(_quoted, read or []))}]\n"
        f"commit = [{', '.join(map(_quoted, commit or []))}]\n"
        f"{'' if tenant is None else f'tenant = {_quoted(tenant)}' + chr(10)}"
        f"administer = {str(administer).lower()}\nexpires = {expires:%Y-%m-%dT%H:%M:%SZ}\n"
    )


def _quoted(text: str) -> str:
    if not text.isprintable() or "'" in text:
        raise typer.BadParameter(f"{text!r} has characters that a token entry cannot hold; leave them out")
    return f"'{text}'"
