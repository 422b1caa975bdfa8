"""Functions of users for map, apply and process, each with a meaning over whole tables in `operators.py`."""
