"""Rules that map the names of Fluid's models to the names in their PyTorch versions, for
``convert(rules=...)``.

``paddlelike convert SAVED twin.pt --rules bert`` takes them by name. Optimizers' state is left out.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from typing import Final, ParamSpec

from paddlelike.errors import LoadError
from paddlelike.interop.renaming import Recipe
from paddlelike.io.rules.rules import Rules

Names = ParamSpec("Names")

#: What belongs to training: of Adam, Momentum and their kin, and counters.
_STATE: Final = ("re:(.*)_(moment[0-9]?|beta[12]_pow_acc|velocity|inf_norm)_[0-9]+", "learning_rate_*", "@*@")
_GATES: Final = (1, 2, 0, 3)  # of an LSTM, in PyTorch's order
_NECK: Final = ("in5", "in4", "in3", "in2", "p5", "p4", "p3", "p2")  # of DB, in building order
_NORM: Final = (("scale", "weight"), ("offset", "bias"), ("mean", "running_mean"))


def _recipe(make: Callable[Names, Rules]) -> Callable[Names, Rules]:
    """Decorate a function that returns the rules of a recipe."""

    @functools.wraps(make)
    def call(*names: Names.args, **options: Names.kwargs) -> Rules:
        rules = make(*names, **options)
        rules.is_recipe = True
        return rules

    return call


def _begin() -> Rules:
    rules = Rules()
    for pattern in _STATE:
        rules = rules.skip(pattern)
    return rules


@_recipe
def bert() -> Rules:
    """Return the rules to ``BertModel`` of Hugging Face's transformers, with its head for masked words."""
    rules = _begin()
    tables = {"word": "word", "pos": "position", "sent": "token_type", "task": "task_type"}
    for ours, theirs in tables.items():
        rules = rules.rename(f"re:{ours}_embedding", f"embeddings.{theirs}_embeddings.weight")
    block, layer = "encoder_layer_*", r"encoder.layer.\1"
    norms = {
        "pre_encoder": "embeddings.LayerNorm",
        f"{block}_post_att": f"{layer}.attention.output.LayerNorm",
        f"{block}_post_ffn": f"{layer}.output.LayerNorm",
        "mask_lm_trans": "cls.predictions.transform.LayerNorm",
    }
    for ours, theirs in norms.items():
        for end, new in (("scale", "weight"), ("bias", "bias")):
            rules = rules.rename(_optional(f"{ours}_layer_norm_{end}"), f"{theirs}.{new}")
    layers = {
        **{
            f"{block}_multi_head_att_{part}_fc": f"{layer}.attention.self.{part}"
            for part in ("query", "key", "value")
        },
        f"{block}_multi_head_att_output_fc": f"{layer}.attention.output.dense",
        f"{block}_ffn_fc_0": f"{layer}.intermediate.dense",
        f"{block}_ffn_fc_1": f"{layer}.output.dense",
        "pooled_fc": "pooler.dense",
        "mask_lm_trans_fc": "cls.predictions.transform.dense",
    }
    for ours, theirs in layers.items():
        rules = rules.rename(_optional(f"{ours}.w_0"), f"{theirs}.weight", transpose=True)
        rules = rules.rename(_optional(f"{ours}.b_0"), f"{theirs}.bias")
    return rules.rename("re:mask_lm_out_fc\\.b_0", "cls.predictions.bias").rename(
        "re:next_sent_fc\\.w_0", "cls.seq_relationship.weight", transpose=True
    ).rename("re:next_sent_fc\\.b_0", "cls.seq_relationship.bias")  # fmt: skip


@_recipe
def ernie() -> Rules:
    """Return the rules of ERNIE 1.0 and 2.0, whose names are BERT's, with ``task_embedding``."""
    return bert()


