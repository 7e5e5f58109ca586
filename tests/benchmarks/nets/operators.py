"""One library as a process of its own that runs single operators.

    python operators.py fluid|numpy|fast

It reads lines with the name of an operator and answers each with a line of JSON: processor seconds of a run,
the best of some, and the sum of the absolute values it computed. Python 3.7 runs it, for Fluid 1.8.5.
"""

import importlib
import json
import os
import sys
import time

import numpy as np

_rng = np.random.RandomState(0)


def _boxes(count, scale=100.0):
    center, size = _rng.uniform(0, scale, (count, 2)), _rng.uniform(5, 30, (count, 2))
    return np.concatenate([center - size / 2, center + size / 2], 1).astype("float32")


def _quads(count):
    x = np.sort(_rng.uniform(0, 400, (count, 1)), 0)
    center, size = np.concatenate([x, _rng.uniform(0, 20, (count, 1))], 1), _rng.uniform(5, 30, (count, 2))
    (left, top), (right, bottom) = (center - size / 2).T, (center + size / 2).T
    return np.stack([left, top, right, top, right, bottom, left, bottom], 1).astype("float32")


def _sequences(fluid, rows, lengths):
    return fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())


def _draw_lengths(low, more, count):
    return [low + int(k) for k in _rng.randint(0, more, count)]


def nms(fluid, layers):
    boxes, scores = layers.data("boxes", [2000, 4]), layers.data("scores", [21, 2000])
    out = layers.multiclass_nms(boxes, scores, 0.01, 400, 200, nms_threshold=0.45)
    feed = {"boxes": np.stack([_boxes(2000, 300)] * 4) / 300, "scores": _rng.uniform(0, 1, (4, 21, 2000))}
    return out, feed


def locality_boxes(fluid, layers):
    boxes, scores = layers.data("boxes", [4000, 4]), layers.data("scores", [1, 4000])
    out = layers.locality_aware_nms(boxes, scores, 0.1, 1000, 200, nms_threshold=0.3)
    return out, {"boxes": _boxes(4000, 300)[None], "scores": _rng.uniform(0, 1, (1, 1, 4000))}


def locality_quads(fluid, layers):
    boxes, scores = layers.data("boxes", [4000, 8]), layers.data("scores", [1, 4000])
    out = layers.locality_aware_nms(boxes, scores, 0.1, 1000, 200, nms_threshold=0.3)
    return out, {"boxes": _quads(4000)[None], "scores": _rng.uniform(0, 1, (1, 1, 4000))}


def proposals(fluid, layers):
    count, high, wide = 3, 50, 68
    shapes = {"scores": [count, high, wide], "deltas": [4 * count, high, wide], "info": [3]}
    given = [layers.data(name, shape) for name, shape in shapes.items()]
    fixed = [
        layers.data(n, [high, wide, count, 4], append_batch_size=False) for n in ("anchors", "variances")
    ]
    out, _ = layers.generate_proposals(
        *(given + fixed), pre_nms_top_n=6000, post_nms_top_n=1000, nms_thresh=0.7
    )
    y, x = np.mgrid[:high, :wide] * 16.0
    anchors = np.stack([np.stack([x - z, y - z, x + z, y + z], -1) for z in (32, 64, 128)], 2)
    feed = {
        "scores": _rng.uniform(0, 1, (1, count, high, wide)),
        "deltas": 0.2 * _rng.randn(1, 4 * count, high, wide),
        "info": np.array([[800, 1088, 1]]),
        "anchors": anchors,
        "variances": np.ones_like(anchors),
    }
    return out, feed


def iou(fluid, layers):
    return layers.iou_similarity(layers.data("a", [4]), layers.data("b", [4])), {
        "a": _boxes(100),
        "b": _boxes(8000),
    }


def match(fluid, layers):
    out, _ = layers.bipartite_match(layers.data("a", [8000], lod_level=1), "per_prediction", 0.5)
    return out, {"a": _sequences(fluid, _rng.uniform(0, 1, (60, 8000)).astype("float32"), [20, 25, 15])}


