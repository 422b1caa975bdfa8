"""Scaling: how many units each operator gets, and how long an epoch is; decisions with their reasons."""
