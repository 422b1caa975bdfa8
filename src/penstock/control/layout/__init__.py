"""The layout of every stage: where its keys lie and on how many channels, as the objective has it."""

from penstock.control.layout.policy import LayoutPolicy, LayoutSettings

__all__ = ["LayoutPolicy", "LayoutSettings"]
