"""Hints for mistakes that several functions can meet: the cause, how to recognize it, and the advice.

Every function that loads, saves, runs or exports takes its hint from here, so that the same mistake gets the
same advice everywhere. Tests follow each hint (``tests/hints``) and check the result, since wrong advice can
end in wrong weights.

====================  =======================================================  ===========================
cause                 recognized by                                            advice
====================  =======================================================  ===========================
built twice           names differ only in counters, values also not in shape  ``unique_name.guard``
built in one program  the program holds the saved network and whole copies     new programs, and the guard
shifted names         some names fit, and the layers' numbers are shifted      ``unique_name.guard``
a layer more          by its shape, it can be any of the saved ones            ``rename=``, or names
another scope         its startup program was run in another scope             ``scope_guard``
added afterwards      other variables of the startup program have values       build first, then run it
startup not run       its startup program sets them                            run that startup program
set by nothing        no known startup program sets them                       load values
no batch axis         an array has the shape of one sample                     ``array[None]``
channels elsewhere    the channels are the last axis, or the second            ``transpose``
errors of Python      the error and the user's line, see ``_MISTAKES``         each its own
====================  =======================================================  ===========================
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from paddlelike.core import LoDTensor, Scope, VarType, global_scope
from paddlelike.framework.graph.guards import default_startup_program
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable

_GUARD: Final = (
    "build each copy under `with fluid.unique_name.guard():`, so that it gets the same names, or build it "
    "once in this process"
)
LAYER: Final = re.compile(r"^(.*?)_(\d+)\.([wb]_\d+)$")
Shape = tuple[int, ...]


class Named(NamedTuple):
    """A name, with the element type and shape of its value."""

    name: str
    dtype: VarType
    shape: tuple[int, ...]


def mask_numbers(name: str) -> str:
    """Return the name with ``#`` in place of every counter that Fluid puts into names.

    >>> mask_numbers("conv2d_12.w_0_velocity_0")
    'conv2d_#.w_#_velocity_#'
    """
    return re.sub(r"_\d+(?=\.|_|$)", "_#", name)


def explain_repetition(missing: Sequence[Named], fitting: Sequence[Named]) -> str | None:
    """Return a hint if a program holds several complete copies of the saved network, else None.

    A network with one layer more than the saved one is not a copy: some variables lack a counterpart, or have
    other shapes. The copies may lack an optimizer and its state.
    """
    absent, there = (Counter((mask_numbers(n.name), n.shape) for n in some) for some in (missing, fitting))
    counted = {key for key in there if "#" in key[0]}
    of_layers = {key for key in counted if re.search(r"\.[wb]_#$", key[0])}
    times = {absent[key] / there[key] for key in (counted if absent.keys() - of_layers else of_layers)}
    if not absent or absent.keys() - counted or len(times) != 1 or not times.pop().is_integer():
        return None
    first = missing[0].name
    return (
        f"the program holds the network more than once: {first!r} beside "
        f"{_find_alike(first, [one.name for one in fitting])[0]!r}, as when a cell of a notebook is run "
        "again. Build it under `with fluid.program_guard(fluid.Program(), fluid.Program()), "
        "fluid.unique_name.guard():`, so that every run gives the same names"
    )


def explain_renumbering(missing: Sequence[str], unexpected: Sequence[str]) -> str | None:
    """Return a hint if names in files and in a program differ only in their counters, else None.

    >>> "unique_name.guard" in (explain_renumbering(["fc_1.w_0"], ["fc_0.w_0"]) or "")
    True
    >>> explain_renumbering(["fc_1.w_0"], ["conv2d_0.w_0"])
    """
    if not missing or not unexpected:
        return None
    have = {mask_numbers(name) for name in unexpected}
    if not all(mask_numbers(name) in have for name in missing):
        return None
    first = _find_alike(missing[0], unexpected)[0]
    return (
        f"the names differ only in their numbers (the program needs {missing[0]!r}, the files have "
        f"{first!r}): the network was probably built twice in this process; {_GUARD} (or map the names: "
        "plan_load(...).rules() proposes rules for rules=)"
    )


def explain_shift(
    ours: Mapping[str, Shape], theirs: Mapping[str, Shape], loaded: Iterable[str]
) -> str | None:
    """Return a warning if layers would probably get the values of their neighbours, else None.

    This is likely if the numbers of one kind of layer are shifted (the program has layers 1 to 4, the files 0
    to 3, or 0 to 5 with the same shapes), or if the program has one more layer of the same shape.

    Parameters
    ----------
    ours, theirs
        The shapes of the program's parameters, and of the files.
    loaded
        The names that are in both and are loaded.

    >>> of = lambda *numbers: {f"fc_{number}.w_0": (4, 4) for number in numbers}
    >>> explain_shift(of(1, 2), of(0, 1), of(1))[:52]
    "the layers 'fc' have other numbers: the program has "
    >>> explain_shift(of(0, 1, 2), of(0, 1), of(0, 1))[:50]
    "the program has 3 layers 'fc', the files have 2. I"
    """
    known, held, both = (
        _collect_layers(ours),
        _collect_layers(theirs),
        _collect_layers(dict.fromkeys(loaded, ())),
    )
    for kind in known.keys() & held.keys() & both.keys():
        here, there = (dict(sorted(layers[kind].items())) for layers in (known, held))
        if min(here) != min(there):
            pairs = zip(here.values(), there.values(), strict=False)
            if len(here) == len(there) or all(one == other for one, other in pairs):
                return (
                    f"the layers {kind!r} have other numbers: the program has {_list_layers(kind, here)}, "
                    f"the files have {_list_layers(kind, there)}. Each layer of the program probably gets "
                    f"the values of its neighbor: {_GUARD}"
                )
        elif len(here) > len(there):
            pairs = zip(reversed(here.values()), reversed(there.values()), strict=False)
            if all(one == other for one, other in pairs):
                return (
                    f"the program has {len(here)} layers {kind!r}, the files have {len(there)}. If the new "
                    "one is not the last, those behind it get the values of their neighbors: map the names "
                    "with rename=, or give the layers names"
                )
    return None


def _collect_layers(shapes: Mapping[str, Shape]) -> dict[str, dict[int, dict[str, Shape]]]:
    """Return the shapes of the parameters of each layer, by kind and number."""
    found: dict[str, dict[int, dict[str, Shape]]] = {}
    for name, shape in shapes.items():
        layer = LAYER.match(name)
        if layer is not None:
            found.setdefault(layer[1], {}).setdefault(int(layer[2]), {})[layer[3]] = shape
    return found


def _list_layers(kind: str, numbers: Collection[int]) -> str:
    return f"{kind}_{min(numbers)} to {kind}_{max(numbers)}"


def explain_missing_axis(variable: Variable, shape: tuple[int, ...]) -> str | None:
    """Return a hint if an array lacks the batch axis, or has its channels on another axis; else None."""
    want = variable.shape
    rest = want[1:]
    fits = len(rest) == len(shape) and all(w in (-1, h) for w, h in zip(rest, shape, strict=True))
    if want[:1] == (-1,) and fits:
        return (
            f"the array has no batch axis: feed {{{variable.name!r}: array[None]}}, a batch of one sample of "
            f"shape {[1, *shape]}"
        )
    count = len(shape)
    for order in ((0, *range(2, count), 1), (0, count - 1, *range(1, count - 1))) if count > 2 else ():
        if len(want) == count and all(w in (-1, shape[axis]) for w, axis in zip(want, order, strict=True)):
            return f"its axes are in another order: array.transpose{order}"
    if len(want) == len(shape) + 1 and want[:1] == (-1,):
        return f"feed a batch, whose first axis counts the samples; it declares {describe_shape(want)}"
    return None


def describe_shape(shape: Sequence[int]) -> str:
    """Return a shape as scripts write it, with None for any size."""
    return f"[{', '.join('None' if dim == -1 else str(dim) for dim in shape)}]"


def find_empty(names: Iterable[str], scope: Scope) -> list[str]:
    """Return the names whose variables have no value in a scope or its parents."""
    holders = ((name, scope.find_var(name)) for name in names)
    return [name for name, holder in holders if holder is None or not holder.is_initialized()]


def explain_no_value(names: Sequence[str], program: Program | None = None, scope: Scope | None = None) -> str:
    """Return the next step for persistable variables that hold no value in a scope.

    Parameters
    ----------
    names
        The variables.
    program
        The program that has them, or None if it is not known.
    scope
        The scope that should hold the values; None for the global scope.

    >>> explain_no_value(["w"], Program(), Scope())
    "load its value; no startup program that is known sets 'w'"
    """
    scope = global_scope() if scope is None else scope
    known = {} if program is None else {variable.name: variable for variable in program.list_vars()}
    alike = _find_copy([known[name] for name in names if name in known], known.keys(), scope)
    if alike is not None:
        return (
            f"the scope has {alike!r} in place of {names[0]!r}: if this is a copy of a network that was "
            f"trained, {_GUARD}, or take main_program.clone(for_test=True). Its startup program would give "
            "the copy random values. If it is another network, run its own startup program"
        )
    startup, call = _find_startup(names, program)
    if startup is None:
        return f"load its value; no startup program that is known sets {names[0]!r}"
    other = None if startup._started is None else startup._started()
    if other is not None and other is not scope and not find_empty(names, other):
        return (
            "its startup program was run in another scope: enter it by `with fluid.scope_guard(scope):`, "
            "or pass scope= to Executor.run, as when the startup program was run"
        )
    written = [name for op in startup.global_block().ops for name in op.output_arg_names]
    others = [name for name in written if name in known and name not in names]
    if others and len(find_empty(others, scope)) < len(others):
        return (
            f"{names[0]!r} was added after the startup program was run, or the load does not cover it: build "
            "everything, minimize included, before the startup program runs. Run again, it gives all "
            "variables new values: load or set those that are to be kept afterwards"
        )
    return f"run the startup program first (exe.run({call}), or load the values"


def _find_copy(missing: Sequence[Variable], own: Collection[str], scope: Scope) -> str | None:
    """Return the name in the scope that corresponds to the first variable if all variables have one, else
    None.

    A counterpart has the same shape, and a name that differs only in counters. The program's ``own``
    variables do not count.
    """
    held: dict[tuple[str, tuple[int, ...]], str] = {}
    for name in _list_names(scope):
        shape = None if name in own else _find_shape(scope, name)
        if shape is not None:
            held[mask_numbers(name), shape] = name
    keys = [(mask_numbers(one.name), tuple(one.shape)) for one in missing]
    return held[keys[0]] if keys and all(key in held for key in keys) else None


def _list_names(scope: Scope) -> list[str]:
    """Return the names of a scope and of its parents."""
    names: list[str] = []
    current: Scope | None = scope
    while current is not None:
        names += current.local_var_names()
        current = current.parent
    return names


def _find_shape(scope: Scope, name: str) -> tuple[int, ...] | None:
    """Return the shape of a variable's value in a scope, or None if it has none."""
    holder = scope.find_var(name)
    value = None if holder is None else holder.value
    held = value.held_array if isinstance(value, LoDTensor) else None
    return None if held is None else tuple(held.shape)


