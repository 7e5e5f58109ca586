"""Small detectors, segmenters, readers of text and generators over images of real sizes, in Fluid's interface.

As in ``networks.py``, each function builds a network and returns its loss, what it predicts and a batch.
"""

import numpy as np
from networks import draw, draw_ids


def normed(layers, x, filters, size=3, stride=1, groups=1, dilation=1, act="relu"):
    """Return a convolution with batch_norm and an activation."""
    padding = dilation * (size - 1) // 2
    x = layers.conv2d(x, filters, size, stride, padding, dilation, groups, bias_attr=False)
    if act == "leaky":
        return layers.leaky_relu(layers.batch_norm(x), 0.1)
    return layers.batch_norm(x, act=act)


def separable(layers, x, filters, stride=1, dilation=1):
    x = normed(layers, x, x.shape[1], 3, stride, x.shape[1], dilation)
    return normed(layers, x, filters, 1)


def score_pixels(fluid, scores, label):
    """Return the loss of every pixel but those of label 255."""
    layers = fluid.layers
    rows = layers.reshape(layers.transpose(scores, [0, 2, 3, 1]), [-1, scores.shape[1]])
    label = layers.reshape(label, [-1, 1])
    counts = layers.cast(label != 255, "float32")
    loss = layers.softmax_with_cross_entropy(rows, layers.cast(label, "int64"), ignore_index=255)
    return layers.mean(loss * counts) / (layers.mean(counts) + 1e-5)


def make_pixels(size, classes):
    return {"x": draw(1, 3, size, size), "y": draw_ids(classes, 1, size, size, 1)}


def create_pixels(fluid, size):
    return fluid.data("x", [None, 3, size, size]), fluid.data("y", [None, size, size, 1], "int64")


def make_boxes(fluid, counts, least, most):
    """Return true boxes and labels of images as sequences."""
    rng = np.random.RandomState(3)
    corner = rng.uniform(0, most / 2, (sum(counts), 2))
    boxes = np.concatenate([corner, corner + rng.uniform(least, most / 2, corner.shape)], 1)
    label = rng.randint(1, 21, (sum(counts), 1))
    place = fluid.CPUPlace()
    return [
        fluid.create_lod_tensor(each, [counts], place)
        for each in (boxes.astype("float32"), label.astype("int32"), np.zeros_like(label, "int32"))
    ]


def deeplab(fluid):
    """Separable convolutions, a pyramid of dilations, bilinear resizing."""
    layers = fluid.layers
    x, label = create_pixels(fluid, 257)
    h, low = normed(layers, normed(layers, x, 32, 3, 2), 64), None
    for filters, stride in ((128, 2), (128, 1), (256, 2), (256, 1)):
        short = normed(layers, h, filters, 1, stride, act=None) if stride > 1 else h
        h = layers.relu(short + separable(layers, separable(layers, h, filters), filters, stride))
        low = h if filters == 128 else low
    pooled = normed(layers, layers.reduce_mean(h, [2, 3], keep_dim=True), 64, 1)
    branches = [layers.resize_bilinear(pooled, layers.shape(h)[2:]), normed(layers, h, 64, 1)]
    branches += [separable(layers, h, 64, 1, dilation) for dilation in (6, 12, 18)]
    h = normed(layers, layers.concat(branches, 1), 64, 1)
    h = layers.resize_bilinear(h, layers.shape(low)[2:])
    h = separable(layers, layers.concat([h, normed(layers, low, 32, 1)], 1), 64)
    scores = layers.resize_bilinear(layers.conv2d(h, 19, 1), layers.shape(x)[2:])
    return score_pixels(fluid, scores, label), scores, make_pixels(257, 19)


