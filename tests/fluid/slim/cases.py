"""Networks quantized by passes, during training and after it; run by the real 1.8.5, this file records them.

path/to/python3.7 tests/fluid/slim/cases.py | tail -n 1 | xz > tests/golden/slim185.json.xz

The real passes visit operators in the order of their addresses, which differs from run to run and decides the
numbers in generated names; here they visit them in order of creation.
"""

import base64
import json
import sys
import tempfile

import numpy as np

try:
    import paddlelike.fluid as fluid
except ImportError:  # the real system
    import paddle.fluid as fluid

L = fluid.layers
CPU = fluid.CPUPlace()
#: Attributes with lines of this file, and with a count of the name scopes of the process.
COUNTED = ("op_callstack", "op_namescope")


def mlp():
    x, y = fluid.data("x", [-1, 12]), fluid.data("y", [-1, 1])
    x.stop_gradient = False
    hidden = L.fc(L.fc(x, 8, act="relu"), 6, act="tanh")
    with fluid.name_scope("skip_quant"):
        out = L.fc(hidden, 1)
    return x, out, L.mean(L.square_error_cost(out, y))


def residual():
    x, y = fluid.data("x", [-1, 2, 6, 6]), fluid.data("y", [-1, 1], "int64")
    x.stop_gradient = False
    c = L.batch_norm(L.conv2d(x, 4, 3, padding=1, bias_attr=False), act="relu")
    d = L.batch_norm(L.conv2d(c, 4, 3, padding=1, bias_attr=False))
    e = L.batch_norm(L.conv2d(c, 4, 1, bias_attr=False))
    out = L.fc(L.pool2d(L.elementwise_add(d, e, act="relu"), 2, "avg", 2), 4, act="softmax")
    return x, out, L.mean(L.cross_entropy(out, y))


def depthwise():
    x, y = fluid.data("x", [-1, 4, 7, 7]), fluid.data("y", [-1, 1], "int64")
    x.stop_gradient = False
    c = L.conv2d(x, 4, 3, stride=2, padding=1, groups=4, use_cudnn=False, act="relu6")
    a, b = L.conv2d(c, 3, 1), L.conv2d(c, 3, 1, act="swish")
    c = L.pool2d(L.concat([a, b], 1), global_pooling=True, pool_type="max")
    out = L.fc(c, 4, act="softmax")
    return x, out, L.mean(L.cross_entropy(out, y))


def embedding():
    x, y = fluid.data("x", [-1, 3], "int64"), fluid.data("y", [-1, 1], "int64")
    e = L.reshape(fluid.embedding(x, [20, 4]), [-1, 12])
    h, g = L.fc(e, 5, act="relu"), L.fc(e, 5, act="sigmoid")
    m = L.reduce_mean(L.matmul(h, g, transpose_y=True), dim=1, keep_dim=True)
    out = L.fc(L.elementwise_add(L.elementwise_mul(h, g), m, axis=0), 4, act="softmax")
    return x, out, L.mean(L.cross_entropy(out, y))


def clip(x):
    """PACT: a clip by a trained threshold."""
    initial = fluid.initializer.ConstantInitializer(2.0)
    u = L.create_parameter([1], "float32", name=x.name + "_pact", default_initializer=initial)
    x = L.elementwise_sub(x, L.relu(L.elementwise_sub(x, u)))
    return L.elementwise_add(x, L.relu(L.elementwise_sub(L.scale(u, -1.0), x)))


def train_by_descent():
    return fluid.optimizer.SGD(0.01)


