"""What updates each factor: the only place where a rule, the losses and the weights decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from .._common.arrays import Solver
from .majorizer import Rule
from .penalties import NONE, Penalties
from .relations import Relation
from .terms import Term

Update: TypeAlias = Literal["descent", "fill-in", "entries", "multiply"]

CURVED = ("descent", "fill-in")  # with curvatures instead of N

DEFAULT_TOL = 1e-4
RELAXATION = 0.9  # of multiplicative steps: more does not help, and 1 might not converge
_FIRST_STEP, _FIRST_STEP_BY_ENTRIES = 0.25, 0.5  # of the momentum
_MOST_FACE_STEPS = 16  # of conjugate gradients, before the last sweep
_SHARE_OF_STEPS = 1 / 3  # of the arithmetic of a product with the data
_NAMES = {
    "descent": "coordinate descent",
    "fill-in": "coordinate descent, filling in missing entries",
    "entries": "coordinate descent by entries",
    "multiply": "multiplicative steps",
}


@dataclass(frozen=True)
class Plan:
    """What updates the factors of a fit.

    Attributes
    ----------
    by_factor : mapping of str to str
        "descent": coordinate descent with curvatures; "fill-in": the same with one Gram matrix,
        for data whose missing entries are those of the model; "entries": coordinate descent on
        the loss itself, which reads the data entry by entry; "multiply": multiplicative steps.
    rule : {"mm", "mu"}
        Rule of multiplicative steps.
    relaxation : float
        From 0 to 1, how far these go beyond the minimum.
    momentum : float
        First step of the momentum (Ang and Gillis 2019); 0 without.
    positive : bool
        Whether extrapolated factors stay positive.
    face_steps : mapping of str to int
        Steps of conjugate gradients between sweeps of the descent, by factor.
    balances : bool
        Whether scales of components are balanced between checks.
    later : Plan, optional
        The plan after the first check of the objective.
    compiled : bool
        Whether a kernel makes the iterations between two checks, with the same bits.
    """

    by_factor: Mapping[str, Update]
    rule: Rule = "mm"
    relaxation: float = 0.0
    momentum: float = 0.0
    positive: bool = False
    face_steps: Mapping[str, int] = field(default_factory=dict)
    balances: bool = False
    later: Plan | None = None
    compiled: bool = False

    def __str__(self) -> str:
        parts = []
        for update, words in _NAMES.items():
            if names := [name for name, each in self.by_factor.items() if each == update]:
                if update == "multiply":
                    words += f" ({self.rule}{', over-relaxed' * (self.relaxation > 0)})"
                parts.append(f"{', '.join(names)}: {words}")
        if steps := [f"{count} for {name}" for name, count in self.face_steps.items() if count]:
            parts.append(f"conjugate gradients: {', '.join(steps)}")
        parts += ["momentum"] * (self.momentum > 0)
        parts += [] if self.later is None else [f"after the first check {self.later}"]
        return "; ".join(parts)


def plan(
    relations: Sequence[Relation],
    penalties: Mapping[str, Penalties],
    rule: Solver,
    tol: float = DEFAULT_TOL,
    *,
    rank: int = 1,
    whole: bool = True,
    fills: bool = True,
) -> Plan:
    """Return what updates the factors of these relations, which are `rank` columns wide.

    If other rows of the data are elsewhere, the problem is not `whole`: coordinate descent then
    needs one Gram matrix for all of them.  `fills`: whether missing entries may be filled in.
    """
    terms: dict[str, list[Term]] = {name: [] for r in relations for name in r.names}
    for relation in relations:
        for position, name in enumerate(relation.names):
            terms[name].append(relation.term.view(position))
    # Curvatures of single rows, and steps by entries, are only used for one data matrix.
    single = whole and len(relations) == 1 and relations[0].map is None
    entries = {
        name: single and _by_entries(of_factor[0], penalties.get(name, NONE))
        for name, of_factor in terms.items()
    }
    mapped = {name for r in relations if r.map is not None for name in r.names}
    curved = all(
        r.map is None
        and r.term.loss.quadratic
        and (r.term.gram or (fills and r.term.fills) or (single and r.term.form.lists_few))
        for r in relations
    )
    # Only without labels, where minima are equally good.
    alone = curved and sum(r.coefficient > 0 for r in relations) == 1

    def updates(descends: Mapping[str, bool]) -> dict[str, Update]:
        how: dict[bool, Update] = {True: "entries", False: "descent"}
        return {name: how[entries[name]] if descends[name] else "multiply" for name in terms}

    by_descent = Plan(
        updates(
            {
                name: entries[name] or (name not in mapped and all(_curved(t, whole) for t in each))
                for name, each in terms.items()
            }
        ),
        face_steps={name: _face_steps(each, rank) for name, each in terms.items()} if alone else {},
        balances=True,
    )
    if rule == "hals":
        return by_descent
    if rule != "auto":
        return Plan(updates(dict.fromkeys(terms, False)), rule)
    if curved:
        momentum = _FIRST_STEP if alone else 0.0
        filled = {name for r in relations if not r.term.gram and r.term.fills for name in r.names}
        found: dict[str, Update] = dict.fromkeys(terms, "descent")
        found |= dict.fromkeys(filled, "fill-in")
        return replace(by_descent, by_factor=found, momentum=momentum)
    later = None
    if tol < DEFAULT_TOL and all(entries.values()):
        later = replace(by_descent, momentum=_FIRST_STEP_BY_ENTRIES, positive=True)
    multiply = updates(dict.fromkeys(terms, False))
    return Plan(multiply, relaxation=RELAXATION, balances=True, later=later)


def is_compiled(
    found: Plan, relations: Sequence[Relation], penalties: Mapping[str, Penalties]
) -> bool:
    """Whether a kernel has the iterations of this plan: one matrix and its factors, all plain."""
    first = relations[0]
    if len(relations) > 1 or len(first.names) > 2 or first.map or first.coefficient != 1:
        return False
    terms = first.term, first.term.view(1)
    if any(penalties.values()) or not all(t.loss.compiled and t.entries.plain for t in terms):
        return False
    if "fill-in" in found.by_factor.values():
        covers = [t.form.cover for t in terms if t.form.marks_missing and not t.entries.sparse]
        return len(covers) == 2 and all(cover and cover.plain for cover in covers)
    return first.term.form.plain and "entries" not in found.by_factor.values()


def _by_entries(term: Term, penalties: Penalties) -> bool:
    """Whether coordinate descent may use the loss itself, entry by entry."""
    sparse = term.entries.sparse and not term.entries.by_factors
    return term.loss.descends and sparse and all(each.linear for each in penalties.listed)


def _curved(term: Term, whole: bool) -> bool:
    """Whether a term has a curvature: of each row, or one Gram matrix."""
    return term.loss.quadratic and (term.form.curved if whole else term.gram)


def _face_steps(terms: Sequence[Term], rank: int) -> int:
    """Return a number whose cost is a share of that of a product with the data."""
    lengths = sum(term.row_lengths[0] for term in terms if term.row_lengths)
    padded = -(-rank // 8) * 8  # as in the compiled kernels
    return min(int(_SHARE_OF_STEPS * lengths / padded), _MOST_FACE_STEPS)
