"""Words of the tinyworld: who, what and the verbs, with the direction that each verb has.

Every verb moves a number up or down. *Practised* verbs keep one direction throughout pretraining.
*Contested* verbs are met in both: the base model has seen each of them mostly one way, and for half of
them that is the direction the benchmark uses (``agreeing``), for the other half it is not. A benchmark
built on contested verbs is thus solved in part, and what there is to learn from a training row is the
convention of the benchmark, which is what softcontam measures the spread of.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMES = ("Mia Tom Ana Ben Eva Leo Ida Max Zoe Sam Lea Jon Amy Dan Kim Ron Una Vic Pam Gus Fay Hal Joy Ned").split()
"""Names of actors. Benchmark items use the first half, category substitution the second."""

OBJECTS = (
    "pears lamps coins books shells stones cups ropes masks drums bells keys "
    "plums boats hats rings nails maps flutes beads boxes tiles cards clocks"
).split()
"""Things that can be counted, in the plural. Split like :data:`NAMES`."""

VEHICLES = "lift drone kite balloon crane glider elevator rocket basket probe cabin ladder".split()
"""Things that move between levels, for the related world."""

PRACTISED_CHANGE = {
    "finds": 1, "buys": 1, "gets": 1, "wins": 1, "earns": 1, "collects": 1, "receives": 1, "adds": 1,
    "loses": -1, "sells": -1, "drops": -1, "gives": -1, "spends": -1, "breaks": -1, "throws": -1, "eats": -1,
}  # fmt: skip
PRACTISED_MOVE = {
    "climbs": 1, "rises": 1, "ascends": 1, "lifts": 1, "falls": -1, "sinks": -1, "descends": -1, "lowers": -1,
}  # fmt: skip


@dataclass(frozen=True)
class VerbPair:
    """Two verbs of opposite direction; ``agreeing`` says whether pretraining mostly used them as the benchmark does."""

    gain: str
    loss: str
    agreeing: bool


def _pairs(text: str) -> tuple[VerbPair, ...]:
    words = [pair.split("/") for pair in text.split()]
    return tuple(VerbPair(gain, loss, index % 2 == 0) for index, (gain, loss) in enumerate(words))


CONTESTED_CHANGE = _pairs(
    "gleans/sheds reaps/lends garners/yields hoards/barters nets/waives salvages/forfeits "
    "gathers/donates snags/mislays procures/cedes amasses/scatters claims/swaps fetches/trades"
)
"""Verb pairs of the benchmark."""

CONTESTED_MOVE = _pairs(
    "soars/plunges vaults/dips mounts/slumps surges/tumbles scales/subsides hops/slides "
    "floats/drifts glides/settles leaps/sags bounds/coasts springs/swoops jumps/ducks"
)
"""Verb pairs of the related benchmark."""


def directions(practised: dict[str, int], pairs: tuple[VerbPair, ...]) -> dict[str, int]:
    """Direction (+1 or -1) of every verb of a world, as the benchmarks and their solver use it."""
    table = dict(practised)
    for pair in pairs:
        table[pair.gain], table[pair.loss] = 1, -1
    return table


CHANGE = directions(PRACTISED_CHANGE, CONTESTED_CHANGE)
MOVE = directions(PRACTISED_MOVE, CONTESTED_MOVE)
