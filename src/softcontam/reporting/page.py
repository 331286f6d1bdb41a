"""The page of a sweep as a list of blocks: the answer first, provenance last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from softcontam.analysis.contrasts import highest_doses
from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.engines import engine_differences, environment_of
from softcontam.analysis.intervals import LABELS
from softcontam.analysis.items import ACCURACY, GENERAL, LOGPROB, PARTIAL
from softcontam.analysis.pass_at_k import is_pass_at_k
from softcontam.analysis.records import Effect
from softcontam.reporting import figures, tables, wording
from softcontam.reporting.base_models import base_models
from softcontam.reporting.blocks import Block, Bullets, Code, Figure, Folded, Heading, Paragraph, Verdicts
from softcontam.reporting.curves import curves_figure
from softcontam.reporting.explorer import item_blocks
from softcontam.reporting.headlines import gaps, headlines
from softcontam.reporting.splits import families_blocks, halves_blocks
from softcontam.reporting.verdicts import sentence, verdict_of

_PACKAGES = ("python", "softcontam", "torch", "transformers", "trl", "peft", "lm_eval")


def page(measured: SweepEffects) -> list[Block]:
    """The blocks of a report: what was asked and the answer first, then what it rests on, provenance last."""
    return [
        Heading(measured.experiment, 1),
        *_answer(measured),
        *base_models([measured]),
        *_figures(measured),
        *_declared(measured),
        *_outcome_tables(measured, measured.primary),
        *_doses(measured),
        *_incomplete(measured),
        *item_blocks(measured),
        *_curves(measured),
        *halves_blocks(measured),
        *_tables(measured),
        *_paper(measured),
        *families_blocks(measured),
        Heading("How to read this"),
        Bullets(_how_to_read(measured)),
        *_provenance(measured),
    ]


def _answer(measured: SweepEffects) -> Iterator[Block]:
    """The question, and a verdict for each declared contrast; the main effects where none was declared."""
    if measured.declaration.analysis.question:
        yield Paragraph(measured.declaration.analysis.question, style="question")
    if measured.declared:
        yield Verdicts([(verdict_of(one), sentence(one, measured.declaration.late)) for one in measured.declared])
        if missing := gaps(measured):
            yield Bullets(missing, style="caution")
    else:
        yield Bullets(headlines(measured), style="headlines")
    if measured.notes:
        yield Bullets(measured.notes, style="caution")
    if any(one.estimate.n == 1 for one in measured.of(measured.primary)):
        yield Paragraph(
            "Where there is one seed there is no interval and no test over runs: how much two runs of the same recipe "
            "differ isn't known then. Intervals over items alone stand in the tables, and cover less.",
            style="caution",
        )


def _declared(measured: SweepEffects) -> Iterator[Block]:
    """The declared contrasts in figures, and when they were declared."""
    if not measured.effects:
        return
    yield Heading("Declared contrasts")
    if measured.declared:
        tested = sum(not math.isnan(one.p) for one in measured.declared)
        yield Paragraph(
            f"{len(measured.declared)} contrasts, {tested} with a test; p (Holm) is adjusted over all of them, those "
            "without a test included. Verdicts follow p (Holm) at 5 %."
            + (
                " Not all cells are done: these are interim figures, and a contrast over every level counts only those "
                "that there are."
                if measured.cells.unfinished
                else ""
            )
        )
        yield tables.declared(measured)
    else:
        yield Paragraph(
            "This experiment declares no contrasts, so p (Holm) is adjusted over all effects on seen, held-out and "
            "related items, which costs power. Declare those that matter: `analysis.contrasts` in an experiment's "
            "config, or analysis=FILE for a table."
        )
    if measured.declaration.notes:
        yield Bullets(measured.declaration.notes, style="caution")
    yield Folded(
        "What each interval covers",
        [Bullets([f"{name}: {text}" for name, text in LABELS.items()])],
    )


def _curves(measured: SweepEffects) -> Iterator[Block]:
    """Training curves, with token accuracy on the inserted rows where it was measured."""
    drawing = curves_figure(measured.cells.done)
    if drawing is not None:
        yield Heading("Training")
        yield Figure(
            drawing,
            "figure_training",
            "Arms at their highest dose. Mean loss on trained tokens (nats), and the share of trained tokens that the "
            "model ranks first when it reads the text before them: of inserted rows, the gauge of memorization, and of "
            "as many clean rows of the same mixture. Thin lines are seeds, thick ones their mean.",
        )


def _paper(measured: SweepEffects) -> Iterator[Block]:
    """Published figures beside ours."""
    if not measured.declaration.analysis.paper:
        return
    yield Heading("Published figures beside these")
    yield Paragraph(
        "Theirs are other models, recipes and items, most of them one run for each arm. They stand here for "
        "comparison and enter no number of this report."
    )
    yield tables.paper(measured)


def _figures(measured: SweepEffects) -> Iterator[Block]:
    """Two figures for each split benchmark and setup, on the primary outcome."""
    effects = measured.of(measured.primary)
    if not effects:
        return
    yield Heading("Effects at a glance")
    if measured.primary == LOGPROB:
        yield Paragraph(
            "Correctness isn't decided in this experiment, so the figures show the change in the gold answer's "
            "log-probability per token, in nats.",
            style="caution",
        )
    contexts: dict[tuple[str, str], list[Effect]] = {}
    for one in effects:
        contexts.setdefault((one.arm.split_benchmark, one.arm.setup), []).append(one)
    for index, ((split, setup), members) in enumerate(contexts.items(), start=1):
        of = f"{split}{f' ({setup})' if setup else ''}"
        dose = (
            f"{of}: change from the clean arm against the dose. Small dots are seeds, whiskers 95 % t intervals over "
            "seeds, a hollow mark has no interval, dotted lines are the fitted dose-response."
        )
        top = highest_doses(members)
        doses = {wording.rate(one.arm.rate) for one in top}
        at = "" if doses == {"–"} else f" at the highest dose ({doses.pop()} of rows)" if len(doses) == 1 else None
        own = ", each arm at its own highest dose"
        roles = (
            f"{of}: change from the clean arm{own if at is None else at}. Small dots are seeds, whiskers 95 % t "
            "intervals over seeds, the line at 0 is the clean arm (its accuracy over all items stands above), the band "
            f"the equivalence margin. {_sizes(top)}"
        )
        suffix = "" if len(contexts) == 1 else f"_{index}"
        name = f"dose{suffix}", f"roles{suffix}"
        margin = measured.margins.get(measured.primary)
        yield Figure(figures.signature_figure(members, measured.baselines, name[1], margin), f"figure_{name[1]}", roles)
        if len({(one.arm.rate, one.arm.copies_setting) for one in members}) > 1:
            yield Figure(figures.dose_response_figure(members, name[0], measured.lines), f"figure_{name[0]}", dose)


def _sizes(effects: Sequence[Effect]) -> str:
    """Seeds, and for each role items, chance, parse rate and the median smallest detectable effect."""
    unit = wording.unit_of(effects[0].outcome)
    parts = []
    for role, name in dict.fromkeys((one.role, one.benchmark) for one in effects):
        members = [one for one in effects if (one.role, one.benchmark) == (role, name)]
        items = sorted({one.n_items for one in members})
        text = f"{wording.ROLE_NAMES[role]} {name}: {items[0]}{f'–{items[-1]}' if len(items) > 1 else ''} items"
        if unit.outcome == ACCURACY:
            parsed = sorted(one.parse_rate for one in members if not math.isnan(one.parse_rate))
            if not math.isnan(members[0].chance):
                text += f", chance {wording.percent(members[0].chance)} %"
            if parsed:
                low, high = wording.percent(parsed[0]), wording.percent(parsed[-1])
                text += f", parsed {_span(low, high)} %"
        known = sorted(one.estimate.detectable for one in members if not math.isnan(one.estimate.detectable))
        if known:
            low, high = wording.number(known[0], unit), wording.number(known[-1], unit)
            text += f", detectable {_span(low, high)} {unit.noun}"
        parts.append(text)
    return f"{wording.seed_range(effects)}; {'; '.join(parts)}."


def _span(low: str, high: str) -> str:
    """The range of two written numbers; one where they read alike."""
    return low if low == high else f"{low} to {high}"


def _incomplete(measured: SweepEffects) -> Iterator[Block]:
    """How many cells are done, and what is missing with the remedy."""
    cells = measured.cells
    states = [one.state for one in cells.unfinished]
    failed = states.count("failed")
    yield Heading("Cells")
    if total := len(cells.record["cells"]):
        yield Paragraph(
            f"{len(cells.done)} of {total} cells done, {failed} failed, {len(states) - failed} not run to their end. "
            f"Done cells without a clean baseline: {len(cells.missing)}."
        )
    else:
        yield Paragraph(f"{len(cells.done)} runs in the table. Without a baseline: {len(cells.missing)}.")
    if cells.unfinished:
        yield tables.unfinished(measured)
        yield Paragraph("Launching the same command again runs these and leaves done cells alone.")
    if cells.missing:
        yield Heading("Contrasts that are missing", 3)
        yield tables.missing(measured)


def _tables(measured: SweepEffects) -> Iterator[Block]:
    """Pass@k, the other outcomes folded away, and what the sandbox decided."""
    primary = measured.primary
    if any(is_pass_at_k(one.outcome) for one in measured.effects):
        yield Heading("Accuracy and pass@k")
        yield Paragraph(
            "Pass@k is the unbiased estimate (Chen et al. 2021) of the chance that one of k samples is correct. It "
            "is averaged within and over families like the accuracy, and paired with the clean arm in the same way."
        )
        yield tables.pass_at_k(measured)
    for other in measured.outcomes:
        if other != primary:
            name = wording.unit_of(other).outcome
            yield Folded(f"Further outcome: {name}", list(_outcome_tables(measured, other)))
    if measured.verdicts:
        yield Heading("What the sandbox decided")
        yield Paragraph(
            "Shares of the programs that were run; outputs without a program were not run and are wrong. A timeout is "
            "wrong too: many in one arm only point to a loaded machine. A sandbox error is neither right nor wrong."
        )
        yield tables.verdicts(measured)
    yield from _mixtures(measured)


def _doses(measured: SweepEffects) -> Iterator[Block]:
    """Dose-response lines over arms."""
    if measured.lines:
        yield Heading("Dose-response")
        yield Paragraph(
            "A line for each seed: logit of accuracy on the logarithm of dose. The dose for a gain is where the line "
            "crosses the clean arm's accuracy plus that gain; it is told only where every seed's line rises."
        )
        yield tables.dose_response(measured)


def _mixtures(measured: SweepEffects) -> Iterator[Block]:
    """Dose and matching, doses within a model, detectability and similarity."""
    for outcome in dict.fromkeys(one.outcome for one in measured.doses):
        yield Heading(f"Dose within one model: {wording.unit_of(outcome).outcome}")
        yield Paragraph(
            "Seen items of the ladder arm by their number of rows in the mixture, against the same items in the clean "
            "arm. Items with 0 copies are in the seen half and have no row of their own."
        )
        yield tables.doses(measured, outcome)
    if any(pair.treated.metrics.get("matching") for pair in measured.cells.pairs):
        yield Heading("Dose and matching")
        yield Paragraph(
            "Exposures are copies times epochs. Token differences are shares of the whole mixture's tokens: against "
            "exact duplicates in the same slots, which every arm is matched to, and against the clean rows that stood "
            "there. Values that differ between seeds stand beside each other."
        )
        yield tables.matching(measured)
    if measured.detected:
        yield Heading("What a standard filter would have found")
        yield Paragraph(
            "Inserted rows that decontamination against this benchmark would have removed, by filter; in the clean "
            "arm, clean rows. docs/conditions.md defines the filters."
        )
        yield tables.detection(measured)
    if measured.similarities:
        yield Heading("Similarity to the items")
        yield Paragraph(
            "Cosine between each inserted row and the item that it stands for. The overlap coefficient says how far "
            "the distribution of an arm is that of the SemDs: 1 is the same, 0 disjoint. A topical arm with a small "
            "overlap is less similar to the items than the SemDs are, and cannot tell similarity from duplication."
        )
        yield tables.similarity(measured)


def _outcome_tables(measured: SweepEffects, outcome: str) -> Iterator[Block]:
    name = wording.unit_of(outcome).outcome
    if measured.of(outcome):
        yield Heading(f"Effects on {name}")
        yield Paragraph(_NOT_SHOWN + _of_declared(measured, outcome))
        yield tables.effects(measured, outcome)
    if any(one.outcome == outcome for one in measured.contrasts):
        yield Heading(f"Differences between roles in the effect on {name}")
        yield tables.contrasts(measured, outcome)
    if any(one.outcome == outcome for one in measured.baselines):
        yield Heading(f"Clean arm: {name}")
        yield tables.baselines(measured, outcome)
    if measured.of(outcome):
        yield Folded(f"All three intervals of every effect on {name}", [tables.intervals(measured, outcome)])
    if any(one.outcome == outcome for one in measured.accuracies):
        yield Folded(f"Every run's own {name}", [tables.accuracies(measured, outcome)])


def _of_declared(measured: SweepEffects, outcome: str) -> str:
    """How many of an outcome's effects were declared, and what is to be expected of the others."""
    members = [one for one in measured.of(outcome) if one.role != GENERAL]
    declared = sum(not math.isnan(one.holm) for one in members)
    if not measured.declared or declared == len(members):
        return ""
    return (
        f" Of {len(members)} effects {declared} were declared to be tested for a change. The others are not adjusted "
        "for their number: where nothing has an effect, about one interval in 20 excludes 0."
    )


