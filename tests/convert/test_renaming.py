"""Conversions by rules, and the recipes into the names of PyTorch's models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from paddlelike.errors import FormatError, LoadError
from paddlelike.interop.recipes import RECIPES, db, find_rules
from paddlelike.interop.renaming import arrange
from paddlelike.io import Rules


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    values = {"fc_0.w_0": np.arange(8.0).reshape(2, 4), "fc_0.b_0": np.arange(4.0), "step": np.ones(1)}
    np.savez(tmp_path / "saved.npz", **values)
    return tmp_path / "saved.npz"


def convert(saved: Path, *rules: Rules) -> dict[str, Any]:
    target = saved.with_name("new.npz")
    fluid.convert(saved, target, rules=rules)
    with np.load(target) as found:
        return dict(found)


def test_rules_rename_transpose_and_skip_values_and_keep_the_others(saved: Path) -> None:
    found = convert(saved, Rules().skip("step").rename("fc_*.w_0", "linear*.weight", transpose=True))
    assert sorted(found) == ["fc_0.b_0", "linear0.weight"]
    assert np.array_equal(found["linear0.weight"], [[0, 4], [1, 5], [2, 6], [3, 7]])


def test_values_are_cut_and_joined_by_rules_one_after_another(saved: Path) -> None:
    cut = Rules().rename("fc_0.w_0", ["c", "i", "f", "o"], split=1)
    joined = Rules().rename(["i", "f", "c", "o"], "w", concat=1, transpose=False)
    found = convert(saved, cut, joined)
    assert sorted(found) == ["fc_0.b_0", "step", "w"]
    assert np.array_equal(found["w"], np.arange(8.0).reshape(2, 4)[:, [1, 2, 0, 3]])


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules().init("x", 0), "it takes the variables of a program"),
        (Rules().rename("fc_0.w_0", "w", overlap=True), "it takes the variables of a program"),
        (Rules().rename("fc_1.w_0", "w"), "names 'fc_1.w_0', which the source does not hold"),
        (Rules().rename("*", "w"), "two values the name 'w', the second from"),
        (Rules().rename(["fc_0.b_0", "gone"], "w", concat=0), "joins 'fc_0.b_0' and 'gone'"),
        (Rules().rename("fc_0.w_0", ["a", "b", "c"], split=1), r"does not fit fc_0.w_0 [2, 4]"),
        (Rules().rename(["fc_0.b_0", "fc_0.w_0"], "w", concat=0), "not fit fc_0.b_0 [4], fc_0.w_0 [2, 4]"),
    ],
    ids=["init", "overlap", "unknown", "doubled", "absent", "parts", "shapes"],
)
def test_rules_that_do_not_fit_write_nothing(saved: Path, rules: Rules, said: str) -> None:
    with pytest.raises(LoadError, match=re.escape(said)):
        convert(saved, rules)
    assert not saved.with_name("new.npz").exists()


#: Layers of DB without names of their own, in the order of their building.
DB_CONVOLUTIONS = [
    *(f"neck.{at}_conv.weight" for at in ("in5", "in4", "in3", "in2", "p5", "p4", "p3", "p2")),
    *(f"head.{at}.conv1.weight" for at in ("binarize", "thresh")),
]
DB_NORMS = ["binarize.conv_bn1", "binarize.conv_bn2", "thresh.conv_bn1", "thresh.conv_bn2"]
DB_TRANSPOSED = [at.replace("_bn2", "3").replace("_bn1", "2") for at in DB_NORMS]

#: Names that the models' own scripts give, and those of transformers, torchvision and others.
NAMES = {
    "bert": {
        "word_embedding": "embeddings.word_embeddings.weight",
        "sent_embedding": "embeddings.token_type_embeddings.weight",
        "pre_encoder_layer_norm_scale": "embeddings.LayerNorm.weight",
        "encoder_layer_11_multi_head_att_query_fc.w_0": "encoder.layer.11.attention.self.query.weight",
        "encoder_layer_11_multi_head_att_output_fc.b_0": "encoder.layer.11.attention.output.dense.bias",
        "encoder_layer_0_post_att_layer_norm_bias": "encoder.layer.0.attention.output.LayerNorm.bias",
        "encoder_layer_0_ffn_fc_0.w_0": "encoder.layer.0.intermediate.dense.weight",
        "encoder_layer_0_ffn_fc_1.w_0_moment1_0": None,
        "pooled_fc.w_0": "pooler.dense.weight",
        "mask_lm_trans_layer_norm_scale": "cls.predictions.transform.LayerNorm.weight",
        "mask_lm_out_fc.b_0": "cls.predictions.bias",
        "next_sent_fc.w_0_beta1_pow_acc_0": None,
    },
    "ernie": {"task_embedding": "embeddings.task_type_embeddings.weight"},
    "resnet": {
        "conv1_weights": "conv1.weight",
        "bn_conv1_variance": "bn1.running_var",
        "res2a_branch1_weights": "layer1.0.downsample.0.weight",
        "bn4b22_branch2c_mean": "layer3.22.bn3.running_mean",
        "bn5c_branch2a_offset": "layer4.2.bn1.bias",
        "res3d_branch2b_weights_velocity_0": None,
        "fc_0.w_0": "fc.weight",
        "@LR_DECAY_COUNTER@": None,
    },
    "yolov3": {
        "stage.3.7.1.conv.weights": "stage.3.7.1.conv.weight",
        "yolo_block.0.tip.bn.var": "yolo_block.0.tip.bn.running_var",
        "yolo_output.0.conv.bias": "yolo_output.0.conv.bias",
    },
    "crnn": {
        "conv1_1_weights": "conv1_1.weight",
        "bnconv1_1_variance": "bnconv1_1.running_var",
        "res2a_branch2a_weights": "res2a_branch2a.weight",
        "bn2a_branch2a_scale": "bn2a_branch2a.weight",
        "conv2_expand_bn_mean": "conv2_expand_bn.running_mean",
        "conv5_se_2_offset": "conv5_se_2.bias",
        "ctc_fc_w_attr": "ctc_fc.weight",
        "ctc_fc_b_attr": "ctc_fc.bias",
    },
    "db": {
        "conv1_1_weights": "conv1_1.weight",
        "bnv1_1_variance": "bnv1_1.running_var",
        "res2a_branch2a_weights": "res2a_branch2a.weight",
        "conv2_expand_bn_mean": "conv2_expand_bn.running_mean",
        "conv5_se_1_weights": "conv5_se_1.weight",
        "conv5_se_1_offset": "conv5_se_1.bias",
        **dict(zip((f"conv2d_{i}.w_0" for i in range(98, 108)), DB_CONVOLUTIONS, strict=True)),
        "batch_norm_99.w_1": "head.binarize.conv_bn2.running_mean",
        **{f"batch_norm_{98 + i}.w_0": f"head.{at}.weight" for i, at in enumerate(DB_NORMS)},
        "conv2d_transpose_10.b_0": "head.thresh.conv3.bias",
        **{f"conv2d_transpose_{7 + i}.w_0": f"head.{at}.weight" for i, at in enumerate(DB_TRANSPOSED)},
        "conv2d_100.w_0_moment1_0": None,
    },
    "pytorch": {
        "fc_3.w_0": "fc_3.weight",
        "embedding_0.w_0": "embedding_0.weight",
        "batch_norm_12.w_2": "batch_norm_12.running_var",
        "layer_norm_1.b_0": "layer_norm_1.bias",
    },
}


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_recipes_give_the_names_of_the_equivalent_pytorch_models(recipe: str) -> None:
    tensor = fluid.create_lod_tensor(np.zeros((2, 3), "float32"), [[1, 1]], fluid.CPUPlace())
    names = NAMES[recipe]
    found = arrange(dict.fromkeys(names, tensor), find_rules(recipe), lambda value: value)
    assert list(found) == [new for new in names.values() if new is not None]
    turned = [new for new, value in found.items() if value.shape() == [3, 2]]
    linear = re.compile(r".*(_fc|fc_[0-9]+|fc_[01])\.w_0|ctc_fc_w_attr")
    assert turned == [new for old, new in names.items() if new is not None and linear.fullmatch(old)]


def test_the_heads_of_a_detector_share_their_biases(tmp_path: Path) -> None:
    unnamed = {"conv2d": range(99, 109), "batch_norm": range(4), "conv2d_transpose": range(4)}
    names = [f"{kind}_{i}.w_0" for kind, numbers in unnamed.items() for i in numbers]
    values = dict.fromkeys([*names, "conv2_b_attr", "conv3_b_attr"], np.ones(1))
    np.savez(tmp_path / "saved.npz", **values)
    fluid.convert(tmp_path / "saved.npz", tmp_path / "new.npz", rules=[Rules(), db])
    with np.load(tmp_path / "new.npz") as found:
        layers = [f"head.{at}" for at in (*DB_NORMS, *DB_TRANSPOSED)]
        biases = [f"{layer}.bias" for layer in layers if "bn" not in layer]
        assert sorted(found) == sorted([*DB_CONVOLUTIONS, *(f"{at}.weight" for at in layers), *biases])
    with pytest.raises(LoadError, match=r"expected 9, 2 and 2 layers .*there are \(10, 4, 3\)"):
        db(names[:-1])


def test_the_gates_of_an_lstm_come_in_the_order_of_pytorch() -> None:
    rng = np.random.default_rng(3)
    shapes = {"fc2_w": (5, 8), "fc2_b": (8,), "out2_w": (2, 8), "out2_b": (1, 8)}
    old = {f"lstm_st1_{name}": rng.normal(size=shape) for name, shape in shapes.items()}
    tensors = {name: fluid.core.LoDTensor(array) for name, array in old.items()}
    new = {name: np.array(value) for name, value in arrange(tensors, find_rules("crnn"), lambda v: v).items()}
    x, h, c = (rng.normal(size=size) for size in (5, 2, 2))

    def step(gates: np.ndarray, names: str) -> np.ndarray:
        """The next cell, from the gates by their names."""
        by_name = dict(zip(names, np.split(gates, 4), strict=True))
        return np.tanh(by_name["c"]) / (1 + np.exp(-by_name["i"])) + c / (1 + np.exp(-by_name["f"]))

    fluid_gates = x @ old["lstm_st1_fc2_w"] + old["lstm_st1_fc2_b"] + h @ old["lstm_st1_out2_w"]
    fluid_gates = fluid_gates + old["lstm_st1_out2_b"][0]
    at = "encoder.1.{}_{}_l0".format
    torch_gates = new[at("weight", "ih")] @ x + new[at("bias", "ih")] + new[at("bias", "hh")]
    torch_gates = torch_gates + new[at("weight", "hh")] @ h
    np.testing.assert_allclose(step(torch_gates, "ifco"), step(fluid_gates, "cifo"), rtol=1e-12)


def test_the_command_takes_recipes_and_files(saved: Path) -> None:
    Rules().skip("step").save(saved.with_name("mine.json"))
    wanted = ["--rules", str(saved.with_name("mine.json")), "--rules", "pytorch"]
    target = saved.with_name("new.npz")
    result = CliRunner().invoke(app, ["convert", str(saved), str(target), *wanted])
    assert result.exit_code == 0, result.output
    with np.load(target) as found:
        assert sorted(found) == ["fc_0.bias", "fc_0.weight"]
    result = CliRunner().invoke(app, ["convert", str(saved), str(target), "--overwrite", "--rules", "brt"])
    assert result.exit_code == 2
    assert "there are no rules brt: neither a file nor a recipe" in result.output


def test_a_file_that_holds_no_rules_is_refused(saved: Path) -> None:
    with pytest.raises(FormatError, match="these are not rules"):
        find_rules(str(saved))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules().skip("fc0*"), "convert: skip: 'fc0*' matches no variable; the name"),
        (
            Rules().rename("conv_*", "b_*"),
            "convert: rename: 'conv_*' matches no variable in the files; the name",
        ),
    ],
    ids=["skip", "rename"],
)
def test_a_rule_that_matches_nothing_is_reported_with_near_names(
    saved: Path, rules: Rules, said: str
) -> None:
    with pytest.warns(UserWarning, match=re.escape(said)) as caught:
        assert len(convert(saved, rules)) == 3
    assert "'fc_0.w_0'" in str(caught[0].message)
