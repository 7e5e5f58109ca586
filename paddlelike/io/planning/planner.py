"""The planner of a load: compares every header with the program and applies the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddlelike.core import VarType, global_scope
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Parameter, Variable
from paddlelike.framework.hints import (
    Named,
    explain_no_value,
    explain_renumbering,
    explain_repetition,
)
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Contents, Held, Unreadable
from paddlelike.io.planning.load_plan import (
    PROBLEMS,
    Fill,
    LoadPlan,
    Row,
    Step,
    explain_misfit,
    get_facts,
)
from paddlelike.io.planning.proposals import Proposal, propose
from paddlelike.io.planning.recipe import Misfit, Recipe, infer_facts
from paddlelike.io.rules.rule import Init, Rename, Skip, find_sources, get_matcher, match_targets
from paddlelike.io.rules.rules import Rules, find_idle


def make_plan(
    contents: Contents,
    variables: Sequence[Variable],
    rules: Rules,
    *,
    strict: bool,
    find: Callable[[str], Variable | None],
) -> LoadPlan:
    """Return the plan of loading ``variables`` from ``contents`` by ``rules``.

    ``find`` returns a variable of the program by its name, even one that is not loaded.
    """
    return _Planner(contents, variables, rules, find).plan(strict)


class _Planner:
    """Goes through the variables once and collects rows, steps and fills."""

    def __init__(
        self,
        contents: Contents,
        variables: Sequence[Variable],
        rules: Rules,
        find: Callable[[str], Variable | None],
    ) -> None:
        self.contents = contents
        self.variables = {variable.name: variable for variable in variables}
        self.find = find
        self.rules = rules
        self.skips = [get_matcher(rule.pattern) for rule in rules if isinstance(rule, Skip)]
        self.inits = [(get_matcher(rule.pattern), rule.value) for rule in rules if isinstance(rule, Init)]
        self.ordered = [rule for rule in rules if not isinstance(rule, Init)]
        self.rows: list[Row] = []
        self.steps: list[Step] = []
        self.fills: list[Fill] = []
        self.used: set[str] = set()
        self.moved: dict[str, str] = {}  # files that rules assign to a variable
        self.skipped_files: set[str] = set()

    def plan(self, strict: bool) -> LoadPlan:
        recipes = self._make_recipes() if self.ordered else {}
        look, plain = self.contents.look, not (self.ordered or self.inits)
        for variable in self.variables.values():
            if plain:  # a fast path for thousands of variables that fit
                found = look(variable.name, variable.type)
                if type(found) is Held:
                    header = found.header
                    if header.dtype is variable.dtype and header.shape == variable.shape:
                        self.steps.append(Step(variable, (found,)))
                        continue
            self._decide(variable, recipes.get(variable.name), strict)
        self.used.update([step.held[0].name for step in self.steps])
        unused = self._find_unused()
        proposals, hint = self._diagnose(unused)
        others = (*self.rows, *(Row(None, name, "not requested") for name in unused))
        steps, fills = tuple(self.steps), tuple(self.fills)
        notes = (
            ()
            if plain and not self.skips
            else tuple(find_idle(self.rules, self.contents.names(), list(self.variables)))
        )
        return LoadPlan(self.contents.where, others, strict, proposals, hint, steps, fills, notes)

    # Recipes, from the rules

    def _make_recipes(self) -> dict[str, Recipe]:
        """Return the recipes of the variables that rules apply to."""
        found: dict[str, Recipe] = {}
        hit: set[int] = set()
        names = self.contents.names()
        for name in names:
            for index, rule in enumerate(self.ordered):
                if isinstance(rule, Skip):
                    if get_matcher(rule.pattern)(name):
                        self.skipped_files.add(name)
                        break
                    continue
                targets = match_targets(rule, name)
                if targets:
                    hit.add(index)
                    self._apply(rule, name, targets, found)
                    break
        self._check_exact(hit, set(names))
        return found

    def _apply(self, rule: Rename, name: str, targets: list[str], found: dict[str, Recipe]) -> None:
        files = tuple(find_sources(rule, name))
        start, whole = 0, 0
        if rule.split is not None:
            whole = sum(self._get_length(target, rule.split) for target in targets)
        for target in targets:
            variable = self.find(target)
            if variable is None:
                if target in rule.targets:  # the rule names it in full
                    near = suggest_names(target, list(self.variables), lead="; ")
                    self._add_bad_rule(target, name, f"the program has no such variable{near}")
                continue
            part = None
            if rule.split is not None:
                part = start, start + self._get_length(target, rule.split)
                start = part[1]
            self.used.update(files)
            self.moved.update(dict.fromkeys(files, target))
            if target in found:
                both = f"{' + '.join(found[target].files)} and {' + '.join(files)}"
                self._add_bad_rule(target, name, f"two rules set it, from the files {both}")
                continue
            found[target] = Recipe(files, rule, part, whole)

    def _get_length(self, target: str, axis: int) -> int:
        variable = self.find(target)
        return variable.shape[axis] if variable is not None and 0 <= axis < len(variable.shape) else 0

    def _check_exact(self, hit: set[int], names: set[str]) -> None:
        """Add a problem for every file that a rule names in full and that does not exist."""
        for index, rule in enumerate(self.ordered):
            if not isinstance(rule, Rename) or index in hit:
                continue
            source = rule.sources[0]
            if (
                not source.startswith("re:")
                and "*" not in source
                and "?" not in source
                and source not in names
            ):
                near = suggest_names(source, sorted(names), lead="; ")
                self._add_bad_rule(
                    ", ".join(rule.targets),
                    source,
                    f"a rule names the file {source}, which does not exist{near}",
                )

    def _find_init(self, name: str) -> str | float | None:
        return next((value for matches, value in self.inits if matches(name)), None)

    # The outcome for a variable

    def _decide(self, variable: Variable, recipe: Recipe | None, strict: bool) -> None:
        name = variable.name
        if self.skips and any(matches(name) for matches in self.skips):
            self.rows.append(Row(name, None, "skip", get_facts(variable)))
            return
        files = (name,) if recipe is None else recipe.files
        held: list[Held] = []
        for file in files:
            found = self._look(file, variable, recipe)
            if isinstance(found, Row):
                self._add_unloaded(variable, found, strict)
                return
            held.append(found)
            self.used.add(found.name)
        init = self._find_init(name) if self.inits else None
        base = "keep" if init is None else init
        problem = self._find_problem(variable, held, recipe, base)
        if problem is None:
            self.steps.append(Step(variable, tuple(held), recipe, base))
            return
        has = held[0].header.dtype, held[0].header.shape
        self._add_unloaded(
            variable, Row(name, " + ".join(files), "does not fit", get_facts(variable), has, problem), strict
        )

    def _look(self, file: str, variable: Variable, recipe: Recipe | None) -> Held | Row:
        """Return the header of a variable's file, or the row that describes its problem."""
        found: Held | Unreadable | None = None
        if file not in self.skipped_files and (recipe is not None or file not in self.moved):
            found = self.contents.look(file, variable.type)
        if isinstance(found, Held):
            return found
        if isinstance(found, Unreadable) and found.is_missing:
            return Row(variable.name, found.name, "missing", get_facts(variable), None, found.what)
        if isinstance(found, Unreadable):
            self.used.add(found.name)
            wants = get_facts(variable)
            return Row(variable.name, file, "does not fit", wants, None, found.what, found.hint)
        if isinstance(self.contents, FileContents):
            why = "the file has no such variable" if recipe is None else f"the file has no {file}"
        else:
            why = "there is no such file" if recipe is None else f"no such file: {file}"
        if recipe is None and file in self.moved:
            why = f"a rule gives the file of that name to {self.moved[file]}"
        return Row(variable.name, None, "missing", get_facts(variable), None, why)

    def _find_problem(
        self, variable: Variable, held: list[Held], recipe: Recipe | None, base: str | float
    ) -> str | None:
        """Return why a value does not fit a variable, or None if it fits."""
        if recipe is None:
            return explain_misfit(variable, held[0].header.dtype, held[0].header.shape)
        if recipe.changes and variable.type == VarType.SELECTED_ROWS:
            return "SelectedRows are loaded as they are: no rule can change them"
        try:
            found = infer_facts(recipe, [(one.header.dtype, one.header.shape) for one in held], variable)
        except Misfit as misfit:
            return str(misfit)
        problem = explain_misfit(variable, *found)
        if problem is None and recipe.rule is not None and recipe.rule.overlap and base == "keep":
            return _explain_no_base(variable)
        return problem

    def _add_unloaded(self, variable: Variable, row: Row, strict: bool) -> None:
        """Add the row of a variable that is not loaded: a problem, or its initial value."""
        init = self._find_init(variable.name)
        if init is not None and (row.what == "missing" or not strict):
            row = self._fill(variable, init, row)
        self.rows.append(row)

    def _fill(self, variable: Variable, init: str | float, row: Row) -> Row:
        wants = row.wants
        if init == "keep":
            return Row(variable.name, row.file, "keep", wants, row.has, row.why)
        if -1 in variable.shape or variable.type != VarType.LOD_TENSOR:
            why = f"{row.why}; {variable.type.name}{list(variable.shape)} is not initialised by a number"
            return Row(variable.name, row.file, "does not fit", wants, row.has, why)
        value = 0.0 if init == "zero" else float(init)
        self.fills.append(Fill(variable, value))
        return Row(variable.name, row.file, "init", wants, row.has, f"{init}; {row.why}")

    def _add_bad_rule(self, variable: str, file: str, why: str) -> None:
        self.rows.append(Row(variable, file, "bad rule", None, None, why))

    # Unused files and hints

    def _find_unused(self) -> list[str]:
        unused = [name for name in self.contents.names() if name not in self.used]
        return [
            name
            for name in unused
            if name not in self.skipped_files and not any(matches(name) for matches in self.skips)
        ]

    def _diagnose(self, unused: list[str]) -> tuple[tuple[Proposal, ...], str | None]:
        problems = [row for row in self.rows if row.what in PROBLEMS]
        missing = [row.variable for row in problems if row.what == "missing" and row.variable is not None]
        if not problems:
            return (), None
        proposals: tuple[Proposal, ...] = ()
        if missing and unused:
            files = [self.contents.look(name, VarType.LOD_TENSOR) for name in unused]
            named = [Named(f.name, f.header.dtype, f.header.shape) for f in files if isinstance(f, Held)]
            wanted = [self._name(one) for one in missing]
            proposals = tuple(propose(wanted, named, self._fits))
        fitting = [self._name(step.variable.name) for step in self.steps]
        hint = (
            explain_repetition([self._name(one) for one in missing], fitting)
            or explain_renumbering(missing, unused)
            or next((row.hint for row in problems if row.hint), None)
        )
        if hint is None and proposals:
            hint = (
                f"{len(proposals)} of them may have other names in the files: plan_load(...).rules() "
                "proposes them; pass these as rules="
            )
        return proposals, hint or self._suggest(len(missing) == len(problems))

    def _name(self, name: str) -> Named:
        variable = self.variables[name]
        return Named(name, variable.dtype, tuple(variable.shape))

    def _suggest(self, all_missing: bool) -> str:
        """Return a next step for problems without their own hints."""
        refused = [self.variables.get(row.variable or "") for row in self.rows if row.what in PROBLEMS]
        fits = [step.variable for step in self.steps]
        if not self.contents.names() and all_missing:
            return f"there are no files of variables in {self.contents.where}: check the path"
        if any(isinstance(one, Parameter) for one in fits) and not any(
            isinstance(one, Parameter) for one in refused
        ):
            return (
                "the parameters fit; the other variables belong to the optimizer: another optimizer saved "
                "these files. load_params loads the parameters alone"
            )
        return _suggest(all_missing)

    def _fits(self, variable: Named, file: Named) -> bool:
        return explain_misfit(self.variables[variable.name], file.dtype, file.shape) is None


def _explain_no_base(variable: Variable) -> str | None:
    """Return why an overlap cannot be copied into an existing value, or None if it can."""
    holder = global_scope().find_var(variable.name)
    if holder is None or not holder.is_initialized():
        advice = explain_no_value([variable.name], variable.block.program)
        return f"it has no value for the elements outside of the overlap: pass init=, or {advice}"
    shape = tuple(holder.value.held_array.shape)
    if shape != tuple(variable.shape):
        return f"its value has shape {list(shape)}, the program declares {list(variable.shape)}"
    return None


def _suggest(all_missing: bool) -> str:
    if all_missing:
        return (
            "the program must be the network that was saved, with the same names; strict=False loads the "
            "variables that fit, vars= only some"
        )
    return (
        "the program must be the network that saved these files (strict=False loads the variables that fit); "
        "nothing in the scope was changed"
    )
