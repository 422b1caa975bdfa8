"""The way back from the id of a `grid` tile to the point in its middle."""

import math

__all__ = ["middle"]

METRES_PER_DEGREE = 111_320.0


def middle(area: str, metres: float) -> tuple[float, float]:
    """Longitude and latitude of the middle of the tile "row:column" with edges of so many metres.

    >>> lon, lat = middle("12045:1068", 500)
    >>> f"{lon:.4f} {lat:.4f}"
    '8.1848 54.1030'
    """
    row, column = (int(part) for part in area.split(":"))
    lat = row * metres / METRES_PER_DEGREE
    lon = (column + 0.5) * metres / (METRES_PER_DEGREE * math.cos(math.radians(lat)))
    return lon, lat + 0.5 * metres / METRES_PER_DEGREE
