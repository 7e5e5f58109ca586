"""Programs: names, copies, pruning, texts, guards, declarations that are refused."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused


def _net(fluid):
    x = fluid.data("x", [None, 4])
    label = fluid.data("l", [None, 1], "int64")
    h = fluid.layers.dropout(fluid.layers.fc(x, 3, act="relu"), 0.5)
    prediction = fluid.layers.fc(h, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    return x, label, prediction, loss


def _trained(fluid, optimizer=None):
    _x, _label, prediction, loss = _net(fluid)
    (optimizer or fluid.optimizer.Momentum(0.1, 0.9)).minimize(loss)
    return fluid.default_main_program(), prediction, loss


def _kinds(fluid, program):
    return sorted(
        [v.name, isinstance(v, fluid.framework.Parameter), v.persistable, v.stop_gradient, v.is_data]
        for v in program.list_vars()
    )


def _described(program):
    return {"seed": program.random_seed, "blocks": program.num_blocks}


def a_copy(fluid):
    main, _, _ = _trained(fluid)
    copy = main.clone()
    return dict(_described(copy), main=copy, kinds=[kind[:3] for kind in _kinds(fluid, copy)])


def a_copy_for_test(fluid):
    main, _, _ = _trained(fluid)
    copy = main.clone(for_test=True)
    return dict(_described(copy), main=copy, kinds=_kinds(fluid, copy))


def a_copy_for_test_with_a_schedule(fluid):
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    main, _, _ = _trained(fluid, fluid.optimizer.Adam(rate))
    return {"main": main.clone(for_test=True)}


def a_copy_for_test_before_training(fluid):
    _, _, _, loss = _net(fluid)
    copy = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return {"copy": copy, "main": fluid.default_main_program()}


def a_copy_for_test_with_metrics_after_training(fluid):
    _x, label, prediction, loss = _net(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.layers.accuracy(prediction, label)
    fluid.layers.scale(loss, 2.0)
    return fluid.default_main_program().clone(for_test=True)


def a_copy_for_test_with_batch_norm(fluid):
    x = fluid.data("x", [None, 3, 8, 8])
    h = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3))
    h = fluid.layers.pool2d(h, 2, global_pooling=True)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))
    return fluid.default_main_program().clone(for_test=True)


def changes_after_a_copy_stay_apart(fluid):
    _net(fluid)
    main = fluid.default_main_program()
    copy = main.clone()
    with fluid.program_guard(copy):
        fluid.layers.scale(copy.global_block().var("mean_0.tmp_0"), 2.0)
    copy.global_block().ops[0]._set_attr("x_num_col_dims", 1)
    copy.random_seed = 99
    return {"main": main, "copy": copy, "seeds": [main.random_seed, copy.random_seed]}


def pruned_to_a_variable(fluid):
    _, _, prediction, _ = _net(fluid)
    pruned = fluid.default_main_program()._prune([prediction])
    return dict(_described(pruned), main=pruned, kinds=_kinds(fluid, pruned))


def pruned_to_a_name(fluid):
    _net(fluid)
    return fluid.default_main_program()._prune(["fc_0.tmp_1"])


def pruned_after_training(fluid):
    main, prediction, _ = _trained(fluid)
    return main.clone(for_test=True)._prune([prediction])


def pruned_with_a_fed_value_between(fluid):
    _, _, prediction, _ = _net(fluid)
    return fluid.default_main_program()._prune_with_input(["fc_0.tmp_1"], [prediction])


def pruned_for_inference(fluid):
    _, _, prediction, _ = _net(fluid)
    pruned = fluid.default_main_program()._prune_with_input(["x"], [prediction])
    return pruned._inference_optimize(prune_read_op=True)


def pruning_refused(fluid):
    _net(fluid)
    main = fluid.default_main_program()
    return [refused(main._prune, ["nobody"]), refused(main._prune, [3])]


def bytes_and_back(fluid):
    main, _, _ = _trained(fluid)
    back = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    return dict(
        _described(back),
        back=back,
        parameters=len(back.all_parameters()),
        kinds=[kind[:3] for kind in _kinds(fluid, back)],
    )


def bytes_refused(fluid):
    parse = fluid.Program.parse_from_string
    return [refused(parse, b"garbage"), refused(parse, "text"), refused(parse, None)]


def an_empty_text_of_bytes(fluid):
    return fluid.Program.parse_from_string(b"").num_blocks


def texts(fluid):
    """The lines of variables and headers (operators carry the stack of this machine in their attributes)."""
    _net(fluid)
    main = fluid.default_main_program()
    block = main.global_block()
    weight = block.var("fc_0.w_0")
    return {
        "variable": str(block.var("x")).split("\n"),
        "input": block.var("x").to_string(True, True).split("\n"),
        "details": [one for one in weight.to_string(True, True).split("\n") if "lod_level" not in one],
        "same": str(main) == main.to_string(True),
        "head": str(main).split("\n")[:4],
        "tail": str(main).split("\n")[-4:],
    }


def guards(fluid):
    main, startup = fluid.Program(), fluid.Program()
    before = fluid.default_main_program(), fluid.default_startup_program()
    seen = []
    with fluid.program_guard(main, startup):
        seen.append(fluid.default_main_program() is main and fluid.default_startup_program() is startup)
        inner = fluid.Program()
        with fluid.program_guard(inner):
            seen.append(fluid.default_main_program() is inner)
            seen.append(fluid.default_startup_program() is startup)
    seen.append((fluid.default_main_program(), fluid.default_startup_program()) == before)

    def enter(*programs):
        with fluid.program_guard(*programs):
            pass

    return [*seen, refused(enter, None), refused(enter, "main"), refused(enter, main, "startup")]


def seeds(fluid):
    def put(seed):
        program = fluid.Program()
        program.random_seed = seed
        return program.random_seed

    return [put(5), refused(put, "5"), refused(put, 1.5), refused(put, None), fluid.Program().random_seed]


def blocks(fluid):
    main, _, _ = _trained(fluid)
    block = main.global_block()
    return {
        "wrong": [refused(main.block, 1), refused(block.var, "nobody"), refused(block.var, 3)],
        "right": [main.block(0) is block, main.current_block() is block, block.has_var("x")],
        "idx": [block.idx, block.parent_idx],
        "order": [name for name in block.vars if "@GRAD" not in name],
        "listed": sorted(v.name for v in main.list_vars()),
        "parameters": [p.name for p in main.all_parameters()],
        "types": [op.type for op in block.ops],
        "found": [refused(block._var_recursive, "nobody"), block._find_var_recursive("nobody")],
    }


def operators(fluid):
    _net(fluid)
    op = fluid.default_main_program().global_block().ops[0]
    return {
        "slots": [sorted(op.input_names), sorted(op.output_names)],
        "arguments": [sorted(op.input_arg_names), sorted(op.output_arg_names)],
        "slot": [op.input("X"), op.output("Out"), op.idx],
        "attributes": [op.attr("x_num_col_dims"), op.has_attr("axis"), op.has_attr("op_role")],
        "names": sorted(name for name in op.attr_names if name != "op_callstack"),
        "wrong": [refused(op.attr, "nobody")],
    }


def changed_attributes(fluid):
    _net(fluid)
    main = fluid.default_main_program()
    op = main.global_block().ops[0]
    op._set_attr("x_num_col_dims", 2)
    op._rename_input("x", "fc_0.w_0")
    return main


def an_attribute_of_another_type(fluid):
    _net(fluid)
    op = fluid.default_main_program().global_block().ops[0]
    return refused(op._set_attr, "x_num_col_dims", "two")


def variables_by_default(fluid):
    block = fluid.default_main_program().global_block()
    made = block.create_var()
    named = block.create_var(name="n", shape=[2, -1], dtype="int64", lod_level=2, persistable=True)
    weight = block.create_parameter(name="w", shape=[2, 3], dtype="float32")

    def facts(v):
        return [v.name, list(v.shape), int(v.dtype), v.lod_level, v.persistable, v.stop_gradient, v.is_data]

    return {
        "made": [made.name, made.persistable, made.stop_gradient, int(made.type)],
        "named": facts(named),
        "weight": facts(weight),
        "parameter": [weight.trainable, weight.optimize_attr, weight.regularizer, weight.is_distributed],
        "grad_name": weight.grad_name,
    }


def declared_again(fluid):
    data = fluid.data
    data("x", [None, 4])

    def again(**changes):
        given = {"name": "x", "shape": [None, 4], "dtype": "float32", "lod_level": 0}
        given.update(changes)
        return data(**given).name

    block = fluid.default_main_program().global_block()
    return [
        again(),
        refused(again, shape=[None, 5]),
        refused(again, shape=[None, 4, 1]),
        refused(again, dtype="float64"),
        refused(again, lod_level=1),
        refused(block.create_var, name="x", persistable=True),
        refused(block.create_var, name="x", shape=[-1, 4], dtype="float32", lod_level=0).name,
    ]


def parameters_again(fluid):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 4, param_attr="w", bias_attr="b")
    fluid.layers.fc(y, 4, param_attr="w", bias_attr="b")
    return [
        refused(fluid.layers.fc, x, 5, param_attr="w"),
        fluid.default_main_program(),
        fluid.default_startup_program(),
    ]


def wrong_data(fluid):
    data = fluid.data
    return [
        refused(data, "x", 3),
        refused(data, 3, [None, 3]),
        refused(data, "y", [None, 3], "string"),
        refused(data, "z", "3"),
    ]


def wrong_parameters(fluid):
    block = fluid.default_main_program().global_block()
    make = block.create_parameter
    return [
        refused(make, name="a", shape=[], dtype="float32"),
        refused(make, name="b", shape=[2, -1], dtype="float32"),
        refused(make, name="d", shape=None, dtype="float32"),
        refused(make, name="e", shape=[2], dtype=None),
    ]


def parameters_without_elements(fluid):
    make = fluid.default_main_program().global_block().create_parameter
    return refused(make, name="c", shape=[2, 0], dtype="float32")


def wrong_operators(fluid):
    block = fluid.default_main_program().global_block()
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [5, 6])
    out = block.create_var(name="out", dtype="float32")
    append = block.append_op
    return [
        refused(append, type="nobody", inputs={"X": x}, outputs={"Out": out}),
        refused(append, type="relu", inputs={}, outputs={"Out": out}),
        refused(append, type="scale", inputs={"X": x}, outputs={"Out": out}, attrs={"scale": "two"}),
        refused(append, type="mul", inputs={"X": x, "Y": y}, outputs={"Out": out}),
    ]


def operators_on_what_is_not_there(fluid):
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype="float32")
    return refused(block.append_op, type="relu", inputs={"X": ["nobody"]}, outputs={"Out": out})


def silently_dropped(fluid):
    block = fluid.default_main_program().global_block()
    x = fluid.data("x", [None, 4])
    out = block.create_var(name="out", dtype="float32")
    inputs = {"X": x, "Surplus": x}
    block.append_op(type="relu", inputs=inputs, outputs={"Out": out}, attrs={"surplus": 3})
    return fluid.default_main_program()


def prepended_operators(fluid):
    block = fluid.default_main_program().global_block()
    x = fluid.data("x", [None, 4])
    fluid.layers.relu(x)
    made = block.create_var(name="made", dtype="float32", shape=[1])
    attrs = {"shape": [1], "value": 2.5, "dtype": int(made.dtype)}
    block._prepend_op(type="fill_constant", outputs={"Out": made}, attrs=attrs)
    attrs["value"] = 3.5
    block._insert_op(1, type="fill_constant", outputs={"Out": made}, attrs=attrs)
    block._remove_op(0)
    return fluid.default_main_program()


def renamed_variables(fluid):
    _net(fluid)
    block = fluid.default_main_program().global_block()
    block._rename_var("fc_0.tmp_1", "hidden")
    return [fluid.default_main_program(), refused(block._rename_var, "nobody", "other")]


def name_scopes(fluid):
    x = fluid.data("x", [None, 4])
    with fluid.name_scope("enc"):
        x = fluid.layers.relu(x)
        with fluid.name_scope("enc"):
            x = fluid.layers.relu(x)
    with fluid.name_scope("enc"):
        x = fluid.layers.fc(x, 2, name="named")
    with fluid.name_scope("dec"):
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(x))

    def enter(name):
        with fluid.name_scope(name):
            pass

    ops = fluid.default_main_program().global_block().ops
    scopes = [[op.type, op.attr("op_namescope") if op.has_attr("op_namescope") else None] for op in ops]
    return [scopes, refused(enter, None), refused(enter, "")]


def generated_names(fluid):
    unique = fluid.unique_name
    found = [unique.generate("a"), unique.generate("a"), unique.generate("b")]
    with unique.guard():
        found.append(unique.generate("a"))
    with unique.guard("p_"):
        found.append(unique.generate("a"))
    with unique.guard(b"q_"):
        found.append(unique.generate("a"))
    found.append(unique.generate("a"))
    old = unique.switch()
    found.append(unique.generate("a"))
    unique.switch(old[0])
    found.append(unique.generate("a"))
    return found


def names_over_two_programs(fluid):
    def build():
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            return fluid.layers.fc(fluid.data("x", [None, 4]), 2).name

    return [build(), build(), build()]


def devices(fluid):
    x = fluid.data("x", [None, 4])
    with fluid.device_guard("cpu"):
        x = fluid.layers.relu(x)
    with fluid.device_guard("gpu"):
        x = fluid.layers.relu(x)

    def enter(name):
        with fluid.device_guard(name):
            pass

    return [fluid.default_main_program(), refused(enter, "tpu")]


def a_changed_shape(fluid):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.relu(x)
    y.desc.set_shape([7, 4])
    return [list(y.shape), fluid.default_main_program()]


def versions(fluid):
    require = fluid.require_version
    return [
        require("1.6.0"),
        require("1.8.5", "1.9"),
        refused(require, "1.9.0"),
        refused(require, "1.0", "1.7"),
        refused(require, 1.6),
        refused(require, "1.x"),
    ]


def places(fluid):
    return [str(fluid.CPUPlace()), len(fluid.cpu_places()), len(fluid.cpu_places(3)), fluid.in_dygraph_mode()]


def parameters_of(fluid):
    main, _, _ = _trained(fluid)
    return [
        [v.name for v in fluid.io.get_program_parameter(main)],
        [v.name for v in fluid.io.get_program_persistable_vars(main)],
        [fluid.io.is_belong_to_optimizer(v) for v in main.list_vars()],
    ]


def arrays_of_dims(fluid):
    x = fluid.data("x", np.array([2, 3]).tolist(), "float64")
    return [list(x.shape), int(x.dtype)]


def a_variable_with_an_initializer(fluid):
    for program in (fluid.default_startup_program(), fluid.default_main_program()):
        options = {"name": "tree", "dtype": "int32", "shape": [2, 3], "persistable": True}
        if program is fluid.default_startup_program():
            options["initializer"] = fluid.initializer.ConstantInitializer(4)
        program.global_block().create_var(**options)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    return [fluid.default_startup_program(), np.array(fluid.global_scope().find_var("tree").get_tensor())]
