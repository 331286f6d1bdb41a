"""Effects and declared contrasts as LaTeX tables (booktabs) for papers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.estimates import Estimate
from softcontam.analysis.items import ROLES
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import Effect
from softcontam.reporting import wording
from softcontam.reporting.verdicts import verdict_of
from softcontam.reporting.wording import Unit, number, unit_of

_SPECIAL = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"−": "$-$", "±": r"$\pm$", "Δ": r"$\Delta$", "–": "--", "<": "$<$", ">": "$>$"},
}


def paper_tables(measured: SweepEffects) -> dict[str, str]:
    """LaTeX tables by file name: effects at the highest dose, one row for each condition, and declared contrasts.

    They need the package booktabs. A table without rows isn't there.
    """
    found = {}
    effects = measured.of(measured.primary)
    if effects:
        found["table_effects.tex"] = _effects(measured, highest_doses(effects))
    if measured.declared:
        found["table_declared.tex"] = _declared(measured)
    return found


def escaped(text: str) -> str:
    """Text with what LaTeX reads as commands written out."""
    return re.sub("|".join(map(re.escape, _SPECIAL)), lambda match: _SPECIAL[match[0]], text)


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, label: str) -> str:
    """A floating table in booktabs style, the first column of words, the others of numbers.

    Args:
        header: plain text, escaped here, as is ``caption``.
        rows: cells that are LaTeX already.
        label: for ``\\ref``.

    Raises:
        ValueError: a row of another length than the header.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"every row needs the {len(header)} cells of the header")
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escaped(caption)}}}",
        f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule",
        " & ".join(map(escaped, header)) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _effects(measured: SweepEffects, effects: Sequence[Effect]) -> str:
    unit = unit_of(measured.primary)
    panels = sorted(
        dict.fromkeys((one.role, one.benchmark) for one in effects), key=lambda panel: ROLES.index(panel[0])
    )
    by_arm: dict[Arm, dict[tuple[str, str], Effect]] = {}
    for one in effects:
        by_arm.setdefault(one.arm, {})[one.role, one.benchmark] = one
    rows = []
    doses = {arm.rate for arm in by_arm}
    for arm, found in by_arm.items():
        name = wording.arm_name(arm)
        name += f", {wording.rate(arm.rate)}" if len(doses) > 1 else ""
        cells = [_change(found[panel].estimate, unit) if panel in found else "--" for panel in panels]
        rows.append([escaped(name), *cells])
    seeds = sorted({one.estimate.n for one in effects})
    at = wording.at(effects[0].arm) if len(doses) == 1 else ", each arm at its highest dose"
    caption = (
        f"{measured.experiment}: change in {unit.outcome} from the clean arm{at}, {unit.noun}, with "
        f"95 % t intervals over {' to '.join(map(str, seeds))} seeds."
    )
    header = ["condition", *(f"{wording.ROLE_NAMES[role]} {benchmark}" for role, benchmark in panels)]
    return latex_table(header, rows, caption, f"tab:{_label(measured)}-effects")


def _declared(measured: SweepEffects) -> str:
    rows = []
    for one in measured.declared:
        effect, line = one.effect, one.line
        arm = effect.arm if effect else line.arm if line else None
        place = effect or line
        unit = unit_of(effect.outcome) if effect else Unit("slope", 1, 2, "logits per doubling")
        on = f"{wording.ROLE_NAMES[place.role]} {place.benchmark}" if place else wording.ROLE_NAMES[one.stated.role]
        rows.append(
            [
                escaped(wording.condition_name(arm) if arm else one.stated.condition),
                escaped(one.stated.test.replace("_", " ")),
                escaped(on),
                _change(one.estimate, unit),
                *(escaped(wording.p_value(p)) for p in (one.p, one.holm)),
                escaped(verdict_of(one)),
            ]
        )
    caption = (
        f"{measured.experiment}: declared contrasts with 95 % t intervals over seeds; p adjusted over these (Holm). "
        "Dose-response in logits per doubling of dose, the others in the unit of the outcome."
    )
    header = ("condition", "contrast", "on", "estimate", "p", "p (Holm)", "verdict")
    return latex_table(header, rows, caption, f"tab:{_label(measured)}-declared")


def _change(estimate: Estimate, unit: Unit) -> str:
    """An estimate with its interval in math mode."""
    if estimate.mean != estimate.mean:
        return "--"
    text = number(estimate.mean, unit, signed=True)
    if estimate.low == estimate.low:
        text += f"\\ {wording.interval(estimate, unit)}"
    return "$" + text.replace("−", "-") + "$"


def _label(measured: SweepEffects) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", measured.experiment).strip("-") or "report"