NETS = {"mlp": mlp, "residual": residual, "depthwise": depthwise, "embedding": embedding}
ALL = ["conv2d", "depthwise_conv2d", "mul", "matmul"]
#: Arguments of QuantizationTransformPass, and of AddQuantDequantPass where results are recorded, too.
WAYS = {
    "abs_max": ({"activation_quantize_type": "abs_max", "weight_quantize_type": "abs_max"}, None),
    "range": (
        {
            "activation_quantize_type": "range_abs_max",
            "weight_quantize_type": "channel_wise_abs_max",
            "window_size": 4,
        },
        None,
    ),
    "moving": (
        {
            "activation_quantize_type": "moving_average_abs_max",
            "weight_quantize_type": "channel_wise_abs_max",
            "quantizable_op_type": ALL,
        },
        {"is_full_quantized": True},
    ),
    "bits": (
        {
            "activation_quantize_type": "range_abs_max",
            "weight_quantize_type": "range_abs_max",
            "weight_bits": 6,
            "activation_bits": 7,
        },
        None,
    ),
    "clipped": (
        {
            "activation_quantize_type": "moving_average_abs_max",
            "weight_quantize_type": "channel_wise_abs_max",
            "act_preprocess_func": clip,
            "optimizer_func": train_by_descent,
        },
        None,
    ),
}
#: Arguments of PostTrainingQuantization.
POST = {
    "kl": {"algo": "KL", "is_full_quantize": True},
    "abs_max": {
        "algo": "abs_max",
        "weight_quantize_type": "abs_max",
        "activation_quantize_type": "moving_average_abs_max",
    },
    "min_max": {"algo": "min_max"},
}


def list_program(program):
    """Return the operators and variables of a program as plain values."""
    block = program.global_block()
    ops = [
        [
            op.type,
            {slot: op.input(slot) for slot in sorted(op.input_names)},
            {slot: op.output(slot) for slot in sorted(op.output_names)},
            {name: op.attr(name) for name in sorted(op.attr_names) if name not in COUNTED},
        ]
        for op in block.ops
    ]
    variables = {v.name: [int(v.type), v.persistable] for v in program.list_vars()}
    for variable in program.list_vars():
        if variable.type == fluid.core.VarDesc.VarType.LOD_TENSOR:
            variables[variable.name] += [int(variable.dtype), list(variable.shape)]
    return {"ops": ops, "vars": variables}


def draw(random, variable, rows):
    shape = [rows, *variable.shape[1:]]
    if variable.dtype != fluid.core.VarDesc.VarType.INT64:
        return random.uniform(-2, 2, shape).astype("float32")
    return random.randint(0, 20 if variable.name == "x" else 4, shape).astype("int64")


def fill(random, program):
    for parameter in sorted(program.all_parameters(), key=lambda p: p.name):
        if parameter.trainable:
            value = random.uniform(-0.4, 0.4, parameter.shape).astype("float32")
            fluid.global_scope().find_var(parameter.name).get_tensor().set(value, CPU)


def read_values(program):
    found = {v.name: fluid.global_scope().find_var(v.name) for v in program.list_vars() if v.persistable}
    names = sorted(n for n, v in found.items() if v is not None and n not in ("feed", "fetch"))
    return {name: np.array(found[name].get_tensor()) for name in names}


def encode(value):
    value = np.ascontiguousarray(value)
    return [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]


def decode(item):
    return np.frombuffer(base64.b64decode(item[2]), item[0]).reshape(item[1])


def make_graph(program, scope, options, added, for_test, executor):
    """Return a graph after the training passes."""
    slim = fluid.contrib.slim.quantization
    graph = fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)
    if "optimizer_func" in options:
        options = dict(options, executor=executor)
    slim.QuantizationTransformPass(scope, CPU, **options).apply(graph)
    if added is not None:
        slim.AddQuantDequantPass(scope, CPU, **added).apply(graph)
        if not for_test:
            slim.OutScaleForTrainingPass(scope, CPU).apply(graph)
    return graph