@_recipe
def resnet() -> Rules:
    """Return the rules of ResNet-50, 101 and 152 to torchvision's names.

    Fluid's ResNet-18 and 34 have one convolution more than torchvision's, on the first shortcut.
    """
    rules = _begin()
    parts = {"1": "downsample", "2a": "1", "2b": "2", "2c": "3"}
    blocks = [(f"{stage}{chr(97 + i)}", f"layer{stage - 1}.{i}") for stage in range(2, 6) for i in range(8)]
    blocks += [(f"4b{i}", f"layer3.{i}") for i in range(1, 36)]
    for ours, theirs in blocks:
        for part, number in parts.items():
            conv, norm = ("downsample.0", "downsample.1") if part == "1" else (f"conv{number}", f"bn{number}")
            rules = rules.rename(_optional(f"res{ours}_branch{part}_weights"), f"{theirs}.{conv}.weight")
            rules = _rename_norm(rules, f"bn{ours}_branch{part}_", f"{theirs}.{norm}.", "variance")
    rules = _rename_norm(rules.rename("re:conv1_weights", "conv1.weight"), "bn_conv1_", "bn1.", "variance")
    return rules.rename(r"re:fc_0\.w_0", "fc.weight", transpose=True).rename(r"re:fc_0\.b_0", "fc.bias")


@_recipe
def yolov3() -> Rules:
    """Return the rules of YOLOv3, whose modules keep their names: ``stage.0.0.0.conv.weight``."""
    rules = _begin().rename("*.conv.weights", "*.conv.weight")
    return _rename_norm(rules, "*.bn.", "*.bn.", "var")


@_recipe
def crnn() -> Rules:
    """Return the rules of CRNN, PaddleOCR's recognizer, over a ResNet or MobileNetV3: two LSTMs and a head.

    ``encoder.0`` and ``encoder.1`` are ``torch.nn.LSTM(channels, hidden, num_layers=2)``; the second one
    reads the reversed sequence. Fluid's fc before each layer becomes ``weight_ih`` and ``bias_ih``.
    """
    rules = _begin()
    for way in (0, 1):
        for layer in (0, 1):
            for ours, theirs in (("fc", "ih"), ("out", "hh")):
                old, new = f"re:lstm_st{layer + 1}_{ours}{way + 1}", f"encoder.{way}.{{}}_{theirs}_l{layer}"
                rules = rules.rename(f"{old}_w", new.format("weight"), transpose=True, order=_GATES)
                rules = rules.rename(f"{old}_b", new.format("bias"), order=_GATES)
    rules = rules.rename("re:ctc_fc_w_attr", "ctc_fc.weight", transpose=True)
    return _rename_backbone(rules.rename("re:ctc_fc_b_attr", "ctc_fc.bias"))