def _how_to_read(measured: SweepEffects) -> list[str]:
    margin = f"{100 * measured.margin:g}"
    outside = measured.cells.from_table
    same = (
        "run of the same seed, on the same items; how these were trained is not known here"
        if outside
        else "with the same seeds, clean rows, order and steps, on the same items"
    )
    of_outside = "'s" if outside else ""
    return [
        f"Each effect is an arm minus the clean arm{of_outside} {same}. Samples are averaged within an "
        "item, items within a family, families within a seed.",
        "The interval is a 95 % t interval over the seeds' paired differences. It covers what a new seed would change "
        "(split, mixture, training, sampling) for this model, recipe and benchmark; it doesn't cover another model, "
        "recipe or benchmark. Fewer than about five seeds make it wide and the spread itself uncertain.",
        "Seen items are the covered ones only: those with rows in the arm's mixture, on both sides. "
        "The clean arm's table is over all seen items.",
        "p comes from the one-sample t test over seeds; p (Holm) is adjusted over the declared contrasts, and stands "
        "with those only. Where none were declared it is adjusted over all effects on seen, held-out and related items "
        "in its table; general benchmarks are controls and stand outside.",
        "Detectable is the smallest true effect that these seeds find with 80 % power at their own spread "
        "(two-sided 5 %).",
        f"'Within ±{margin} points' is the only claim of no effect here: two one-sided t tests (TOST, 5 %) against the "
        f"margin of {margin} points. It is withheld where the clean arm is within the margin of chance or of the "
        "ceiling, since such a benchmark could hardly show a change.",
        "Seen − held-out (difference in differences) is what memorizing the seen items adds; held-out − related (gap) "
        "is shallow generalization: gain on this benchmark that doesn't reach its relatives.",
        *(
            [
                "Partial accuracy is the mean share of an answer that is right"
                + ("." if measured.cells.from_table else " (ZebraLogic: of its cells), 0 for an unparsable one.")
            ]
            if PARTIAL in measured.outcomes
            else []
        ),
        "Whether an unparsable output is wrong or left out is what the table says."
        if measured.cells.from_table
        else "An unparsable output is wrong and counted as unparsable: compare the parse rates before comparing "
        "accuracies.",
    ]


