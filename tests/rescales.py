"""A policy that rescales at random: any stage, to any number of channels, by any partitioning function."""

import random
from dataclasses import dataclass, field

import penstock as ps
from penstock.routing import PARTITIONINGS


@dataclass
class AtRandom:
    """Asks about every `every` epochs, of every stage that may have several channels."""

    seed: int
    every: int = 2
    most: int = 16
    asked: list[ps.Rescale] = field(default_factory=list)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        chance = random.Random(f"{self.seed} {seen.epoch}")
        wishes = [
            ps.Rescale(stage.stage, chance.randint(1, self.most), chance.choice(PARTITIONINGS))
            for stage in seen.stages
            if chance.random() < 1 / self.every and stage.rescalable
        ]
        self.asked += wishes
        return wishes
