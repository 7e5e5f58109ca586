"""What is public says what it takes, which shapes, what it raises, and shows an example.

The examples themselves run as doctests. Public is what the pages of ``tutorials/reference`` list.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.foundation.docstrings import list_groups, read_entries

#: The 100 layers that the examples of Fluid's documentation and the chapters of its book use most.
MOST_USED_LAYERS = (Path(__file__).parent / "most_used_layers.txt").read_text().split()

CLASSES = ["Executor", "Program", "DistributeTranspiler", "DistributeTranspilerConfig", "optimizer.Optimizer"]

#: Where a page of the reference asks for the names of a module, or for some families and names of it.
MARK = re.compile(r"^<!-- public: fluid\.?(?P<module>[\w.]*)(?P<which>[\w ]*?) -->$", re.MULTILINE)
REFERENCE = Path(__file__).parents[2] / "tutorials" / "reference"

#: How a docstring speaks of shapes: in words, as (N, C), or in the example.
SHAPES = re.compile(r"shape|\bdims?\b|\brows?\b|\bscalar\b|\([A-Z],|\[N|\(-1|\[\[")

#: The name of an error in a sentence, or in the section *Raises*.
ERROR = r"(?:[A-Z]\w*(?:Error|NotMet|NotAligned)|Exception)"

#: The annotation of what has a shape.
ARRAY = re.compile(r"(Variable|Parameter|Array|LoDTensor|Tensor|Expression|np\.ndarray)\b")

#: Where a *Returns* speaks of a shape.
RETURNED_SHAPE = re.compile(
    r"shape|\([\w(\[.*]|\bdims?\b|LOD_TENSOR_ARRAY|SelectedRows|array|structure|``\w+``"
)

#: How what computes names its source: Paddle's operator, the paper, DyNet's function, the layer behind it.
SOURCE = re.compile(r"[Oo]perators?\b|\(``\w+``(?:, ``\w+``)*\)|(?:19|20)\d\d|Fluid|DyNet|:func:")
COMPUTES = re.compile(
    "(clip|collection|contrib.layers|dygraph|evaluator|initializer|layers|metrics|nets|optimizer|regularizer)[.]"
)

#: Texts of *Returns* that say no more than that something is returned.
FILLER = re.compile(
    r"(?:Returns? )?(?:the|an?) (?:results?|outputs?|value|variable|tensor)s?\.?", re.IGNORECASE
)

#: What exists to say that it is not here.
WITHOUT_EXAMPLE = {
    "optimizer.DGCMomentumOptimizer",
    "optimizer.Optimizer.clear_gradients",
    "optimizer.Optimizer.current_step_lr",
    "optimizer.Optimizer.set_dict",
    "optimizer.Optimizer.state_dict",
    "optimizer.PipelineOptimizer",
}

#: Public functions that take or return Any: who writes the script decides, or what is in a file.
TAKES_ANYTHING = (
    r"(fluid\.)?layers\.(RNNCell|Decoder|DecodeHelper)\..*",  # the states of one's own cell
    r"(fluid\.)?layers\.(DynamicRNN|StaticRNN)\.__call__",  # one variable or several
    r"(fluid\.)?layer_helper\.LayerHelper\.create_parameter",  # None without a parameter
    r"(Tensor|LoDTensor)\.(adopt_from_device|keep_on_device|find_on_device)",  # an array of JAX
    r"(fluid\.)?dygraph\.(Layer|LayerList|ParameterList|Sequential)\..*",  # what one's own layer takes
    r"(fluid\.)?framework\.Operator\.attr",
    r"(fluid\.)?framework\.Parameter\.__init__",  # a regularizer, of a higher floor
    r"Program\.plot",  # of matplotlib
    r"(fluid\.)?training\.Trainer\.restore_from_checkpoint",  # what was saved
    r"bundle\.load|dataset\.common\.load_pickle",
)


def list_names() -> Iterator[str]:
    for page in sorted(REFERENCE.glob("*.md")):
        for mark in MARK.finditer(page.read_text()):
            yield from list_marked(mark["module"], mark["which"].split())
    for name in CLASSES:
        yield name
        members = vars(attrgetter(name)(fluid)).items()
        yield from (
            f"{name}.{member}"
            for member, value in members
            if member[0] != "_" and (callable(value) or isinstance(value, property | staticmethod))
        )
    yield from list_reached("", fluid, set())


def list_reached(path: str, module: Any, seen: set[int]) -> Iterator[str]:
    """Yield the functions and classes that a script reaches from ``fluid``, without errors and enums."""
    seen.add(id(module))
    own = [one for one, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    names = getattr(module, "__all__", [one for one in own if one[0] != "_"])
    for name in sorted(names, key=lambda one: one == "fluid"):  # which has most names again
        thing = getattr(module, name)
        home = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
        if not home.startswith("paddlelike") or id(thing) in seen:
            continue
        found = f"{path}.{name}".removeprefix(".")
        if inspect.ismodule(thing):
            yield from list_reached(found, thing, seen)
        elif inspect.isfunction(thing) or inspect.isclass(thing):
            seen.add(id(thing))
            if not (isinstance(thing, type) and issubclass(thing, BaseException | Enum)):
                yield found


def list_marked(module: str, which: list[str]) -> Iterator[str]:
    """Yield the paths of the public functions and classes of a module, or of its families and names."""
    package = attrgetter(module)(fluid) if module else fluid
    for name in package.__all__:
        thing = getattr(package, name)
        home = f"{getattr(inspect.unwrap(thing), '__module__', '')}."
        wanted = (
            not which or name in which or home.startswith(tuple(f"{package.__name__}.{w}." for w in which))
        )
        plain = isinstance(thing, type) and issubclass(thing, BaseException | Enum)
        if wanted and callable(thing) and not plain:
            yield f"{module}.{name}".removeprefix(".")


def docstring(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def list_missing(name: str) -> list[str]:
    """Return what the docstring of a public name does not say."""
    thing = attrgetter(name)(fluid)
    text = docstring(thing)
    missing = []
    if not text:
        missing.append("docstring")
    if ">>>" not in text and name not in WITHOUT_EXAMPLE:
        missing.append("example")
    if not isinstance(thing, property):
        explained = " ".join(find_texts(thing))
        missing += [p for p in list_parameters(thing) if not re.search(rf"\b{p}\b", explained)]
    if name.startswith(("layers.", "nets.")) and SHAPES.search(text) is None:
        missing.append("shapes")
    if refuses(thing) and not read_section(thing, "Raises"):
        missing.append("Raises")
    if re.search(rf"\b[Rr]aises {ERROR}", text):
        missing.append("Raises as a section, not as a sentence")
    if COMPUTES.match(name) and not SOURCE.search(text):
        missing.append("source")
    if returns_something(thing):
        annotation = str(inspect.unwrap(thing).__annotations__.get("return"))
        has_shape = name.startswith("layers.") or ARRAY.match(annotation) is not None
        missing += list_faults(has_shape, read_section(thing, "Returns"))
    return missing


def returns_something(thing: Any) -> bool:
    """Return whether this is a function that returns a value; a context manager of nothing does not."""
    if isinstance(thing, property | type):
        return False
    annotation = inspect.unwrap(thing).__annotations__.get("return")
    return annotation not in ("None", None, "NoReturn", "Iterator[None]")


def read_section(thing: Any, title: str) -> dict[str, str]:
    """Return the entries of a section: by what stands in front, a type or an error, the text below it."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?:\n\n(?! )|\Z)", docstring(thing), re.MULTILINE | re.DOTALL)
    if found is None:
        return {}
    parts = re.split(r"^(\S.*)$", found[1], flags=re.MULTILINE)[1:]
    return {head: " ".join(text.split()) for head, text in zip(parts[::2], parts[1::2], strict=True)}


