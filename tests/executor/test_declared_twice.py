"""A persistable that a sub-block declares once more is still the one of its scope."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid


def test_a_sub_block_reads_and_writes_the_persistables_around_it() -> None:
    """Programs of parameter servers declare what a schedule's branches use once more in those."""
    total = fluid.layers.create_global_var([1], 1.0, "float32", persistable=True, name="total")
    doubled = total * 2.0
    doubled.persistable = True  # computed in this run: the scope holds nothing before it
    yes = fluid.layers.fill_constant([1], "bool", True)
    with fluid.layers.control_flow.ConditionalBlock([yes], is_scalar_condition=True).block():
        fluid.layers.assign(doubled, total)
    main = fluid.default_main_program()
    for var in (total, doubled):
        main.blocks[1]._clone_variable(var)
    after = total + 0.5
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    assert exe.run(main, fetch_list=[after], scope=scope) == [[2.5]]
    assert np.array(scope.find_var("total").get_tensor()) == [2.0]
