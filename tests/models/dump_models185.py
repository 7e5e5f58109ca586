"""Have real Fluid 1.8.5 save small inference models of whole networks, with inputs and outputs.

    python3.7 dump_models185.py OUT.tar.xz

Runs under an interpreter that has paddlepaddle 1.8.5. The archive holds, for each network:

NAME/...      what `save_inference_model` wrote, no `op_callstack`: `__model__`, a file per variable, or
              names in NAME/files.json
NAME/io.npz   in<i> (and in<i>@lod0): the feeds in order; out<i> (out<i>@lod<j>): what the model computes
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

RNG = np.random.RandomState(5)


def real(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def whole(high, *shape):
    return RNG.randint(0, high, shape).astype("int64")


def rows(array, lengths):
    return fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace())


def convnet():
    """The operators of ResNet and MobileNet."""
    x = fluid.data("image", [None, 3, 32, 32])
    y = layers.conv2d(x, 8, 3, stride=2, padding=1, bias_attr=False)
    y = layers.pool2d(layers.batch_norm(y, act="relu"), 3, "max", 2, 1)
    shortcut = layers.batch_norm(layers.conv2d(y, 12, 1, bias_attr=False))
    y = layers.batch_norm(layers.conv2d(y, 16, 1, bias_attr=False), act="relu6")
    y = layers.batch_norm(layers.conv2d(y, 16, 3, padding=1, groups=16, bias_attr=False), act="leaky_relu")
    gate = layers.fc(
        layers.fc(layers.pool2d(y, pool_type="avg", global_pooling=True), 4, act="relu"), 16, act="sigmoid"
    )
    y = layers.elementwise_mul(layers.hard_swish(y), gate, axis=0)
    y = layers.elementwise_add(layers.batch_norm(layers.conv2d(y, 12, 1)), shortcut, act="relu")
    y = layers.concat([y, layers.prelu(y, "channel")], axis=1)
    y = layers.resize_bilinear(layers.conv2d_transpose(y, 8, filter_size=2, stride=2), out_shape=[8, 8])
    y = layers.dropout(layers.pool2d(y, 7, "avg", 1, exclusive=False), 0.3)
    y = layers.group_norm(layers.pad2d(y, [0, 1, 1, 0], "reflect"), 2)
    out = layers.fc(layers.flatten(layers.lrn(y)), 5, act="softmax")
    top, index = layers.topk(out, 2)
    return {"image": real(2, 3, 32, 32)}, [out, top, index]


def ocr():
    """Convolutions, columns of the image as a sequence, GRU and LSTM, decoding of CTC."""
    x = fluid.data("image", [None, 1, 8, 16])
    y = layers.pool2d(layers.batch_norm(layers.conv2d(x, 6, 3, padding=1), act="relu"), 2, "max", 2)
    columns = layers.im2sequence(y, filter_size=[4, 1], stride=[1, 1])
    y = layers.fc(columns, 12, act="relu")
    forward = layers.dynamic_gru(layers.fc(y, 15, bias_attr=False), 5)
    backward = layers.dynamic_gru(
        layers.fc(y, 15, bias_attr=False), 5, is_reverse=True, candidate_activation="relu"
    )
    hidden, _ = layers.dynamic_lstm(layers.fc(y, 20), 20, use_peepholes=True)
    scores = layers.fc([forward, backward, hidden], 7)
    decoded = layers.ctc_greedy_decoder(scores, blank=6)
    return {"image": real(2, 1, 8, 16)}, [
        scores,
        decoded,
        layers.sequence_pool(layers.sequence_softmax(layers.fc(scores, 1)), "max"),
    ]


def bert():
    """An encoder with embeddings of words, positions and kinds, and masked attention."""
    ids = fluid.data("ids", [None, 6, 1], "int64")
    kinds = fluid.data("kinds", [None, 6, 1], "int64")
    mask = fluid.data("mask", [None, 6, 1])
    place = layers.range(0, 6, 1, "int64")
    x = layers.embedding(ids, [20, 8]) + layers.embedding(kinds, [2, 8])
    x = layers.elementwise_add(x, fluid.embedding(place, [12, 8]), axis=1)
    x = layers.layer_norm(x, begin_norm_axis=2)
    bias = layers.scale(layers.matmul(mask, mask, transpose_y=True), 1e4, -1.0, bias_after_scale=False)
    bias = layers.stack([bias] * 2, axis=1)
    for _ in range(2):
        heads = [
            layers.transpose(layers.reshape(layers.fc(x, 8, num_flatten_dims=2), [0, 0, 2, 4]), [0, 2, 1, 3])
            for _ in range(3)
        ]
        weights = layers.softmax(layers.matmul(heads[0], heads[1], transpose_y=True, alpha=0.5) + bias)
        weights = layers.dropout(weights, 0.1, dropout_implementation="upscale_in_train")
        context = layers.reshape(layers.transpose(layers.matmul(weights, heads[2]), [0, 2, 1, 3]), [0, 0, 8])
        x = layers.layer_norm(x + layers.fc(context, 8, num_flatten_dims=2), begin_norm_axis=2)
        y = layers.fc(layers.fc(x, 16, num_flatten_dims=2, act="gelu"), 8, num_flatten_dims=2)
        x = layers.layer_norm(x + y, begin_norm_axis=2)
    first = layers.squeeze(layers.slice(x, [1], [0], [1]), [1])
    mask_value = np.array([[1], [1], [1], [1], [0], [0]], "float32")
    feeds = {
        "ids": whole(20, 2, 6, 1),
        "kinds": whole(2, 2, 6, 1),
        "mask": np.stack([np.ones((6, 1), "float32"), mask_value]),
    }
    return feeds, [x, layers.fc(first, 8, act="tanh")]


def ctr():
    """Bags of ids with show and click, factorization, a cross network."""
    ids = [fluid.data(f"ids{i}", [None, 1], "int64", lod_level=1) for i in range(2)]
    dense = fluid.data("dense", [None, 4])
    bags = [layers.sequence_pool(layers.embedding(i, [30, 6], is_sparse=True), "sum") for i in ids]
    words = layers.sequence_pool(layers.embedding(ids[0], [30, 3]), "sqrt")
    crossed = layers.square(layers.sums(bags)) - layers.sums([layers.square(bag) for bag in bags])
    first = layers.reduce_sum(crossed, dim=1, keep_dim=True)
    x = layers.concat([*bags, words, dense, layers.log(dense * dense + 1.0)], axis=1)
    for _ in range(2):
        x = x + layers.elementwise_mul(x, layers.fc(x, 1), axis=0)
    out = layers.sigmoid(layers.fc(layers.data_norm(x), 1) + layers.scale(first, 0.5))
    clipped = layers.clip(layers.cos_sim(bags[0], bags[1]), -0.5, 0.5)
    feeds = {
        "ids0": rows(whole(30, 5, 1), [2, 3]),
        "ids1": rows(whole(30, 4, 1), [3, 1]),
        "dense": real(2, 4),
    }
    return feeds, [out, clipped]


def translator():
    """An encoder of a sequence and a beam search in a loop."""
    source = fluid.data("source", [None, 1], "int64", lod_level=1)
    first_ids = fluid.data("first_ids", [None, 1], "int64", lod_level=2)
    first_scores = fluid.data("first_scores", [None, 1], "float32", lod_level=2)
    encoded = layers.fc(layers.embedding(source, [12, 6]), 8, act="tanh")
    state = layers.fc(layers.sequence_pool(encoded, "last"), 6, act="tanh")
    counter = layers.zeros([1], "int64", force_cpu=True)
    limit = layers.fill_constant([1], "int64", 4)
    states, ids, scores = (layers.create_array(kind) for kind in ("float32", "int64", "float32"))
    for value, array in ((state, states), (first_ids, ids), (first_scores, scores)):
        layers.array_write(value, counter, array)
    running = layers.less_than(counter, limit)
    loop = layers.While(running)
    with loop.block():
        last_ids, last_scores, last_state = (layers.array_read(a, counter) for a in (ids, scores, states))
        spread = layers.sequence_expand(last_state, last_scores)
        word = layers.embedding(last_ids, [12, 6], param_attr="target_words")
        state = layers.fc([spread, word], 6, act="tanh")
        top, index = layers.topk(layers.softmax(layers.fc(layers.lod_reset(state, last_scores), 12)), 4)
        total = layers.elementwise_add(layers.log(top), layers.reshape(last_scores, [-1]), axis=0)
        new_ids, new_scores = layers.beam_search(last_ids, last_scores, index, total, 2, end_id=1)
        layers.increment(counter)
        for value, array in ((state, states), (new_ids, ids), (new_scores, scores)):
            layers.array_write(value, counter, array)
        layers.logical_and(
            layers.less_than(counter, limit), layers.logical_not(layers.is_empty(new_ids)), out=running
        )
    found, found_scores = layers.beam_search_decode(ids, scores, 2, end_id=1)
    lod = [[1, 1], [1, 1]]
    place = fluid.CPUPlace()
    feeds = {
        "source": rows(whole(12, 5, 1), [2, 3]),
        "first_ids": fluid.create_lod_tensor(np.zeros((2, 1), "int64"), lod, place),
        "first_scores": fluid.create_lod_tensor(np.ones((2, 1), "float32"), lod, place),
    }
    return feeds, [found, found_scores]


def branches():
    """Control flow of 1.8: cond, case, while_loop, StaticRNN, DynamicRNN."""
    x = fluid.data("x", [3, 4])
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    big = layers.cond(layers.reduce_mean(x) > 0.0, lambda: x + 1.0, lambda: x * 2.0)
    chosen = layers.case([(layers.reduce_sum(x) > 99.0, lambda: x)], lambda: layers.relu(x))
    step = layers.fill_constant([1], "int64", 0)
    _, looped = layers.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, layers.tanh(y) + x], [step, x])
    rnn = layers.StaticRNN()
    rows_of_x = layers.unsqueeze(x, [1])
    with rnn.step():
        row = rnn.step_input(rows_of_x)
        memory = rnn.memory(shape=[-1, 4], batch_ref=row)
        new = layers.fc([row, memory], 4, act="tanh")
        rnn.update_memory(memory, new)
        rnn.output(new)
    dynamic = layers.DynamicRNN()
    embedded = layers.embedding(words, [9, 4])
    with dynamic.block():
        word = dynamic.step_input(embedded)
        memory = dynamic.memory(shape=[4])
        new = layers.fc([word, memory], 4, act="sigmoid")
        dynamic.update_memory(memory, new)
        dynamic.output(new)
    return {"x": real(3, 4), "words": rows(whole(9, 6, 1), [1, 3, 2])}, [
        big,
        chosen,
        looped,
        rnn(),
        dynamic(),
    ]


def ssd():
    """Boxes of two feature maps, decoded and suppressed."""
    image = fluid.data("image", [None, 3, 32, 32])
    one = layers.conv2d(image, 6, 3, stride=4, padding=1, act="relu")
    two = layers.conv2d(one, 6, 3, stride=2, padding=1, act="relu")
    places, scores, boxes, variances = layers.multi_box_head(
        [one, two],
        image,
        32,
        4,
        [[2.0], [2.0]],
        min_sizes=[8.0, 16.0],
        max_sizes=[16.0, 30.0],
        offset=0.5,
        flip=True,
    )
    found = layers.detection_output(
        places, scores, boxes, variances, nms_threshold=0.4, keep_top_k=12, score_threshold=0.05
    )
    return {"image": real(2, 3, 32, 32)}, [found, scores]


def yolo():
    image, size = fluid.data("image", [None, 3, 32, 32]), fluid.data("size", [None, 2], "int32")
    grid = layers.conv2d(layers.conv2d(image, 8, 3, stride=4, padding=1, act="leaky_relu"), 14, 1)
    boxes, scores = layers.yolo_box(grid, size, [10, 13, 16, 30], 2, 0.05, 4)
    found = layers.multiclass_nms(
        boxes, layers.transpose(scores, [0, 2, 1]), 0.05, 20, 10, 0.45, background_label=-1
    )
    return {"image": real(2, 3, 32, 32), "size": np.array([[32, 32], [64, 48]], "int32")}, [found]


def rcnn():
    """Proposals of a feature map, features of each, classes and boxes."""
    image, info = fluid.data("image", [1, 3, 32, 32]), fluid.data("info", [1, 3])
    features = layers.conv2d(image, 6, 3, stride=4, padding=1, act="relu")
    anchors, variances = layers.anchor_generator(
        features, [8, 16], [0.5, 1.0], [1.0, 1.0, 1.0, 1.0], [4.0, 4.0]
    )
    scores = layers.conv2d(features, 4, 1, act="sigmoid")
    deltas = layers.scale(layers.conv2d(features, 16, 1), 0.1)
    rois, _ = layers.generate_proposals(scores, deltas, info, anchors, variances, 50, 8, 0.6, 1.0)
    aligned = layers.roi_align(features, rois, 2, 2, 0.25, 2)
    pooled = layers.roi_pool(features, rois, 2, 2, 0.25)
    hidden = layers.fc(layers.concat([aligned, pooled], axis=1), 8, act="relu")
    classes = layers.softmax(layers.fc(hidden, 3))
    moved = layers.box_coder(
        rois,
        [0.1, 0.1, 0.2, 0.2],
        layers.reshape(layers.fc(hidden, 4), [-1, 1, 4]),
        "decode_center_size",
        False,
        axis=1,
    )
    return {"image": real(1, 3, 32, 32), "info": np.array([[32, 32, 1]], "float32")}, [
        rois,
        classes,
        layers.exp(moved),
    ]


#: Network, and the file names of the program and of the parameters.
NETWORKS = {
    "convnet": (convnet, None, None),
    "ocr": (ocr, "model", "params"),
    "bert": (bert, "__model__", "__params__"),
    "ctr": (ctr, None, "all.params"),
    "translator": (translator, "beam.pb", None),
    "branches": (branches, None, None),
    "ssd": (ssd, None, None),
    "yolo": (yolo, None, "params"),
    "rcnn": (rcnn, None, None),
}


def save(name, folder):
    network, model, params = NETWORKS[name]
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 9
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        feeds, outs = network()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for variable in sorted(main.list_vars(), key=lambda v: v.name):
            if variable.persistable and len(variable.shape) == 1 and "batch_s" not in variable.name:
                tensor = fluid.global_scope().find_var(variable.name).get_tensor()
                tensor.set(RNG.uniform(0.5, 1.5, variable.shape).astype("float32"), fluid.CPUPlace())
        where = Path(folder) / name
        fluid.io.save_inference_model(str(where), list(feeds), outs, exe, main, model, params)
        program, names, targets = fluid.io.load_inference_model(str(where), exe, model, params)
        values = exe.run(program, feed=feeds, fetch_list=targets, return_numpy=False)
    strip(where / (model or "__model__"))
    (where / "files.json").write_text(json.dumps([model, params]))
    arrays = {}
    for prefix, tensors in (("in", [feeds[n] for n in names]), ("out", values)):
        for i, tensor in enumerate(tensors):
            arrays[f"{prefix}{i}"] = np.array(tensor)
            for level, offsets in enumerate(tensor.lod() if hasattr(tensor, "lod") else []):
                arrays[f"{prefix}{i}@lod{level}"] = np.array(offsets)
    np.savez(where / "io.npz", **arrays)
    return {op.type for block in program.blocks for op in block.ops}


def strip(path):
    import paddle.fluid.proto.framework_pb2 as pb2

    program = pb2.ProgramDesc.FromString(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [attr for attr in op.attrs if attr.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    path.write_bytes(program.SerializeToString())


def main(out):
    from writing import write_archive  # not of the tests, which import this module

    with tempfile.TemporaryDirectory() as folder:
        types = {name: save(name, folder) for name in NETWORKS}
        write_archive(out, folder)
    print(
        len(types),
        "models;",
        Path(out).stat().st_size,
        "bytes;",
        " ".join(sorted(set().union(*types.values()))),
    )


if __name__ == "__main__":
    main(sys.argv[1])