@_recipe
def db(names: Iterable[str]) -> Rules:
    """Return the rules of DB, PaddleOCR's detector, for a model with variables of these ``names``.

    Its neck and head get the names of their modules, ``neck.in5_conv`` and ``head.binarize.conv_bn1``; the
    backbone, a ResNet or MobileNetV3, keeps its names. The number in ``conv2d_56.w_0`` depends on the
    backbone, so layers are identified by their order. A model for prediction lacks ``head.thresh``.

    Raises
    ------
    LoadError
        The model does not have the convolutions of DB's neck and head.
    """
    rules, names = _begin(), set(names)
    convs, norms, ups = (
        sorted(int(found[1]) for name in names if (found := re.fullmatch(rf"{kind}_(\d+)\.w_0", name)))
        for kind in ("conv2d", "batch_norm", "conv2d_transpose")
    )
    heads = [f"head.{head}" for head in ("binarize", "thresh")[: len(ups) // 2]]
    counts = (len(convs), len(norms), len(ups))
    if not heads or counts != (len(_NECK) + len(heads), 2 * len(heads), 2 * len(heads)):
        raise LoadError(
            "the rules db are for PaddleOCR's DB: expected 9, 2 and 2 layers conv2d_*, batch_norm_* and "
            f"conv2d_transpose_* without names of their own, or 10, 4 and 4 in training; there are {counts}",
            hint="use the rules pytorch, which fit networks of any layers",
        )
    layers = [*(f"neck.{layer}_conv" for layer in _NECK), *(f"{head}.conv1" for head in heads)]
    for index, layer in zip(convs, layers, strict=True):
        rules = rules.rename(rf"re:conv2d_{index}\.w_0", f"{layer}.weight")
    steps = [(head, step) for head in heads for step in (1, 2)]
    for (head, step), norm, up in zip(steps, norms, ups, strict=True):
        rules = _rename_unnamed_norm(rules, f"batch_norm_{norm}", f"{head}.conv_bn{step}")
        for end, new in (("w_0", "weight"), ("b_0", "bias")):
            rules = rules.rename(rf"re:conv2d_transpose_{up}\.{end}", f"{head}.conv{step + 1}.{new}")
    for step in (2, 3):  # both heads share these
        rules = rules.rename(f"re:conv{step}_b_attr", [f"{head}.conv{step}.bias" for head in heads])
    return _rename_backbone(rules)


@_recipe
def pytorch() -> Rules:
    """Return the rules for layers with generated names, and for ``*_weights``, ``*_bn_scale``.

    ``fc_0.w_0`` becomes ``fc_0.weight`` and is transposed; ``batch_norm_0.w_1`` ends in ``.running_mean``.
    """
    rules = _rename_unnamed_norm(_begin(), "batch_norm_([0-9]+)", r"batch_norm_\1")
    rules = rules.rename(r"re:(.*fc_[0-9]+)\.w_0", r"\1.weight", transpose=True)
    rules = rules.rename(r"re:(.*_[0-9]+)\.w_0", r"\1.weight").rename(r"re:(.*_[0-9]+)\.b_0", r"\1.bias")
    return _rename_backbone(rules)


def _rename_backbone(rules: Rules) -> Rules:
    """Return ``rules`` and the rules of PaddleOCR's ResNets and MobileNetV3s."""
    rules = _rename_norm(rules.rename("*_se_*_offset", "*_se_*.bias"), "*_bn_", "*_bn.", "variance")
    return _rename_norm(rules.rename("*_weights", "*.weight"), "bn*_", "bn*.", "variance")


def _rename_norm(rules: Rules, ours: str, theirs: str, variance: str) -> Rules:
    """Return ``rules`` and the rules of the batch normalizations that a name or wildcard matches."""
    for end, new in (*_NORM, (variance, "running_var")):
        old = ours + end
        rules = rules.rename(old if "*" in old else _optional(old), theirs + new)
    return rules


def _rename_unnamed_norm(rules: Rules, ours: str, theirs: str) -> Rules:
    names = (("w_0", "weight"), ("b_0", "bias"), ("w_1", "running_mean"), ("w_2", "running_var"))
    for end, new in names:
        rules = rules.rename(rf"re:{ours}\.{end}", f"{theirs}.{new}")
    return rules


def _optional(name: str) -> str:
    """Return a pattern for a name that may be missing; ``*`` stands for a number."""
    return "re:" + name.replace(".", r"\.").replace("*", "([0-9]+)")


#: By name, for the command line.
RECIPES: Final[dict[str, Callable[..., Rules]]] = {
    recipe.__name__: recipe for recipe in (bert, crnn, db, ernie, pytorch, resnet, yolov3)
}


def find_rules(name: str) -> Rules | Recipe:
    """Return the recipe of that name, or the rules in the file of that name.

    Raises LoadError when there is neither, FormatError for a file without rules.
    """
    if name in RECIPES:
        return db if name == "db" else RECIPES[name]()
    if not os.path.isfile(name):
        raise LoadError(
            f"there are no rules {name}: neither a file nor a recipe",
            hint=f"recipes: {', '.join(RECIPES)}; fluid.io.Rules(...).save(path) writes a file",
        )
    return Rules.load(name)
