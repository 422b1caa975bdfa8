"""Measurements of Penstock, each a report with its floors and ceilings as checks.

One module a measurement, with a function of the same name: `windows`, `latency`, `growth`, `routing`.
"""
