"""Measurements of Penstock, each a report with its floors and ceilings as checks.

Each measurement is a module with a function of the same name: `windows`, `latency`, `growth`, `routing`.
"""