def _find_startup(names: Sequence[str], program: Program | None) -> tuple[Program | None, str]:
    """Return the startup program that sets the first of the variables, and how a script calls it."""
    default = default_startup_program()
    own = None if program is None else program._startup
    for startup in (default, own):
        if startup is not None and startup.global_block().has_var(names[0]):
            if startup is default:
                return startup, "fluid.default_startup_program())"
            return startup, "startup_program), the one of the program_guard it was built under"
    return None, ""


def _find_alike(name: str, others: Sequence[str]) -> list[str]:
    """Return the names that differ from ``name`` only in counters, in natural order."""
    masked = mask_numbers(name)
    return sorted((one for one in others if mask_numbers(one) == masked), key=make_natural_key)


def make_natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts conv2d_9 before conv2d_10."""
    parts = re.split(r"0*(\d+)", name)
    return [(len(part), part) if index % 2 else (0, part) for index, part in enumerate(parts)]


class Mistake(NamedTuple):
    """A cause of errors that Python raises in a user's line: its patterns and the advice.

    ``error`` and ``line`` are patterns of the error's text and of the line. ``find`` gets the name that
    ``line`` found, and its value; it returns the word for ``{}`` in the advice, or None for another cause.
    """

    error: str
    advice: str
    line: str = "^"
    find: Callable[[str, Any], str | None] = lambda name, value: name


def explain_python_error(text: str, line: str, find: Callable[[str], object]) -> Iterator[str]:
    """Yield the advice for an error that Python raised in a user's line.

    ``find`` returns the value of a dotted name in that line, or None.

    >>> list(explain_python_error("'Program' object is not callable", "main(x)", {}.get))
    ['run it: exe.run(program, feed={name: array}, fetch_list=[variable])']
    """
    for one in _MISTAKES:
        if re.match(one.error, text):
            names = [match[match.lastindex or 0] for match in re.finditer(one.line, line)]
            words = (one.find(name, find(name)) for name in names)
            yield from [one.advice.replace("{}", word) for word in words if word is not None][:1]


def _find_layer(name: str, value: object) -> str:
    known = getattr(sys.modules.get("paddlelike.layers"), "__all__", ())
    return f"fluid.layers.{name}" if name in known else "a function of fluid.layers"


def _find_function(name: str, value: object) -> str | None:
    ours = callable(value) and str(getattr(value, "__module__", "")).startswith("paddlelike.")
    return name if ours else None


def _find_results(name: str, value: object) -> str | None:
    arrays = isinstance(value, list) and value and type(value[0]).__module__ == "numpy"
    return name if arrays else None


def _find_class(path: str, value: object) -> str | None:
    room, _, name = path.rpartition(".")
    near = [one for one in getattr(value, "__all__", ()) if one.lower() == name.lower()]
    ours = getattr(value, "__name__", "").startswith("paddlelike")
    return (
        (f"{path} is a module; did you mean {room}.{near[0]}?" if near else f"{path} is a module; see dir()")
        if ours
        else None
    )


_MISTAKES: Final = (
    Mistake(
        r"'Executor' object has no attribute '(compile|fit|train_on_batch)'",
        "optimizer.minimize(loss) appends the training to the program; call exe.run(program, feed={...}, "
        "fetch_list=[loss]) for each batch",
    ),
    Mistake(
        "'Program' object has no attribute '(train|eval)'",
        "program.clone(for_test=True), taken before minimize, is the program to evaluate",
    ),
    Mistake(
        "'Program' object has no attribute '(save|load|state_dict|load_state_dict)'",
        "fluid.save(program, path) and fluid.load(program, path, exe) save and load its values",
    ),
    Mistake(
        "'Program' object is not callable",
        "run it: exe.run(program, feed={name: array}, fetch_list=[variable])",
    ),
    Mistake(
        ".*Program' object does not support the context manager protocol",
        "with fluid.program_guard(main_program, startup_program): layers are added to these programs",
    ),
    Mistake(
        "'Variable' object is not callable",
        "a variable gets its value when the program runs; feed data by its name",
    ),
    Mistake(
        r"unsupported operand type\(s\) for @: .*'Variable'",
        "layers.matmul(x, y) multiplies matrices",
    ),
    Mistake(
        "operand 'Variable' does not support ufuncs",
        "numpy computes with arrays, and a variable gets its value when the program runs: use {}, or fetch "
        "the variable and compute with the array",
        r"^(?:.*?\b(?:np|numpy)\.(\w+)\()?",
        _find_layer,
    ),
    Mistake(
        "'NoneType' object has no attribute 'get_tensor'",
        "find_var returned None: the scope has no such variable; scope.local_var_names() lists them",
    ),
    Mistake(
        r"'function' (object is not (an iterator|iterable)|has no len\(\))",
        "a reader is a function that returns an iterator: call it, for sample in reader():",
        r"\b[A-Za-z_][\w.]*",
        _find_function,
    ),
    Mistake(
        "'list' object has no attribute '(item|shape|dtype|mean|sum|max|astype)'",
        "Executor.run returns a list with a value for each fetch: (value,) = exe.run(...)",
        r"\b([A-Za-z_]\w*)\.",
        _find_results,
    ),
    Mistake(
        ".*values to unpack",
        "it returns three values: program, feed_names, fetch_vars = fluid.io.load_inference_model(...)",
        r"load_inference_model\(",
    ),
    Mistake(
        ".*unhashable type: 'list'",
        "a feed has names as keys; load_inference_model returns a list of them: feed={names[0]: array}",
        "feed",
    ),
    Mistake("'module' object is not callable$", "{}", r"\b(\w+(?:\.\w+)+)\(", _find_class),
    Mistake(
        r"No module named 'paddle(\.fluid)?'$",
        "import paddlelike as fluid; or run the script as it is: python -m paddlelike run SCRIPT.py",
    ),
    Mistake(
        r"data\(\) got an unexpected keyword argument 'append_batch_size'",
        "fluid.data takes the whole shape, [None, ...] with the batch axis; layers.data has "
        "append_batch_size",
    ),
)