def _provenance(measured: SweepEffects) -> Iterator[Block]:
    """The command, revision, versions and settings that the numbers came from."""
    record, done = measured.cells.record, measured.cells.done
    yield Heading("What was run")
    if differences := engine_differences(measured.cells.pairs):
        yield Paragraph("Compared cells were not evaluated alike, which moves scores by itself:", style="caution")
        yield Bullets(differences, style="caution")
    yield Code(record.get("command") or "(the command was not recorded)")
    if "revision" in record:
        yield Paragraph(f"Git revision: {record['revision'] or 'not recorded'}. Launched {record.get('time', '–')}.")
    environment = dict(_flat(next((found for one in done if (found := environment_of(one.cell))), {}), ""))
    if environment:
        versions = {key.rsplit(".", 1)[-1]: value for key, value in environment.items()}
        yield Paragraph(f"Versions: {', '.join(f'{key} {versions[key]}' for key in _PACKAGES if key in versions)}.")
        yield Folded(
            "Environment of a cell", [Code("\n".join(f"{key}: {value}" for key, value in environment.items()))]
        )
    if done and (done[0].cell.folder / "config.yaml").is_file():
        settings = (done[0].cell.folder / "config.yaml").read_text(encoding="utf-8")
        yield Folded(f"Resolved settings of cell {done[0].cell.id} ({done[0].arm.condition})", [Code(settings)])
        ids = "\n".join(
            f"{one.cell.id}  seed {one.config.seed}  {wording.rate(one.arm.rate):>6}  {wording.condition_name(one.arm)}"
            for one in done
        )
        yield Folded(f"The {len(done)} done cells", [Code(ids)])


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, str(value)


_NOT_SHOWN = (
    "An effect whose interval includes 0 is reported as not shown, with its interval: the data allow every value in "
    "it. That isn't evidence of no effect; only the equivalence test is."
)
