"""Detectors that classify anchors at once (SSD, YOLOv3, EAST), built by Fluid's API only.

They run on the real Fluid 1.8.5 as well (Python 3.7), whose programs, losses and detections are golden: see
tests/interop/dumps/dump_control.py. ``TRAINED`` give a loss and a feed, ``DECODED`` what to fetch and a feed.
"""

import numpy as np

SEED = 11
STEPS = 5
RATE = 0.01
CLASSES = 3
ANCHORS = [6, 8, 12, 16, 20, 14, 24, 30, 36, 28, 44, 48]
#: Objects of two images, as shares of the image, and their classes.
BOXES = np.array(
    [
        [0.1, 0.1, 0.5, 0.5], [0.55, 0.3, 0.9, 0.9], [0.05, 0.6, 0.3, 0.95], [0.2, 0.2, 0.6, 0.7],
        [0.5, 0.1, 0.8, 0.4],
    ],
    "float32",
)  # fmt: skip
KINDS = np.array([[1], [2], [1], [2], [1]], "int32")
OBJECTS = [[3, 2]]


def lod(fluid, array):
    return fluid.create_lod_tensor(array, OBJECTS, fluid.CPUPlace())


def pixels():
    return np.random.RandomState(5).rand(2, 3, 64, 64).astype("float32")


def features(fluid, image):
    """Maps of 16, 8 and 4 places along each side."""
    layers = fluid.layers
    x = layers.conv2d(image, 8, 3, stride=2, padding=1, act="relu")
    maps = [layers.conv2d(x, 8, 3, stride=2, padding=1, act="relu")]
    for _ in range(2):
        maps.append(layers.conv2d(maps[-1], 8, 3, stride=2, padding=1, act="relu"))
    return maps


def ssd_head(fluid, image):
    return fluid.layers.multi_box_head(
        features(fluid, image), image, 64, CLASSES, [[2.0], [2.0, 3.0], [2.0]], min_ratio=20, max_ratio=90,
        offset=0.5, flip=True, clip=True, kernel_size=3, pad=1,
    )  # fmt: skip


def ssd(fluid):
    """Liu et al., 2016."""
    layers = fluid.layers
    image = fluid.data("image", [None, 3, 64, 64], "float32")
    box = fluid.data("box", [None, 4], "float32", lod_level=1)
    kind = fluid.data("kind", [None, 1], "int32", lod_level=1)
    place, confidence, anchors, variances = ssd_head(fluid, image)
    loss = layers.ssd_loss(place, confidence, box, kind, anchors, variances, overlap_threshold=0.4)
    feed = {"image": pixels(), "box": lod(fluid, BOXES), "kind": lod(fluid, KINDS)}
    return layers.reduce_sum(loss), feed


def ssd_detections(fluid):
    """What an SSD finds, and the mean average precision of that."""
    image = fluid.data("image", [None, 3, 64, 64], "float32")
    box = fluid.data("box", [None, 4], "float32", lod_level=1)
    kind = fluid.data("kind", [None, 1], "int32", lod_level=1)
    found = fluid.layers.detection_output(
        *ssd_head(fluid, image), nms_threshold=0.45, nms_top_k=40, keep_top_k=30, score_threshold=0.05
    )
    metric = fluid.metrics.DetectionMAP(found, kind, box, class_num=CLASSES, overlap_threshold=0.1)
    feed = {"image": pixels(), "box": lod(fluid, BOXES), "kind": lod(fluid, KINDS)}
    return [found, *metric.get_map_var()], feed


def yolo_outputs(fluid, image):
    """The outputs of two heads, with the pixels of a cell and the anchors of each."""
    maps = features(fluid, image)
    outputs = [fluid.layers.conv2d(one, 3 * (5 + CLASSES), 1) for one in maps[1:]]
    return list(zip(outputs, (8, 16), ([0, 1, 2], [3, 4, 5])))  # noqa: B905  (Python 3.7)


def yolov3(fluid):
    """Redmon and Farhadi, 2018; the scores are those of a mixture of images."""
    layers = fluid.layers
    image = fluid.data("image", [None, 3, 64, 64], "float32")
    box = fluid.data("box", [None, 4, 4], "float32")
    kind = fluid.data("kind", [None, 4], "int32")
    score = fluid.data("score", [None, 4], "float32")
    losses = [
        layers.mean(layers.yolov3_loss(
            x, box, kind, ANCHORS, mask, CLASSES, 0.5, ratio, gt_score=score, use_label_smooth=True))
        for x, ratio, mask in yolo_outputs(fluid, image)
    ]  # fmt: skip
    boxes, kinds, scores = (
        np.zeros((2, 4, 4), "float32"),
        np.zeros((2, 4), "int32"),
        np.zeros((2, 4), "float32"),
    )
    middle = np.concatenate([(BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]], 1)
    boxes[0, :3], boxes[1, :2] = middle[:3], middle[3:]
    kinds[0, :3], kinds[1, :2] = KINDS[:3, 0], KINDS[3:, 0]
    scores[0, :3], scores[1, :2] = [1, 0.7, 0.3], [0.6, 1]
    return sum(losses), {"image": pixels(), "box": boxes, "kind": kinds, "score": scores}


def yolo_detections(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 3, 64, 64], "float32")
    size = fluid.data("size", [None, 2], "int32")
    found = []
    for x, ratio, mask in yolo_outputs(fluid, image):
        anchors = [side for index in mask for side in ANCHORS[2 * index : 2 * index + 2]]
        found.append(layers.yolo_box(x, size, anchors, CLASSES, 0.3, ratio))
    boxes = layers.concat([one[0] for one in found], axis=1)
    scores = layers.transpose(layers.concat([one[1] for one in found], axis=1), [0, 2, 1])
    out = layers.multiclass_nms(boxes, scores, 0.2, 100, 20, 0.45, normalized=False, background_label=-1)
    ranked, index = layers.matrix_nms(boxes, scores, 0.2, 0.1, 50, 20, normalized=False, return_index=True)
    return [out, ranked, index], {"image": pixels(), "size": np.array([[64, 64], [48, 80]], "int32")}


def east(fluid):
    """Zhou et al., 2017: quadrangles at every pixel of a map, merged."""
    layers = fluid.layers
    image = fluid.data("image", [None, 3, 64, 64], "float32")
    x = features(fluid, image)[1]
    corners = layers.polygon_box_transform(layers.conv2d(x, 8, 1))
    # The network is not trained: squares of 24 pixels around every place of the map.
    square = layers.assign(np.array([[-12, -12, 12, -12, 12, 12, -12, 12]], "float32"))
    boxes = layers.reshape(layers.transpose(corners, [0, 2, 3, 1]), [0, -1, 8]) + square
    scores = layers.reshape(layers.sigmoid(layers.conv2d(x, 1, 1)), [0, 1, -1])
    return [layers.locality_aware_nms(boxes, scores, 0.3, 50, 10, 0.4)], {"image": pixels()}


TRAINED = {each.__name__: each for each in (ssd, yolov3)}
DECODED = {each.__name__: each for each in (ssd_detections, yolo_detections, east)}
