"""Faults in ``paddlelike/framework/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "a clone for test keeps the updates",
        "framework/passes/clone.py",
        "drop = OpRole.Backward | OpRole.Optimize | OpRole.LRSched",
        "drop = OpRole.Backward | OpRole.LRSched",
    ),
    Mutation(
        "a clone for test keeps the seed",
        "framework/passes/clone.py",
        "    clone = copy(program, tables=5)\n    clone._seed = 0\n",
        "    clone = copy(program, tables=5)\n",
    ),
    Mutation(
        "pruning keeps all operators",
        "framework/passes/clone.py",
        "if i in needed]",
        'if i in needed or op.type == "fc" or True]',
    ),
    Mutation(
        "pruning drops the targets",
        "framework/passes/clone.py",
        "keep=set(targets) | set(feeds))",
        "keep=set(feeds))",
    ),
    Mutation(
        "a copy has no parent blocks",
        "framework/passes/clone.py",
        "Block(clone, block.idx, block.parent_idx)",
        "Block(clone, block.idx, -1)",
    ),
    Mutation(
        "variables of outer blocks are not found",
        "framework/graph/block.py",
        "for i in (block.forward_block_idx, block.parent_idx) if i >= 0)",
        "for i in (block.forward_block_idx, block.parent_idx) if i > 0)",
    ),
    Mutation(
        "another shape of a name is accepted",
        "framework/graph/block.py",
        "        if old is not None:\n            _check_same(old, variable)\n",
        "",
    ),
    Mutation(
        "a change of variables is not noted",
        "framework/graph/variable.py",
        "        self.block.program._note_change()  # cached plans keep other values\n",
        "",
    ),
    Mutation(
        "a new name may be taken",
        "framework/graph/block.py",
        "        if new_name in self.vars:\n            raise GraphError(",
        "        if new_name == name:\n            raise GraphError(",
    ),
    Mutation(
        "renaming forgets the outputs",
        "framework/graph/block.py",
        "            op._rename_output(name, new_name)\n",
        "            pass\n",
    ),
    Mutation(
        "operators are appended before the last",
        "framework/graph/block.py",
        "return self._insert_op(len(self.ops), type,",
        "return self._insert_op(max(len(self.ops) - 1, 0), type,",
    ),
    Mutation(
        "stop_gradient of an operator is ignored",
        "framework/graph/block.py",
        "self._var_recursive(name).stop_gradient = True",
        "self._var_recursive(name).stop_gradient = False",
    ),
    Mutation(
        "a parameter is created in the current block",
        "framework/graph/block.py",
        "        top = self.program.global_block()\n        parameter = Parameter(top",
        "        top = self\n        parameter = Parameter(top",
    ),
    Mutation(
        "the textbook's way is the default",
        "framework/quirks.py",
        'return bool(QUIRKS[name] and flag("FLAGS_fluid_quirks"))',
        'return not bool(QUIRKS[name] and flag("FLAGS_fluid_quirks"))',
    ),
]
