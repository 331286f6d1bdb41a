"""The effect of dose within one model: seen items of a ladder arm by their number of copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from softcontam.analysis.estimates import Estimate, over_seeds
from softcontam.analysis.items import SEEN, family_means
from softcontam.analysis.pairing import Arm, Pair


@dataclass(frozen=True)
class DoseEffect:
    """The change from the clean arm on the seen items with ``copies`` rows in the mixture, over seeds.

    Items without a row (``copies`` 0) are in the seen half as well: what they gain is not from their own duplicates.
    ``value``, ``baseline`` and ``estimate`` are in the unit of ``outcome``; counts are means over seeds, rounded.
    ``per_seed`` holds value and baseline by cell.
    """

    arm: Arm
    benchmark: str
    outcome: str
    copies: int
    n_items: int
    n_families: int
    value: float
    baseline: float
    estimate: Estimate
    per_seed: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)


def dose_effects(pairs: Sequence[Pair], items: pd.DataFrame, outcomes: Sequence[str]) -> list[DoseEffect]:
    """The effects of every ladder arm, outcome and dose.

    Args:
        pairs: arms with their clean cells; those without a ladder are passed over.
        items: of :func:`softcontam.analysis.items.item_table`, with the cells of all pairs.
    """
    ladders = [pair for pair in pairs if pair.treated.config.condition.ladder]
    if not ladders:
        return []
    arms = {pair.treated.cell.id: pair.treated.arm for pair in ladders}
    partners = pd.DataFrame({"cell": list(arms), "clean": [pair.clean.cell.id for pair in ladders]})
    seen = items[items["role"] == SEEN]
    clean = seen.drop(columns=["family", "copies"]).rename(columns={"cell": "clean"})
    both = seen.merge(partners, on="cell").merge(clean, on=["clean", "benchmark", "item_id"], suffixes=("", "_clean"))
    both["arm"] = both["cell"].map(arms)
    found = []
    for outcome in outcomes:
        columns = [outcome, f"{outcome}_clean"]
        decided = both[both[columns].notna().all(axis=1)]
        for (_, benchmark, _), members in decided.groupby(["arm", "benchmark", "copies"], sort=False):
            means = family_means(members, ["cell"], columns)
            cells = members.groupby("cell", observed=True)
            counts = cells.agg(items=("item_id", "size"), families=("family", "nunique"))
            found.append(
                DoseEffect(
                    arm=arms[str(members["cell"].iloc[0])],
                    benchmark=str(benchmark),
                    outcome=outcome,
                    copies=int(members["copies"].iloc[0]),
                    n_items=round(float(counts["items"].mean())),
                    n_families=round(float(counts["families"].mean())),
                    value=float(means[outcome].mean()),
                    baseline=float(means[f"{outcome}_clean"].mean()),
                    estimate=over_seeds((means[outcome] - means[f"{outcome}_clean"]).tolist()),
                    per_seed={str(cell): (float(row.iloc[0]), float(row.iloc[1])) for cell, row in means.iterrows()},
                )
            )
    place = {arm: index for index, arm in enumerate(arms.values())}
    return sorted(found, key=lambda one: (place[one.arm], outcomes.index(one.outcome), one.copies))
