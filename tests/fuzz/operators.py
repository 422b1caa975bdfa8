"""What operators of Python alone mean over whole tables."""

MEANINGS = {}
PYTHON = {}