def list_faults(has_shape: bool, entries: dict[str, str]) -> list[str]:
    """Return what is wrong with the section *Returns* of a public function."""
    if not entries:
        return ["Returns"]
    faults = [
        f"Returns: {head} {text}" for head, text in entries.items() if not text or FILLER.fullmatch(text)
    ]
    if has_shape and not any(RETURNED_SHAPE.search(text) for text in entries.values()):
        faults.append("the shape in Returns")
    return faults


def list_parameters(thing: Any) -> list[str]:
    try:
        names = inspect.signature(thing).parameters
    except ValueError:  # a dict or str of Python's
        return []
    return [name for name in names if name not in ("self", "args", "kwargs")]


def find_texts(thing: Any, depth: int = 2) -> list[str]:
    """Return the prose of a docstring, of its package's, and of those that it refers to."""
    module = importlib.import_module(inspect.unwrap(thing).__module__)
    package = importlib.import_module(".".join(thing.__module__.split(".")[:2]))
    texts = [without_examples(docstring(thing)), docstring(package)]
    if depth:
        for path in re.findall(r":(?:func|class|meth):`~?([\w.]+)`", texts[0]):
            owner = getattr(thing, "__qualname__", "").partition(".")[0]
            found = resolve(path, getattr(module, owner, None), module, package)
            if found is not None and found is not thing:
                texts += find_texts(found, depth - 1)
    return texts


