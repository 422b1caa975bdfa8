"""Packages that only some uses of Penstock need: what each is for, and how to get it."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import MissingPackage

__all__ = ["extra"]


@contextmanager
def extra(name: str, package: str, purpose: str) -> Iterator[None]:
    """Say how to install the extra `name` if an import in this block fails because `package` is missing.

    >>> with extra("delta", "a_package_that_nobody_has", "a Delta table"):
    ...     import a_package_that_nobody_has
    Traceback (most recent call last):
    penstock.errors.MissingPackage: a Delta table needs the package a_package_that_nobody_has, ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingPackage(
            f"{purpose} needs the package {package}, which is not installed; "
            f"get it with: pip install 'penstock[{name}]'"
        ) from error