def unet(fluid):
    """Four halvings, and back by transposed convolutions and bilinear resizing."""
    layers = fluid.layers
    x, label = create_pixels(fluid, 192)
    skips, h = [], normed(layers, normed(layers, x, 16), 16)
    for filters in (32, 64, 128, 128):
        skips.append(h)
        h = layers.pool2d(h, 2, "max", 2)
        h = normed(layers, normed(layers, h, filters), filters)
    for filters, skip in zip((64, 32, 16, 16), skips[::-1]):  # noqa: B905  (Python 3.7)
        if filters > 16:
            h = layers.conv2d_transpose(h, h.shape[1] // 2, filter_size=2, stride=2)
        else:
            h = layers.resize_bilinear(h, layers.shape(skip)[2:])
        h = normed(layers, normed(layers, layers.concat([skip, h], 1), filters), filters)
    scores = layers.conv2d(h, 2, 3, 1, 1)
    return score_pixels(fluid, scores, label), scores, make_pixels(192, 2)


def cascade(fluid):
    """Images of three sizes, average pools of several sizes, many bilinear resizings."""
    layers = fluid.layers
    x, label = create_pixels(fluid, 256)
    h = normed(layers, normed(layers, layers.resize_bilinear(x, [128, 128]), 16, 3, 2), 32)
    h = layers.pool2d(h, 3, "max", 2, 1)
    for dilation in (1, 2):
        y = layers.pad2d(normed(layers, h, 16, 1), [dilation] * 4)
        y = layers.batch_norm(layers.conv2d(y, 16, 3, 1, 0, dilation, bias_attr=False), act="relu")
        h = layers.relu(normed(layers, y, 64, 1, act=None) + normed(layers, h, 64, 1, act=None))
    quarter = layers.resize_bilinear(h, [16, 16])
    total = quarter
    for size in (16, 8, 5, 2):
        total = total + layers.resize_bilinear(layers.pool2d(quarter, size, "avg", size), [16, 16])

    def fuse(low, high, size):
        low = layers.pad2d(layers.resize_bilinear(low, [size, size]), [2] * 4)
        low = layers.batch_norm(layers.conv2d(low, 64, 3, 1, 0, 2, bias_attr=False))
        return layers.relu(low + normed(layers, high, 64, 1, act=None))

    large = normed(layers, normed(layers, normed(layers, x, 16, 3, 2), 16, 3, 2), 32, 3, 2)
    h = fuse(fuse(normed(layers, total, 64, 1), h, 32), large, 32)
    scores = layers.conv2d(layers.resize_bilinear(h, [64, 64]), 19, 1)
    scores = layers.resize_bilinear(scores, [256, 256])
    return score_pixels(fluid, scores, label), scores, make_pixels(256, 19)


ANCHORS = [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326]


def yolo(fluid):
    """Three scales of leaky convolutions, yolov3_loss, boxes and their suppression."""
    layers = fluid.layers
    x, size = fluid.data("x", [None, 3, 224, 224]), fluid.data("size", [None, 2], "int32")
    boxes, score = fluid.data("boxes", [None, 20, 4]), fluid.data("score", [None, 20])
    labels = fluid.data("labels", [None, 20], "int32")
    h, scales = normed(layers, x, 16, act="leaky"), []
    for filters in (32, 64, 128, 256, 256):
        h = normed(layers, h, filters, 3, 2, act="leaky")
        h = h + normed(layers, normed(layers, h, filters // 2, 1, act="leaky"), filters, act="leaky")
        scales.append(h)
    losses, found, scores, route = [], [], [], None
    for index, h in enumerate(scales[:1:-1]):
        h = h if route is None else layers.concat([route, h], 1)
        for _ in range(2):
            h = normed(layers, normed(layers, h, 64, 1, act="leaky"), 128, act="leaky")
        out, down = layers.conv2d(h, 3 * 85, 1), 32 >> index
        mask = [6 - 3 * index + each for each in range(3)]
        losses.append(
            layers.reduce_mean(layers.yolov3_loss(out, boxes, labels, ANCHORS, mask, 80, 0.7, down, score))
        )
        anchors = [ANCHORS[2 * each + k] for each in mask for k in (0, 1)]
        box, chance = layers.yolo_box(out, size, anchors, 80, 0.005, down)
        found.append(box)
        scores.append(layers.transpose(chance, [0, 2, 1]))
        route = layers.resize_nearest(normed(layers, h, 64, 1, act="leaky"), scale=2.0)
    found, scores = layers.concat(found, 1), layers.concat(scores, 2)
    out = layers.multiclass_nms(found, scores, 0.01, 400, 100, 0.45, background_label=-1)
    rng = np.random.RandomState(3)
    true = rng.uniform(0.1, 0.6, (2, 20, 4)).astype("float32")
    true[:, 6:] = 0
    batch = {"x": draw(2, 3, 224, 224), "boxes": true, "score": np.ones((2, 20), "float32")}
    batch["labels"] = rng.randint(0, 80, (2, 20)).astype("int32")
    return sum(losses), out, dict(batch, size=np.array([[224, 224]] * 2, "int32"))


def ssd(fluid):
    """Prior boxes over five scales of separable convolutions, matching, mining of negatives."""
    layers = fluid.layers
    x = fluid.data("x", [None, 3, 300, 300])
    box = fluid.data("box", [None, 4], lod_level=1)
    label = fluid.data("label", [None, 1], "int32", lod_level=1)
    h, scales = normed(layers, x, 16, 3, 2), []
    for filters, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        h = separable(layers, h, filters, stride)
    for filters in (256, 256, 128, 128):
        scales.append(h)
        h = separable(layers, h, filters, 2)
    places, scores, priors, spread = layers.multi_box_head(
        inputs=[*scales, h],
        image=x,
        num_classes=21,
        min_ratio=20,
        max_ratio=90,
        base_size=300,
        aspect_ratios=[[2.0], [2.0, 3.0], [2.0, 3.0], [2.0, 3.0], [2.0, 3.0]],
        min_sizes=[60.0, 105.0, 150.0, 195.0, 240.0],
        max_sizes=[[], 150.0, 195.0, 240.0, 285.0],
        flip=True,
    )
    loss = layers.reduce_sum(layers.ssd_loss(places, scores, box, label, priors, spread))
    out = layers.detection_output(places, scores, priors, spread, nms_threshold=0.45)
    true = make_boxes(fluid, [4, 6], 0.1, 1.0)
    return loss, out, {"x": draw(2, 3, 300, 300), "box": true[0], "label": true[1]}


def rcnn(fluid):
    """Anchors, proposals, their labels, roi_align and two heads over affine channels."""
    layers = fluid.layers
    x, info = fluid.data("x", [None, 3, 256, 320]), fluid.data("info", [None, 3])
    box = fluid.data("box", [None, 4], lod_level=1)
    label, crowd = (fluid.data(name, [None, 1], "int32", lod_level=1) for name in ("label", "crowd"))

    def affine(x, filters, size=3, stride=1, act="relu"):
        x = layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
        numbers = [
            layers.create_parameter(
                [filters], "float32", default_initializer=fluid.initializer.Constant(value)
            )
            for value in (0.7, 0.01)
        ]
        return layers.affine_channel(x, *numbers, act=act)

    h = layers.pool2d(affine(x, 32, 7, 2), 3, "max", 2, 1)
    for filters, stride in ((64, 1), (128, 2), (256, 2)):
        y = affine(affine(affine(h, filters // 2, 1), filters // 2, 3, stride), filters, 1, act=None)
        h = layers.relu(y + affine(h, filters, 1, stride, act=None))
    spread = [0.1, 0.1, 0.2, 0.2]
    anchors, variances = layers.anchor_generator(
        h, [32.0, 64.0, 128.0], [0.5, 1.0, 2.0], spread, [16.0, 16.0]
    )
    shared = layers.conv2d(h, 64, 3, 1, 1, act="relu")
    scores, places = layers.conv2d(shared, 9, 1), layers.conv2d(shared, 36, 1)
    chances = layers.sigmoid(scores)
    rois, _ = layers.generate_proposals(chances, places, info, anchors, variances, 2000, 300, 0.7, 4.0)
    rows = [
        layers.reshape(layers.transpose(each, [0, 2, 3, 1]), [0, -1, width])
        for each, width in ((places, 4), (scores, 1))
    ]
    flat = [layers.reshape(each, [-1, 4]) for each in (anchors, variances)]
    score, moved, target, goal, weight = layers.rpn_target_assign(
        *rows, *flat, box, crowd, info, use_random=False
    )
    loss = layers.mean(
        layers.sigmoid_cross_entropy_with_logits(score, layers.cast(target, "float32"))
    ) + layers.reduce_mean(layers.smooth_l1(moved, goal, weight, weight, 3.0))
    chosen, labels, goals, inside, outside = layers.generate_proposal_labels(
        rois, label, crowd, box, info, 128, 0.25, 0.5, 0.5, 0.0, spread, 21, use_random=False
    )

    def head(rois):
        y = layers.roi_align(h, rois, 7, 7, 1 / 16.0, 2)
        for name in ("first", "second"):
            y = layers.fc(y, 128, act="relu", param_attr=name, bias_attr=name + "_b")
        return [
            layers.fc(y, size, param_attr=name, bias_attr=name + "_b")
            for size, name in ((21, "classes"), (84, "places"))
        ]

    scores, moves = head(chosen)
    loss = loss + layers.mean(layers.softmax_with_cross_entropy(scores, layers.cast(labels, "int64")))
    loss = loss + layers.reduce_mean(layers.smooth_l1(moves, goals, inside, outside, 1.0))
    scores, moves = head(rois)
    moves = layers.reshape(moves, [-1, 21, 4])
    boxes = layers.box_coder(rois, spread, moves, "decode_center_size", False, axis=1)
    boxes = layers.box_clip(boxes, info)
    out = layers.multiclass_nms(boxes, layers.softmax(scores), 0.05, 100, 50, 0.5, normalized=False)
    names = dict(zip(("box", "label", "crowd"), make_boxes(fluid, [5], 30, 250)))  # noqa: B905
    batch = {"x": draw(1, 3, 256, 320), "info": np.array([[256, 320, 1]], "float32")}
    return loss, out, dict(batch, **names)


def crnn(fluid):
    """Columns of a line of text as a sequence for gated units, and connectionist classification."""
    layers = fluid.layers
    x = fluid.data("x", [None, 1, 48, 256])
    label = fluid.data("y", [None, 1], "int32", lod_level=1)
    h = x
    for filters in (16, 32, 64, 128):
        h = normed(layers, normed(layers, h, filters), filters)
        h = layers.pool2d(h, 2, "max", 2, ceil_mode=True) if filters < 128 else h
    columns = layers.im2sequence(h, filter_size=[h.shape[2], 1], stride=[1, 1])
    gates = [layers.fc(columns, 288) for _ in range(2)]
    sides = [
        layers.dynamic_gru(each, 96, is_reverse=way, candidate_activation="relu")
        for each, way in zip(gates, (False, True))  # noqa: B905
    ]
    scores = layers.fc(sides, 96)
    loss = layers.mean(layers.warpctc(scores, label, blank=95, norm_by_times=True))
    ids = fluid.create_lod_tensor(draw_ids(95, 24, 1).astype("int32"), [[6, 8, 5, 5]], fluid.CPUPlace())
    return loss, layers.ctc_greedy_decoder(scores, 95), {"x": draw(4, 1, 48, 256), "y": ids}


def upscale(fluid):
    """Residual blocks with prelu and group_norm, channels that become pixels."""
    layers = fluid.layers
    x, y = fluid.data("x", [None, 3, 64, 64]), fluid.data("y", [None, 3, 128, 128])
    first = h = layers.conv2d(x, 32, 3, 1, 1)
    for index in range(4):
        r = layers.conv2d(h, 32, 3, 1, 1)
        r = layers.group_norm(r, 8) if index % 2 else r
        r = layers.prelu(r, "channel" if index < 3 else "element")
        h = h + layers.conv2d(r, 32, 3, 1, 1) * 0.1
    h = layers.pixel_shuffle(layers.conv2d(h + first, 128, 3, 1, 1), 2)
    out = layers.conv2d(layers.prelu(h, "all"), 3, 3, 1, 1)
    return layers.reduce_mean(layers.abs(out - y)), out, {"x": draw(2, 3, 64, 64), "y": draw(2, 3, 128, 128)}


NETWORKS = {f.__name__: f for f in (deeplab, unet, cascade, yolo, ssd, rcnn, crnn, upscale)}