def without_examples(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith((">>>", "...")))


def resolve(path: str, *scopes: Any) -> Any:
    """Return what a docstring refers to, as seen from one of the scopes; None if that is nothing."""
    for scope in scopes:
        try:
            return attrgetter(path)(scope)
        except AttributeError:
            continue
    try:
        return pkgutil.resolve_name(path)
    except (AttributeError, ImportError):
        return None


def refuses(thing: Any) -> bool:
    """Return whether its own lines raise, or check their arguments."""
    written = thing.fget if isinstance(thing, property) else thing
    if inspect.isclass(thing):
        written = vars(thing).get("__init__", thing)
    try:
        return re.search(r"\braise \w|check_\w+\(", inspect.getsource(written)) is not None
    except (OSError, TypeError):
        return False  # written by a dataclass


def test_public_names_are_documented(record_property: Callable[[str, str], None]) -> None:
    names = sorted(set(list_names()))
    lacking = {name: missing for name in names if (missing := list_missing(name))}
    record_property("summary", f"documented: {len(names) - len(lacking)} of {len(names)}")
    assert len(names) > 900
    assert lacking == {}


def test_every_parameter_of_a_public_name_has_an_entry() -> None:
    names = sorted(set(list_names()))
    without = {name: missing for name in names if (missing := list_undescribed(name))}
    assert without == {}


def list_undescribed(name: str) -> list[str]:
    """Return the parameters of a public name that have no entry, or one that says nothing."""
    thing = attrgetter(name)(fluid)
    if isinstance(thing, property):
        return []
    entries = read_entries(thing)
    return [one for one in list_parameters(thing) if not is_description(one, entries.get(one, ""))]


def is_description(name: str, entry: str) -> bool:
    """Return whether an entry says more than the name, and more than that it is a number."""
    words = set(re.findall(r"\w+", entry.lower())) - {name.lower(), "is", "a", "an", "the"}
    return len(words) > 1


def test_every_public_name_shows_its_see_also_group() -> None:
    names = set(list_names())
    without = [name for name in names if "\nSee Also\n--------\n" not in docstring(attrgetter(name)(fluid))]
    assert without == []
    listed = [".".join(filter(None, pair)) for group in list_groups() for pair in group]
    assert [path for path in listed if not callable_or_property(path)] == []
    assert [group for group in list_groups() if len(group) != len(set(group)) or len(group) < 2] == []


def callable_or_property(path: str) -> bool:
    """Return whether a path below ``fluid`` leads to a function, a class or a property."""
    found = resolve(path, fluid)
    return callable(found) or isinstance(found, property)


@pytest.mark.filterwarnings("ignore")
def test_functions_that_refuse_objects_of_other_types_document_the_error() -> None:
    """Every public function is called with plain objects: what its code then raises is in *Raises*."""
    unsaid, refused = {}, 0
    for name in sorted(set(list_names()) - {"install", "profiler.stop_profiler"}):
        function = attrgetter(name)(fluid)
        if isinstance(function, property | type) or "." in name.partition(".")[2]:
            continue
        error = refuse_objects(function)
        if error is not None:
            refused += 1
            said = " ".join(read_section(function, "Raises"))
            known = [base.__name__ for base in type(error).__mro__[:-2]]
            if not re.search(rf"\b({'|'.join(known)})\b", said):
                unsaid[name] = repr(error)
    assert refused > 250
    assert unsaid == {}


