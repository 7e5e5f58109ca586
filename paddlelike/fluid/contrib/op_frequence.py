"""``fluid.contrib.op_freq_statistic``: how often operators, and pairs of them, occur in a program."""

from __future__ import annotations

from collections import Counter

from paddlelike.framework import Program

__all__ = ["op_freq_statistic"]


def op_freq_statistic(program: Program) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return counts of operators by type, and of pairs ``"a->b"``, where b reads a result of a.

    The highest counts come first. Only operators of block 0 that write something other than parameters
    are counted.

    Parameters
    ----------
    program
        The program to read.

    Returns
    -------
    tuple
        Two lists of pairs, a type and its count.

    Raises
    ------
    TypeError
        ``program`` is not a program.

    See Also
    --------
    fluid.contrib.memory_usage, fluid.contrib.model_stat.summary

    >>> import paddlelike as fluid
    >>> op_freq_statistic(fluid.Program())
    ([], [])
    """
    if not isinstance(program, Program):
        raise TypeError(f"op_freq_statistic takes a program, got {program!r}")
    block = program.global_block()
    parameters = {parameter.name for parameter in block.all_parameters()}
    ops = [op for op in block.ops if set(op.output_arg_names) - parameters]
    writer: dict[str, str] = {}
    pairs: Counter[str] = Counter()
    for op in block.ops:
        for name in op.input_arg_names:
            if name not in parameters and name in writer:
                pairs[f"{writer[name]}->{op.type}"] += 1
        writer.update(dict.fromkeys(op.output_arg_names, op.type))
    return Counter(op.type for op in ops).most_common(), pairs.most_common()
