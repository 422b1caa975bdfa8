"""The command `penstock`."""

from penstock.cli.app import main

__all__ = ["main"]