def _crf(labels):
    def build(fluid, layers):
        emission = layers.data("e", [labels], lod_level=1)
        label = layers.data("y", [1], dtype="int64", lod_level=1)
        emission.stop_gradient = False
        cost = layers.mean(layers.linear_chain_crf(emission, label, fluid.ParamAttr(name="w")))
        fluid.backward.append_backward(cost)
        lengths = _draw_lengths(20, 40, 32)
        rows = sum(lengths)
        labels_of_rows = _rng.randint(0, labels, (rows, 1)).astype("int64")
        emissions = _rng.randn(rows, labels).astype("float32")
        return cost, {
            "e": _sequences(fluid, emissions, lengths),
            "y": _sequences(fluid, labels_of_rows, lengths),
        }

    return build


def viterbi(fluid, layers):
    emission = layers.data("e", [60], lod_level=1)
    layers.create_parameter([62, 60], "float32", attr=fluid.ParamAttr(name="w"))
    lengths = _draw_lengths(20, 40, 32)
    out = layers.crf_decoding(emission, fluid.ParamAttr(name="w"))
    return out, {"e": _sequences(fluid, _rng.randn(sum(lengths), 60).astype("float32"), lengths)}


def edit_distance(fluid, layers):
    names = ("a", "b")
    given = [layers.data(name, [1], dtype="int64", lod_level=1) for name in names]
    out, _ = layers.edit_distance(given[0], given[1], False)
    feed = {}
    for name in names:
        lengths = _draw_lengths(100, 60, 32)
        feed[name] = _sequences(fluid, _rng.randint(1, 50, (sum(lengths), 1)).astype("int64"), lengths)
    return out, feed


def _pool(channels, apply):
    def build(fluid, layers):
        x, regions = layers.data("x", [channels, 50, 68]), layers.data("rois", [4], lod_level=1)
        x.stop_gradient = False
        out = layers.mean(apply(layers, x, regions))
        fluid.backward.append_backward(out)
        feed = {"x": _rng.randn(2, channels, 50, 68), "rois": _sequences(fluid, _boxes(256, 700), [128, 128])}
        return out, feed

    return build


OPERATORS = {
    "nms": nms,
    "locality_boxes": locality_boxes,
    "locality_quads": locality_quads,
    "proposals": proposals,
    "iou": iou,
    "match": match,
    "crf_60_labels": _crf(60),
    "crf_9_labels": _crf(9),
    "viterbi": viterbi,
    "edit_distance": edit_distance,
    "roi_pool": _pool(256, lambda layers, x, rois: layers.roi_pool(x, rois, 7, 7, 1 / 16.0)),
    "psroi_pool": _pool(490, lambda layers, x, rois: layers.psroi_pool(x, rois, 10, 1 / 16.0, 7, 7)),
}


def prepare(fluid, name):
    """Return a function that runs an operator and returns what it computes."""
    _rng.seed(0)
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out, feed = OPERATORS[name](fluid, fluid.layers)
    feed = {
        key: value.astype("float32") if hasattr(value, "astype") else value for key, value in feed.items()
    }
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.core.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)

    def run():
        (found,) = exe.run(
            main, feed=feed, fetch_list=[out], scope=scope, return_numpy=False, use_program_cache=True
        )
        return np.array(found)

    return run


def main():
    os.environ["FLAGS_use_fast_kernels"] = str(int(sys.argv[1] == "fast"))
    fluid = importlib.import_module("paddle.fluid" if sys.argv[1] == "fluid" else "paddlelike")
    runs = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in runs:
            runs.clear()  # one at a time holds memory
            runs[name] = prepare(fluid, name)
            runs[name]()
        times = []
        for _ in range(5):
            begin = time.process_time()
            out = runs[name]()
            times.append(time.process_time() - begin)
        answer = {"cpu": min(times), "sum": float(np.abs(out.astype("float64")).sum())}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
