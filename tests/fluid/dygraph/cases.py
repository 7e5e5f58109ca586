"""Programs of layers of ``fluid.dygraph`` in static mode; run by the real 1.8.5, this file writes them.

path/to/python3.7 tests/fluid/dygraph/cases.py | tail -n 1 | xz > tests/golden/dygraph185.json.xz
"""

import base64
import json
import sys

try:
    import paddlelike.fluid as fluid
except ImportError:  # the real system
    import paddle.fluid as fluid

D = fluid.dygraph
PA = fluid.ParamAttr
data = fluid.data


class Net(fluid.dygraph.Layer):
    def __init__(self, name=None):
        super().__init__(name)
        self.a = D.Linear(3, 4, act="relu")
        self.b = D.Conv2D(1, 2, 3)
        self.p = self.create_parameter([4], attr=fluid.ParamAttr(name="mine"))
        self.items = D.LayerList([D.Linear(4, 4) for _ in range(3)])
        self.add_sublayer("x", D.Sequential(D.Linear(4, 5), D.BatchNorm(5)))

    def forward(self, x):
        y = self.a(x)
        for layer in self.items:
            y = layer(y)
        self.create_variable(name="v", dtype="float32", persistable=False)
        return self.x(y)


def f32(shape, name="x"):
    x = data(name, shape)
    x.stop_gradient = False
    return x


def i64(shape, name="i"):
    return data(name, shape, "int64")


