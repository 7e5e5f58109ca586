"""Faults in ``paddlelike/io/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "a shape that does not fit is loaded",
        "io/planning/load_plan.py",
        "    if same or one or rows or computed:",
        "    if same or one or rows or computed or len(want) == len(shape):",
    ),
    Mutation(
        "another element type is loaded",
        "io/planning/load_plan.py",
        "    if dtype != variable.dtype and not {dtype, variable.dtype} <= _INTEGERS:",
        "    if False:",
    ),
    Mutation(
        "a load of nothing succeeds",
        "io/planning/load_plan.py",
        "        return bool(self.steps) and not (self.strict and self.problems)",
        "        return not (self.strict and self.problems)",
    ),
    Mutation(
        "problems do not stop a strict load",
        "io/planning/load_plan.py",
        "not (self.strict and self.problems)",
        "not (self.strict and len(self.problems) > 1)",
    ),
    Mutation(
        "a checksum of another value is good",
        "io/contents/compare.py",
        "    if checksum == record.checksum:",
        "    if checksum or record.checksum:",
    ),
    Mutation(
        "a file of another size is good",
        "io/contents/compare.py",
        "    if size != record.size:",
        "    if size < 0:",
    ),
    Mutation(
        "a variable that changed counts as saved",
        "io/incremental.py",
        "        if holder.version != self.version:\n            return False\n",
        "",
    ),
    Mutation(
        "an array that was replaced counts as written by rows",
        "io/save/chains.py",
        "        if state is not None and state.array() is item.array:  # C6\n",
        "        if state is not None:\n",
        "C6",
    ),
    Mutation(
        "two variables of one file share its memory",
        "io/load/values.py",
        "            value = copy_value(value)\n",
        "            pass\n",
    ),
    Mutation(
        "parameters are not persistables",
        "io/calls.py",
        "    return var.type not in HOLDERS and var.persistable",
        "    return var.type not in HOLDERS and var.persistable and not is_parameter(var)",
    ),
    Mutation(
        "variables of the optimizer include parameters",
        "io/calls.py",
        "    if isinstance(var, Parameter) or var.need_check_feed:",
        "    if var.need_check_feed:",
    ),
    Mutation(
        "an asynchronous save writes the values of later",
        "io/save/copies.py",
        "        np.copyto(copy, np.frombuffer(view, np.uint8))\n        return copy.data",
        "        np.copyto(copy, np.frombuffer(view, np.uint8))\n        return buffer",
    ),
    Mutation(
        "a name with other counters is not proposed",
        "framework/hints.py",
        'r"_\\d+(?=\\.|_|$)"',
        'r"_\\d+(?=\\.)"',
    ),
    Mutation(
        "conv2d_10 comes before conv2d_9",
        "framework/hints.py",
        "    return [(len(part), part) if index % 2",
        "    return [(0, part) if index % 2",
    ),
    Mutation(
        "the report calls every old value uninitialized",
        "io/load/commit.py",
        "array.shape, holder.is_initialized())",
        "array.shape, False)",
    ),
    Mutation(
        "constants are not filled in",
        "io/load/values.py",
        "    array[...] = fill.value\n",
        "    array[...] = 0\n",
    ),
    Mutation(
        "a shared file is never written anew",
        "io/save/writer.py",
        "        if self._turn is None:\n",
        "        if True:\n",
    ),
    Mutation(
        "a file beside its chain passes",
        "io/deltas/chain.py",
        "    if variable in there:  # C1",
        "    if False:",
        "C1",
    ),
    Mutation(
        "a link follows any other",
        "io/deltas/chain.py",
        "    if after != last.checksum:  # C2",
        "    if False:",
        "C2",
    ),
    Mutation(
        "a link of the right size is the right one",
        "io/deltas/contents.py",
        "    if len(data) != record.size or checksum != record.checksum:  # C3",
        "    if len(data) != record.size:",
        "C3",
    ),
    Mutation(
        "a chain with a replaced link begins anew in silence",
        "io/save/chains.py",
        "            if not at:\n                return False\n",
        "            return False\n",
        "C4",
    ),
    Mutation(
        "the links of a chain may be as large as its whole value",
        "io/save/chains.py",
        "most = _SHARE * item.array.nbytes",
        "most = item.array.nbytes",
        "C5",
    ),
    Mutation(
        "forgotten rows stay at a replay",
        "io/deltas/contents.py",
        "            keep[places[places >= 0]] = False",
        "            keep[places[places >= 0]] = True",
        "C7",
    ),
]
