"""The commands that the lab adds to `penstock`: `bench` and `reproduce`."""
