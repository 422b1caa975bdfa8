"""A cluster on paper."""
