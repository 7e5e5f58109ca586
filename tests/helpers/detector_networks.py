"""Detectors that propose regions, built by Fluid's API only.

They run on the real Fluid 1.8.5 as well (Python 3.7), whose programs and losses are golden: see
tests/interop/dumps/dump_control.py. ``TRAINED`` give a loss and a feed. Nothing in them is chosen at random.
"""

import numpy as np

SEED = 7
STEPS = 5
RATE = 0.02
CLASSES, SIZES = 4, (12, 24, 40)
INFO = np.array([[64, 64, 1.0], [48, 60, 1.25]], "float32")
#: Objects of two images, in the original sizes.
BOXES = np.array(
    [[4, 6, 30, 33], [35, 20, 60, 58], [2, 40, 20, 60], [5, 5, 25, 30], [20, 10, 44, 36]], "float32"
)
OBJECTS = [[3, 2]]


def lod(fluid, array, lengths):
    return fluid.create_lod_tensor(array, lengths, fluid.CPUPlace())


def make_feed(fluid):
    """Two images, their objects with classes and outlines, and a grid of anchors."""
    anchors = np.empty((8, 8, len(SIZES), 4), "float32")
    for y, x, a in np.ndindex(*anchors.shape[:3]):
        half = SIZES[a] / 2.0
        anchors[y, x, a] = [x * 8 + 4 - half, y * 8 + 4 - half, x * 8 + 4 + half, y * 8 + 4 + half]
    outlines = [[[a, b], [c, b], [c, d], [(a + c) / 2, d - 4], [a, d]] for a, b, c, d in BOXES]
    ints = {"classes": [[1], [2], [3], [1], [3]], "crowd": [[0], [0], [0], [0], [0]]}
    feed = {
        "image": np.random.RandomState(3).rand(2, 3, 64, 64).astype("float32"),
        "info": INFO,
        "anchors": anchors,
        "variances": np.full(anchors.shape, 0.5, "float32"),
        "boxes": lod(fluid, BOXES, OBJECTS),
        "outlines": lod(fluid, np.array(outlines, "float32").reshape(-1, 2), [*OBJECTS, [1] * 5, [5] * 5]),
    }
    feed.update((name, lod(fluid, np.array(values, "int32"), OBJECTS)) for name, values in ints.items())
    return feed


class Inputs:
    """The variables that are fed."""

    def __init__(self, fluid):
        self.image = fluid.data("image", [None, 3, 64, 64], "float32")
        self.info = fluid.data("info", [None, 3], "float32")
        self.anchors = fluid.data("anchors", [8, 8, len(SIZES), 4], "float32")
        self.variances = fluid.data("variances", [8, 8, len(SIZES), 4], "float32")
        self.boxes = fluid.data("boxes", [None, 4], "float32", lod_level=1)
        self.classes = fluid.data("classes", [None, 1], "int32", lod_level=1)
        self.crowd = fluid.data("crowd", [None, 1], "int32", lod_level=1)


def features(fluid, image):
    layers = fluid.layers
    x = layers.conv2d(image, 8, 3, stride=2, padding=1, act="relu")
    x = layers.conv2d(x, 12, 3, stride=2, padding=1, act="relu")
    return layers.conv2d(x, 16, 3, stride=2, padding=1, act="relu")


def flat(layers, x, width):
    """(N, A * width, H, W) as (N, H * W * A, width)."""
    return layers.reshape(layers.transpose(x, [0, 2, 3, 1]), [0, -1, width])


def propose(fluid, given, x):
    """The loss of the proposing network, and its proposals."""
    layers = fluid.layers
    logits = layers.conv2d(x, len(SIZES), 1)
    moves = layers.conv2d(x, 4 * len(SIZES), 1)
    scores, places, labels, targets, weights = layers.rpn_target_assign(
        flat(layers, moves, 4),
        flat(layers, logits, 1),
        layers.reshape(given.anchors, [-1, 4]),
        layers.reshape(given.variances, [-1, 4]),
        given.boxes,
        given.crowd,
        given.info,
        rpn_batch_size_per_im=32,
        rpn_straddle_thresh=4.0,
        rpn_positive_overlap=0.5,
        use_random=False,
    )
    labels = layers.cast(labels, "float32")
    labels.stop_gradient = True
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(scores, labels))
    loss += layers.mean(layers.smooth_l1(places, targets, weights, weights, sigma=3.0))
    rois, _ = layers.generate_proposals(
        layers.sigmoid(logits), moves, given.info, given.anchors, given.variances,
        pre_nms_top_n=120, post_nms_top_n=40, nms_thresh=0.7, min_size=2.0,
    )  # fmt: skip
    return loss, rois


