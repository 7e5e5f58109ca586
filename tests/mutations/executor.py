"""Faults in ``paddlelike/executor/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "values die one operator early",
        "executor/plans/lifetimes.py",
        "                dying[i].append(name)\n    return dying",
        "                dying[max(i - 1, 0)].append(name)\n    return dying",
    ),
    Mutation(
        "fetched values are dropped",
        "executor/plans/lifetimes.py",
        "    seen = set(keep)\n",
        "    seen: set[str] = set()\n",
    ),
    Mutation(
        "a view of what is overwritten shares its memory",
        "executor/plans/lifetimes.py",
        "        return index in self._copy_at",
        "        return False",
    ),
    Mutation(
        "a feed that is overwritten is not copied",
        "executor/plans/lifetimes.py",
        "        self.overwrites_feed = fed & set(overwritten)",
        "        self.overwrites_feed = set(fed) - set(fed)",
    ),
    Mutation(
        "every operator takes any order of memory",
        "executor/plans/orders.py",
        "    if cls.any_order or cls.reorders or reordered.isdisjoint(op.input_arg_names):",
        "    if cls.any_order or cls.reorders or op.input_arg_names:",
    ),
    Mutation(
        "orders are not passed on",
        "executor/plans/orders.py",
        "                found.update(op.output_arg_names)\n    return found",
        "                found.update(())\n    return found",
    ),
    Mutation(
        "a plan is used for other fetches",
        "executor/plans/cached.py",
        "key = (kind, frozenset(feeds), tuple(fetches), pruned_to)",
        "key = (kind, frozenset(feeds), len(fetches), pruned_to)",
    ),
    Mutation(
        "a plan is used for other feeds",
        "executor/plans/cached.py",
        "key = (kind, frozenset(feeds), tuple(fetches), pruned_to)",
        "key = (kind, len(feeds), tuple(fetches), pruned_to)",
    ),
    Mutation(
        "a sparse gradient is fetched",
        "executor/exchange/fetches.py",
        "    if isinstance(value, SelectedRows):\n        raise EnforceNotMet(",
        "    if isinstance(value, SelectedRows) and not return_numpy:\n        raise EnforceNotMet(",
    ),
    Mutation(
        "a LoD is dropped silently",
        "executor/exchange/fetches.py",
        "    if return_numpy and lod:\n",
        "    if return_numpy and lod and len(lod) > 1:\n",
    ),
    Mutation(
        "what is fetched changes later",
        "executor/exchange/fetches.py",
        '    array = np.array(value, order="C") if shared else',
        '    array = np.asarray(value, order="C") if shared else',
    ),
    Mutation(
        "the LoD of a feed is lost",
        "executor/exchange/feeds.py",
        "            frame.lods[position] = lod\n",
        "            pass\n",
    ),
    Mutation(
        "any dim of a feed passes",
        "executor/exchange/feeds.py",
        "        if dim != wanted and wanted != -1:",
        "        if dim < wanted:",
    ),
    Mutation(
        "arrays of other byte orders are taken as they are",
        "executor/exchange/feeds.py",
        'array.astype(array.dtype.newbyteorder("="), copy=False)',
        'array.view(array.dtype.newbyteorder("="))',
    ),
    Mutation(
        "an unknown option of a strategy passes",
        "executor/strategies.py",
        "        if name not in self.__dict__:",
        "        if not name:",
    ),
    Mutation(
        "temporaries live in the scope",
        "executor/plans/layout.py",
        "outlives = variable is not None and variable.persistable and name not in self._temporaries",
        "outlives = variable is not None and variable.persistable",
    ),
]