def refuse_objects(function: Callable[..., Any]) -> Exception | None:
    """Return the error that the package's own code raises for objects in place of the arguments, if any."""
    parameters = inspect.signature(function).parameters.values()
    given = [
        object() for one in parameters if one.default is one.empty and one.kind <= one.POSITIONAL_OR_KEYWORD
    ]
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            function(*given)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        own = place.filename.startswith(str(Path(fluid.__file__).parent))
        return error if own and (place.line or "").startswith("raise ") else None
    return None


def test_an_empty_phrase_in_a_returns_section_is_found() -> None:
    assert list_faults(True, {}) == ["Returns"]
    assert list_faults(False, {"SaveReport": "The result."}) == ["Returns: SaveReport The result."]
    assert list_faults(True, {"Variable": "Each number."}) == ["the shape in Returns"]
    assert list_faults(True, {"Variable": "The shape of ``x``."}) == []


def test_an_empty_phrase_in_a_parameter_entry_is_found() -> None:
    assert not is_description("value", "        ``value`` is a number.\n")
    assert not is_description("label", "")
    assert is_description("label", "        The class, int64 (N, 1).\n")


def test_a_docstring_that_only_repeats_the_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluid.layers.relu6, "__doc__", "Return a variable.")
    assert list_missing("layers.relu6") == ["example", "x", "threshold", "shapes", "source", "Returns"]


def test_at_least_a_hundred_layers_are_documented() -> None:
    assert len(MOST_USED_LAYERS) == len(set(MOST_USED_LAYERS)) == 100
    assert set(MOST_USED_LAYERS) <= set(fluid.layers.__all__)


def test_only_the_example_follows_docstring_sections() -> None:
    """A paragraph behind a section would be read as one of its entries, here and in the site."""
    wrong = []
    for path in sorted(Path(fluid.__file__).parent.rglob("*.py")):
        for text in re.findall(r'"""(.*?)"""', path.read_text(), re.DOTALL):
            wrong += [f"{path.name}: {line}" for line in list_trailing(text)]
    assert wrong == []


def list_trailing(text: str) -> list[str]:
    """Return the paragraphs of one line between the sections of a docstring and its example."""
    prose = inspect.cleandoc(text).partition("\n>>>")[0]
    _, *sections = re.split(r"^(?:Parameters|Attributes|Raises)\n-{3,}$", prose, flags=re.MULTILINE)
    return [one for section in sections for one in section.strip().split("\n\n") if "\n" not in one and one]


def test_a_paragraph_after_a_docstring_section_is_found() -> None:
    text = "Do.\n\n    Raises\n    ------\n    ValueError\n        Always.\n\n    See more.\n\n    >>> do()"
    assert list_trailing(text) == ["See more."]


def test_public_functions_document_their_parameters() -> None:
    seen: set[int] = set()
    public = [found for n in fluid.__all__ for found in list_functions(n, getattr(fluid, n), seen)]
    assert len(public) > 1000
    allowed = re.compile("|".join(TAKES_ANYTHING))
    assert [name for name, function in public if takes_any(function) and not allowed.fullmatch(name)] == []


def list_functions(name: str, thing: object, seen: set[int]) -> Iterator[tuple[str, FunctionType]]:
    """Yield the public functions and methods of a module or class, with the path to each."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if inspect.ismodule(thing):
        for listed in getattr(thing, "__all__", ()):
            yield from list_functions(f"{name}.{listed}", getattr(thing, listed), seen)
    elif inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") or member in ("__init__", "__call__", "__getitem__", "__next__"):
                function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inspect.isfunction(function):
                    yield f"{name}.{member}", function
    elif inspect.isfunction(thing):
        yield name, thing


def takes_any(function: FunctionType) -> bool:
    """Return whether a parameter besides ``*args`` and ``**kwargs``, or the result, is annotated as Any."""
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return "Any" in (signature.return_annotation, *(p.annotation for p in named))