def run_training(net, way, trained=None):
    """Return the programs after each pass, losses and values; with ``trained``, freeze these values."""
    slim = fluid.contrib.slim.quantization
    options, added = WAYS[way]
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        _, out, loss = NETS[net]()
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
        exe, random = fluid.Executor(CPU), np.random.RandomState(3)
        exe.run(startup)
        fill(random, main)
        feeds = [main.global_block().var(name) for name in ("x", "y")]
        batches = [{v.name: draw(random, v, 6) for v in feeds} for _ in range(10)]
        graph = make_graph(main, scope, options, added, False, exe)
        found = {"train": list_program(graph.to_program())}
        compiled = fluid.CompiledProgram(graph.graph).with_data_parallel(loss_name=loss.name, places=[CPU])
        losses = [exe.run(compiled, feed=batch, fetch_list=[loss.name])[0] for batch in batches]
        found["losses"] = [float(np.asarray(one).reshape(-1)[0]) for one in losses]
        values = read_values(graph.to_program())
        if trained is not None:
            values = {name: decode(value) for name, value in trained.items()}
        graph = make_graph(test, scope, options, added, True, exe)
        for name, value in values.items():
            scope.var(name).get_tensor().set(value, CPU)
        if added is not None:
            slim.OutScaleForInferencePass(scope).apply(graph)
        found["trained"] = {name: encode(value) for name, value in values.items()}

        def record(stage):
            program = graph.to_program()
            found[stage] = list_program(program)
            if stage in ("test", "frozen"):
                found[stage + "_out"] = encode(exe.run(program, feed=batches[0], fetch_list=[out.name])[0])
            return program

        record("test")
        bits = {name: options[name] for name in ("weight_bits", "activation_bits") if name in options}
        kind = options["weight_quantize_type"]
        slim.QuantizationFreezePass(scope, CPU, weight_quantize_type=kind, **bits).apply(graph)
        program = record("frozen")
        slim.ConvertToInt8Pass(scope, CPU).apply(graph)
        values = read_values(program)
        values.update(read_values(record("int8")))
        found["values"] = {name: encode(value) for name, value in values.items()}
        slim.TransformForMobilePass().apply(graph)
        record("mobile")
    return found


def run_after_training(net, way, folder):
    """Return the program after quantization of a saved model, and its values."""
    with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(CPU)
        feed = save_model(net, folder)
        quantization = fluid.contrib.slim.quantization.PostTrainingQuantization(
            executor=exe,
            scope=fluid.global_scope(),
            model_dir=folder,
            sample_generator=lambda: iter([(row,) for row in feed]),
            batch_size=8,
            **POST[way],
        )
        program = quantization.quantize()
        found = {"program": list_program(program)}
        found["values"] = {name: encode(value) for name, value in read_values(program).items()}
    return found


def run_on_weights(net, bits, kind, folder):
    """Return the program and the values of a model whose weights alone were quantized."""
    with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        save_model(net, folder)
        fluid.contrib.slim.quantization.WeightQuantization(folder).quantize_weight_to_int(
            folder + "/out", weight_bits=bits, weight_quantize_type=kind, generate_test_model=True
        )
    with fluid.scope_guard(fluid.Scope()):
        exe, found = fluid.Executor(CPU), {}
        for name in ("test_model", "quantized_model"):
            program = fluid.io.load_inference_model(folder + "/out/" + name, exe)[0]
            values = {name: encode(value) for name, value in read_values(program).items()}
            found[name] = {"program": list_program(program), "values": values}
    return found


def save_model(net, folder):
    """Write a model and return samples of its input."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, out, _ = NETS[net]()
        exe, random = fluid.Executor(CPU), np.random.RandomState(5)
        exe.run(startup)
        fill(random, main)
        fluid.io.save_inference_model(folder, ["x"], [out], exe, main.clone(for_test=True))
        return draw(random, x, 24)


def visit_in_order():
    graph = fluid.framework.IrGraph
    for name in ("all_op_nodes", "all_var_nodes", "all_persistable_nodes"):
        visit = getattr(graph, name)
        setattr(graph, name, lambda self, visit=visit: sorted(visit(self), key=lambda node: node.id()))


if __name__ == "__main__":
    visit_in_order()
    recorded = {"training": {}, "after": {}, "weights": {}}
    for net in NETS:
        for way in WAYS:
            recorded["training"][net + " " + way] = run_training(net, way)
        for way in POST:
            recorded["after"][net + " " + way] = run_after_training(net, way, tempfile.mkdtemp())
    for bits, kind in ((8, "channel_wise_abs_max"), (16, "abs_max")):
        for net in ("mlp", "residual"):
            key = " ".join([net, str(bits), kind])
            recorded["weights"][key] = run_on_weights(net, bits, kind, tempfile.mkdtemp())
    json.dump(recorded, sys.stdout, sort_keys=True)
