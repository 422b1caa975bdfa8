"""Random operators that only Python has."""


def draw_verb(drawer, depth, *, inner=False):
    return drawer.block(depth, timed=inner)
