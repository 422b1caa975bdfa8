"""Small summaries of long streams, with stated error bounds: pure algorithms on numpy arrays."""