PA = fluid.ParamAttr
CASES = {
    "conv2d": lambda: D.Conv2D(3, 4, 3)(f32([None, 3, 8, 8])),
    "conv2d_full": lambda: D.Conv2D(
        4,
        8,
        (3, 2),
        stride=2,
        padding=(1, 0),
        dilation=2,
        groups=2,
        param_attr=PA(name="w"),
        bias_attr=False,
        use_cudnn=False,
        act="relu",
    )(f32([None, 4, 9, 9])),
    "conv2d_dw": lambda: D.Conv2D(4, 8, 3, groups=4, use_cudnn=False, act="leaky_relu")(f32([None, 4, 9, 9])),
    "conv2d_g1": lambda: D.Conv2D(1, 2, 3, groups=1, use_cudnn=False)(f32([None, 1, 9, 9])),
    "conv2d_g": lambda: D.Conv2D(4, 8, 3, groups=4)(f32([None, 4, 9, 9])),
    "conv3d": lambda: D.Conv3D(3, 4, 3, act="relu")(f32([None, 3, 8, 8, 8])),
    "conv3d_full": lambda: D.Conv3D(4, 4, (1, 2, 3), 2, 1, 1, 2, None, False)(f32([None, 4, 8, 8, 8])),
    "conv2dt": lambda: D.Conv2DTranspose(3, 4, 3)(f32([None, 3, 8, 8])),
    "conv2dt_full": lambda: D.Conv2DTranspose(
        4, 4, 3, output_size=[20, 20], padding=1, stride=2, groups=2, act="tanh", bias_attr="bb"
    )(f32([None, 4, 10, 10])),
    "conv2dt_dw": lambda: D.Conv2DTranspose(4, 4, 3, groups=4, use_cudnn=False)(f32([None, 4, 10, 10])),
    "conv3dt": lambda: D.Conv3DTranspose(3, 4, 2)(f32([None, 3, 4, 4, 4])),
    "conv3dt_b": lambda: D.Conv3DTranspose(3, 4, 2, bias_attr=PA(name="b"), act="relu")(
        f32([None, 3, 4, 4, 4])
    ),
    "pool": lambda: D.Pool2D(2, "avg", 2)(f32([None, 3, 8, 8])),
    "pool_g": lambda: D.Pool2D(global_pooling=True, exclusive=False, ceil_mode=True)(f32([None, 3, 8, 8])),
    "linear": lambda: D.Linear(3, 4)(f32([None, 3])),
    "linear_full": lambda: D.Linear(3, 4, "w", "b", "relu")(f32([None, 5, 3])),
    "linear_nob": lambda: D.Linear(3, 4, bias_attr=False, act="sigmoid")(f32([None, 5, 3])),
    "linear_64": lambda: D.Linear(3, 4, dtype="float64")(data("x", [None, 3], "float64")),
    "in": lambda: D.InstanceNorm(3)(f32([None, 3, 8, 8])),
    "bn": lambda: D.BatchNorm(3, act="relu")(f32([None, 3, 8, 8])),
    "bn_full": lambda: D.BatchNorm(
        3,
        is_test=True,
        momentum=0.8,
        epsilon=1e-3,
        param_attr=PA(learning_rate=0.0),
        moving_mean_name="mm",
        moving_variance_name="mv",
        do_model_average_for_mean_and_var=False,
        use_global_stats=True,
        trainable_statistics=True,
        in_place=True,
    )(f32([None, 3, 8, 8])),
    "bn_nhwc": lambda: D.BatchNorm(3, data_layout="NHWC")(f32([None, 8, 8, 3])),
    "dropout": lambda: D.Dropout(0.3)(f32([None, 3])),
    "dropout_s": lambda: D.Dropout(0.3, seed=5, dropout_implementation="upscale_in_train", is_test=True)(
        f32([None, 3])
    ),
    "dropout_0": lambda: D.Dropout(0.3, seed=0)(f32([None, 3])),
    "emb": lambda: D.Embedding([10, 4])(i64([None, 1])),
    "emb_full": lambda: D.Embedding([10, 4], is_sparse=True, padding_idx=-1, param_attr="e")(i64([None, 5])),
    "emb_d": lambda: D.Embedding([10, 4], is_sparse=True, is_distributed=True, padding_idx=2)(i64([None, 5])),
    "ln": lambda: D.LayerNorm([4, 5])(f32([None, 4, 5])),
    "ln_i": lambda: D.LayerNorm(5, scale=False, act="relu")(f32([None, 4, 5])),
    "ln_s": lambda: D.LayerNorm(5, shift=False, epsilon=1e-3)(f32([None, 4, 5])),
    "gru": lambda: D.GRUUnit(12)(f32([None, 12]), data("h", [None, 4]))[0],
    "gru_f": lambda: D.GRUUnit(
        12, bias_attr=False, activation="relu", gate_activation="identity", origin_mode=True
    )(f32([None, 12]), data("h", [None, 4]))[1],
    "nce": lambda: D.NCE(20, 8, num_neg_samples=5, seed=1)(f32([None, 8]), i64([None, 1])),
    "nce_b": lambda: D.NCE(
        4, 8, bias_attr=PA(), sampler="custom_dist", custom_dist=[0.1, 0.2, 0.3, 0.4], is_sparse=True
    )(f32([None, 8]), i64([None, 1]), data("sw", [None, 1])),
    "nce_l": lambda: D.NCE(4, 8, sampler="log_uniform")(f32([None, 8]), i64([None, 1])),
    "prelu": lambda: D.PRelu("all")(f32([None, 3, 4, 4])),
    "prelu_c": lambda: D.PRelu("channel", channel=3, param_attr=fluid.initializer.Constant(0.5))(
        f32([None, 3, 4, 4])
    ),
    "prelu_e": lambda: D.PRelu("element", input_shape=[5, 3, 4, 4])(f32([None, 3, 4, 4])),
    "btp": lambda: D.BilinearTensorProduct(3, 4, 5)(f32([None, 3]), data("y", [None, 4])),
    "btp_n": lambda: D.BilinearTensorProduct(3, 4, 5, name="nn", act="relu", bias_attr=False)(
        f32([None, 3]), data("y", [None, 4])
    ),
    "seqconv": lambda: D.nn.SequenceConv("sc", 4)(data("x", [None, 3], lod_level=1)),
    "rowconv": lambda: D.nn.RowConv("rc", 2, act="relu")(data("x", [None, 3], lod_level=1)),
    "gn": lambda: D.GroupNorm(4, 2)(f32([None, 4, 5, 5])),
    "gn_f": lambda: D.GroupNorm(4, 2, param_attr=PA(), bias_attr=PA(), act="relu")(f32([None, 4, 5, 5])),
    "sn": lambda: D.SpectralNorm([4, 5, 3], dim=1, power_iters=2)(data("w", [4, 5, 3])),
    "tree": lambda: D.TreeConv(5, 6)(f32([1, 10, 5]), data("e", [1, 10, 2], "int32")),
    "tree_f": lambda: D.TreeConv(5, 6, 2, 3, None, name="tt")(
        f32([1, 10, 5]), data("e", [1, 10, 2], "int32")
    ),
    "mse": lambda: D.MSELoss()(f32([None, 3]), data("y", [None, 3])),
    "mse_s": lambda: D.MSELoss("sum")(f32([None, 3]), data("y", [None, 3])),
    "mse_n": lambda: D.MSELoss("none")(f32([None, 3]), data("y", [None, 3])),
    "l1": lambda: D.L1Loss("sum")(f32([None, 3]), data("y", [None, 3])),
    "bce": lambda: D.BCELoss()(f32([None, 3]), data("y", [None, 3])),
    "bce_w": lambda: D.BCELoss(data("w", [3]), "none")(f32([None, 3]), data("y", [None, 3])),
    "nll": lambda: D.NLLLoss()(f32([None, 3]), i64([None])),
    "nll_w": lambda: D.NLLLoss(data("w", [3]), "sum", 1)(f32([None, 3]), i64([None])),
    "nll_3": lambda: D.NLLLoss(reduction="none")(f32([2, 3, 5]), i64([2, 5])),
    "nll_4": lambda: D.NLLLoss(reduction="none")(f32([2, 3, 5, 4]), i64([2, 5, 4])),
    "net": lambda: Net()(f32([None, 3])),
    "net_named": lambda: Net("scope")(f32([None, 3])),
}


def twice():
    layer = fluid.Linear(3, 3)
    return layer(f32([None, 3])) + layer(data("y", [None, 3]))


CASES["twice"] = twice


def build(case):
    """Return the main and the startup program, trained where there is something to train."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = fluid.layers.mean(CASES[case]())
        if case != "sn" and any(p.trainable for p in main.all_parameters()):
            fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup


def encode(program):
    """Return the program's bytes as text, without the paths of this machine."""
    message = fluid.proto.framework_pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
    for block in message.blocks:
        for op in block.ops:
            for attr in [a for a in op.attrs if a.name in ("op_callstack", "op_namescope")]:
                op.attrs.remove(attr)
    return base64.b64encode(message.SerializeToString()).decode()


if __name__ == "__main__":
    json.dump({case: [encode(p) for p in build(case)] for case in CASES}, sys.stdout)
