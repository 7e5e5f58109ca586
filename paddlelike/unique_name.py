"""Fluid's counters of generated names: ``fc_0``, ``fc_0.w_0``, ``fc_0.tmp_0``.

Counters are per key and per process, not per Program. :func:`guard` installs new ones;
:class:`~paddlelike.foundation.current.Current` says for which threads.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from paddlelike.foundation.current import Block, Current
from paddlelike.foundation.locks import RLock

__all__ = ["UniqueNameGenerator", "generate", "generate_with_ignorable_key", "guard", "switch"]


class UniqueNameGenerator:
    """One set of counters with one prefix.

    Parameters
    ----------
    prefix
        A text in front of every name; None for no prefix.

    See Also
    --------
    fluid.unique_name.generate, fluid.unique_name.guard, fluid.unique_name.switch

    >>> generator = UniqueNameGenerator("old_")
    >>> generator("fc"), generator("fc")
    ('old_fc_0', 'old_fc_1')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = "" if prefix is None else prefix
        self.counts: Counter[str] = Counter()

    def __call__(self, key: str) -> str:
        with _counting.hold():  # two layers of one name would share their parameters
            number = self.counts[key]
            self.counts[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_counting: Final = RLock()
_current: Final = Current(UniqueNameGenerator())

_counting.hold_in_forks()


def __getattr__(name: str) -> UniqueNameGenerator:
    if name == "generator":  # the current one, which scripts copy
        return _current.get()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def generate(key: str) -> str:
    """Return the next name for ``key``.

    Parameters
    ----------
    key
        The beginning of the name, such as "fc".

    Returns
    -------
    name : str
        The prefix of :func:`guard` if it has one, then the key, an underscore, and the next number.

    See Also
    --------
    fluid.unique_name.guard, fluid.unique_name.switch, fluid.unique_name.UniqueNameGenerator

    >>> with guard():
    ...     generate("fc"), generate("fc"), generate("conv2d")
    ('fc_0', 'fc_1', 'conv2d_0')
    """
    return _current.get()(key)


#: Fluid's dynamic graph tells the two apart.
generate_with_ignorable_key = generate


def switch(
    new_generator: UniqueNameGenerator | None = None, new_para_name_checker: object = None
) -> tuple[UniqueNameGenerator, object]:
    """Replace the counters until the next call of :func:`switch`.

    Parameters
    ----------
    new_generator
        The counters to use, such as those that an earlier switch returned; None means new ones.
    new_para_name_checker
        Accepted as in Fluid and ignored: it belongs to the dynamic graph.

    Returns
    -------
    previous : UniqueNameGenerator
        The counters in use until now.
    checker : None
        Fluid's second result, which belongs to the dynamic graph.

    See Also
    --------
    fluid.unique_name.generate, fluid.unique_name.guard, fluid.unique_name.UniqueNameGenerator

    >>> before, _ = switch()
    >>> generate("fc")
    'fc_0'
    >>> _ = switch(before)
    """
    return _current.set(UniqueNameGenerator() if new_generator is None else new_generator), None


def guard(new_generator: UniqueNameGenerator | str | bytes | None = None) -> Block:
    """Use other counters inside the ``with`` block.

    Parameters
    ----------
    new_generator
        The counters to use. None means new ones; a str or bytes means new ones that put it in front of
        every name.

    Returns
    -------
    Block
        A context manager, whose ``as`` has no value.

    See Also
    --------
    fluid.unique_name.generate, fluid.unique_name.switch, fluid.unique_name.UniqueNameGenerator

    >>> with guard("old_"):
    ...     generate("fc")
    'old_fc_0'
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    return _current.replaced(UniqueNameGenerator() if new_generator is None else new_generator)