def classify(fluid, given, x, rois):
    """The loss of classes and boxes, the sampled regions and their classes."""
    layers = fluid.layers
    rois, labels, targets, inside, outside = layers.generate_proposal_labels(
        rois, given.classes, given.crowd, given.boxes, given.info,
        batch_size_per_im=24, fg_thresh=0.4, bg_thresh_hi=0.4, class_nums=CLASSES, use_random=False,
    )  # fmt: skip
    pooled = layers.roi_align(x, rois, 4, 4, 0.125, sampling_ratio=2)
    hidden = layers.fc(pooled, 32, act="relu")
    names = layers.cast(labels, "int64")
    names.stop_gradient = True
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, CLASSES), names))
    moves = layers.fc(hidden, 4 * CLASSES)
    return loss + layers.mean(layers.smooth_l1(moves, targets, inside, outside)), rois, labels


def faster_rcnn(fluid):
    """Ren et al., 2015."""
    given = Inputs(fluid)
    x = features(fluid, given.image)
    first, rois = propose(fluid, given, x)
    second, _, _ = classify(fluid, given, x, rois)
    feed = make_feed(fluid)
    del feed["outlines"]
    return first + second, feed


def mask_rcnn(fluid):
    """He et al., 2017: masks of the regions beside their classes."""
    layers, given = fluid.layers, Inputs(fluid)
    outlines = fluid.data("outlines", [None, 2], "float32", lod_level=3)
    x = features(fluid, given.image)
    first, rois = propose(fluid, given, x)
    second, rois, labels = classify(fluid, given, x, rois)
    rois, _, masks = layers.generate_mask_labels(
        given.info, given.classes, given.crowd, outlines, rois, labels, CLASSES, 8
    )
    pooled = layers.roi_align(x, rois, 4, 4, 0.125, sampling_ratio=-1)
    drawn = layers.conv2d_transpose(pooled, CLASSES, filter_size=2, stride=2)
    wanted = layers.cast(masks, "float32")
    wanted.stop_gradient = True
    drawn = layers.reshape(drawn, [-1, CLASSES * 64])
    third = layers.sigmoid_cross_entropy_with_logits(drawn, wanted, ignore_index=-1, normalize=True)
    return first + second + layers.reduce_sum(third), make_feed(fluid)


def retinanet(fluid):
    """Lin et al., 2017: all anchors, with the focal loss."""
    layers, given = fluid.layers, Inputs(fluid)
    x = features(fluid, given.image)
    logits = layers.conv2d(x, (CLASSES - 1) * len(SIZES), 1)
    moves = layers.conv2d(x, 4 * len(SIZES), 1)
    scores, places, labels, targets, weights, count = layers.retinanet_target_assign(
        flat(layers, moves, 4),
        flat(layers, logits, CLASSES - 1),
        layers.reshape(given.anchors, [-1, 4]),
        layers.reshape(given.variances, [-1, 4]),
        given.boxes,
        given.classes,
        given.crowd,
        given.info,
        num_classes=CLASSES - 1,
    )
    count = layers.reduce_sum(count)
    loss = layers.reduce_sum(layers.sigmoid_focal_loss(scores, labels, count))
    loss += layers.mean(layers.smooth_l1(places, targets, weights, weights))
    feed = make_feed(fluid)
    for name in ("outlines",):
        del feed[name]
    return loss, feed


def deformable(fluid):
    """A deformed convolution, and deformed pools over given regions: Dai et al., 2017."""
    layers, given = fluid.layers, Inputs(fluid)
    x = features(fluid, given.image)
    offset, mask = layers.conv2d(x, 18, 3, padding=1), layers.conv2d(x, 9, 3, padding=1, act="sigmoid")
    x = layers.deformable_conv(x, offset, mask, 12, 3, padding=1, im2col_step=1)
    rigid = layers.psroi_pool(layers.conv2d(x, 8, 1), given.boxes, 2, 0.125, 2, 2)
    shift = layers.reshape(layers.fc(rigid, 8), [-1, 2, 2, 2])
    moved = layers.deformable_roi_pooling(
        x, given.boxes, shift, spatial_scale=0.125, pooled_height=2, pooled_width=2, sample_per_part=2
    )
    precise = layers.roi_pool(x, given.boxes, 3, 3, 0.125)
    hidden = layers.fc([moved, precise], 16, act="relu")
    names = layers.cast(given.classes, "int64")
    names.stop_gradient = True
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, CLASSES), names))
    feed = make_feed(fluid)
    return loss, {name: feed[name] for name in ("image", "boxes", "classes")}


TRAINED = {each.__name__: each for each in (faster_rcnn, mask_rcnn, retinanet, deformable)}
DECODED = {}
