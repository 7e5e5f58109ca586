"""``save`` and ``load`` of lists of objects."""

from __future__ import annotations

import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike.collection as dy
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from tests.collection.models import GOLDEN, OneLayerMLP


def make_list() -> list[Any]:
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((6, 3))
    return [table, dy.GRUBuilder(1, 3, 4, m), m.add_parameters((5, 3)), OneLayerMLP(m, 3, 4, 2, dy.rectify)]


def test_a_loaded_list_keeps_its_order_and_gets_new_names(tmp_path: Path) -> None:  # D20-D26, D28-D29, D36
    saved = make_list()
    dy.save(tmp_path / "m", iter(saved))
    target = dy.ParameterCollection()
    target.add_parameters(2)
    table, gru, w, mlp = dy.load(tmp_path / "m", target, [OneLayerMLP])
    np.testing.assert_array_equal(table.as_array(), saved[0].as_array())
    np.testing.assert_array_equal(w.as_array(), saved[2].as_array())
    assert isinstance(gru, dy.GRUBuilder)
    assert mlp.act is dy.rectify
    x = dy.inputVector([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(mlp(x).npvalue(), saved[3](x).npvalue())
    assert len(target.parameters_list()) == 1 + 9 + 1 + 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.data", "m.meta"]


def test_records_are_written_in_the_form_of_dynet(tmp_path: Path) -> None:  # D24, D30, D40
    m = dy.ParameterCollection()
    dy.save(tmp_path / "m", [m.add_parameters(2, name="w"), dy.GRUBuilder(2, 3, 4, m)])
    ours = (tmp_path / "m.meta").read_bytes()
    named = [arg for opcode, arg, _ in pickletools.genops(ours) if opcode.name == "BINUNICODE"]
    assert named == ["Parameters", "/w"]
    rest = ours[ours.index(pickle.STOP) + 1 :]
    globals_ = [arg for opcode, arg, _ in pickletools.genops(rest) if opcode.name == "GLOBAL"]
    assert globals_ == ["_dynet GRUBuilder"]


def test_a_failing_save_leaves_the_old_pair_and_lists_every_object(tmp_path: Path) -> None:  # D20, D32
    m = dy.ParameterCollection()
    w = m.add_parameters(2)
    dy.save(tmp_path / "m", [w])
    before = [(p.name, p.read_bytes()) for p in sorted(tmp_path.iterdir())]
    mlp = OneLayerMLP(m, 3, 4, 2)
    mlp.spec = (3, 4, 2, lambda x: x)
    with pytest.raises(SaveError) as caught:
        dy.save(tmp_path / "m", [w, m, 7, mlp])
    text = str(caught.value)
    assert "objects[1]: a ParameterCollection has no spec" in text
    assert "objects[2]: a int has no param_collection" in text
    assert "objects[3]: the spec holds <function" in text
    assert [(p.name, p.read_bytes()) for p in sorted(tmp_path.iterdir())] == before


def test_two_objects_of_one_name_are_refused(tmp_path: Path) -> None:  # D11
    one, two = dy.ParameterCollection(), dy.ParameterCollection()
    with pytest.raises(SaveError, match="two objects hold a Parameter /_0"):
        dy.save(tmp_path / "m", [one.add_parameters(2), two.add_parameters(2)])
    assert list(tmp_path.iterdir()) == []


def test_a_class_is_used_only_when_the_caller_passes_it(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"user_mlp.OneLayerMLP, which is refused(.|\n)*classes="):
        dy.load(GOLDEN / "hl-mlp", dy.ParameterCollection())
    mlp, table = dy.load(GOLDEN / "hl-mlp", dy.ParameterCollection(), {"user_mlp.OneLayerMLP": OneLayerMLP})
    assert (mlp.spec[:3], table.shape()) == ((3, 4, 2), (6, 3))


class Evil:
    def __reduce__(self) -> Any:
        return print, ("executed",)


def nest() -> tuple[Any, ...]:
    """Return a tuple that holds one tuple twice, which holds one twice, and so on: its text has no end."""
    one: tuple[Any, ...] = ()
    for _ in range(60):
        one = (one, one)
    return one


@pytest.mark.parametrize(
    ("builder", "spec", "text"),
    [
        ("GRUBuilder", (1, 10**9, 10**9), "lacks parameters of"),
        ("GRUBuilder", (10**9, 1, 1), "lacks parameters of"),
        ("VanillaLSTMBuilder", (1, 1, 40_000, False, 1.0), "lacks parameters of"),
        ("GRUBuilder", (0, 1, 1), "lacks parameters of"),
        ("GRUBuilder", (1, "a", 1), "makes no GRUBuilder"),
        ("GRUBuilder", nest(), "makes no GRUBuilder"),
        ("BiRNNBuilder", (0, 2, 4, None, None), "lacks parameters of"),
    ],
    ids=["wide", "deep", "square", "none", "text", "nested", "no-factory"],
)
def test_a_mismatched_spec_is_named(builder: str, spec: Any, text: str, tmp_path: Path) -> None:
    (tmp_path / "m.data").write_bytes(b"")
    values = pickle.dumps(spec, 2)[2:-1]
    (tmp_path / "m.meta").write_bytes(f"c_dynet\n{builder}\n".encode() + values + b"X\2\0\0\0/x\x87.")
    with pytest.raises(LoadError, match=text):
        dy.load(tmp_path / "m", dy.ParameterCollection())
    (tmp_path / "m.meta").write_bytes(pickle.dumps(nest(), 2))
    with pytest.raises(FormatError, match=r"a record \("):
        dy.load(tmp_path / "m", dy.ParameterCollection())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_meta_file_is_executed(
    protocol: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.data").write_bytes(b"")
    (tmp_path / "m.meta").write_bytes(pickle.dumps((Evil(), None, "/x"), protocol=protocol))
    with pytest.raises(FormatError, match="print"):
        dy.load(tmp_path / "m", dy.ParameterCollection())
    called = b"c_dynet\nGRUBuilder\n(I1\ntR."  # a class of the table, called
    (tmp_path / "m.meta").write_bytes(called)
    with pytest.raises(FormatError, match="is called"):
        dy.load(tmp_path / "m", dy.ParameterCollection())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("suffix", [".data", ".meta"])
def test_a_pair_that_is_cut_anywhere_is_an_error(suffix: str, tmp_path: Path) -> None:  # D39
    whole = {s: (GOLDEN / f"hl3{s}").read_bytes() for s in (".data", ".meta")}
    lengths = range(0, len(whole[suffix]), 1 if suffix == ".meta" else 97)
    ends = {0}  # the .meta is a run of pickles: cut between two it is shorter, not damaged
    while suffix == ".meta" and max(ends) < len(whole[suffix]):
        pickletools_end = list(pickletools.genops(whole[suffix][max(ends) :]))[-1][2]
        ends.add(max(ends) + (pickletools_end or 0) + 1)
    for length in [n for n in lengths if n not in ends or suffix == ".data"]:
        for s, data in whole.items():
            (tmp_path / f"m{s}").write_bytes(data[:length] if s == suffix else data)
        with pytest.raises((FormatError, LoadError)):
            dy.load(tmp_path / "m", dy.ParameterCollection())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nothere.meta"):
        dy.load(tmp_path / "nothere", dy.ParameterCollection())


@pytest.mark.parametrize("form", ["plain", "static", "class"])
def test_from_spec_may_be_any_kind_of_method(form: str, tmp_path: Path) -> None:  # D34
    def make(spec: Any, model: Any) -> Any:
        return Own(model, *spec)

    forms = {"plain": make, "static": staticmethod(make), "class": classmethod(lambda cls, s, m: make(s, m))}

    class Own:
        from_spec = forms[form]

        def __init__(self, model: dy.ParameterCollection, width: int) -> None:
            self.collection = model.add_subcollection()
            self.w = self.collection.add_parameters(width)
            self.spec = (width,)

        def param_collection(self) -> dy.ParameterCollection:
            return self.collection

    Own.__qualname__ = "Own"
    one = Own(dy.ParameterCollection(), 3)
    dy.save(tmp_path / "m", [one])
    (again,) = dy.load(tmp_path / "m", dy.ParameterCollection(), [Own])
    np.testing.assert_array_equal(again.w.as_array(), one.w.as_array())


def test_a_pair_without_gains_warns() -> None:  # D44: as DyNet saves a builder with layer normalization
    target = dy.ParameterCollection()
    with pytest.warns(
        UserWarning, match=r"ln-pair.data holds no gains and biases .* of /vanilla-lstm-builder"
    ):
        (builder,) = dy.load(GOLDEN / "ln-pair", target)
    data = (GOLDEN / "ln-pair.data").read_text()
    first = np.array(data.splitlines()[1].split(), "float32")
    (matrix, *_) = target.parameters_list()
    np.testing.assert_array_equal(matrix.as_array().ravel("F"), first)
    assert [p.as_array().ravel()[0] for p in builder.normalization] == [1, 0, 1, 0, 1, 0]


def test_a_pair_of_two_normalized_layers_computes_what_dynet_does() -> None:
    with pytest.warns(UserWarning, match=r"ln2-pair.data holds no gains"):
        (builder,) = dy.load(GOLDEN / "ln2-pair", dy.ParameterCollection())
    dy.renew_cg()
    state = builder.initial_state()
    for numbers in ([1.0, 2.0], [0.5, -1.0]):
        state = state.add_input(dy.inputVector(numbers))
    np.testing.assert_allclose(state.output().npvalue(), [0.0896352082490921, -0.7383602261543274], rtol=1e-5)


def test_gains_of_several_layers_are_saved_and_loaded(tmp_path: Path) -> None:
    lstm = dy.VanillaLSTMBuilder(3, 4, 5, dy.ParameterCollection(), ln_lstm=True)
    for index, parameter in enumerate(lstm.normalization):
        parameter.set_value(np.full(parameter.shape(), index, "float32"))
    dy.save(tmp_path / "m", [lstm])
    (again,) = dy.load(tmp_path / "m", dy.ParameterCollection())
    values = [[p.as_array() for p in one.param_collection().parameters_list()] for one in (lstm, again)]
    for before, after in zip(*values, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_damaged_pair_without_gains_is_refused(tmp_path: Path) -> None:
    lines = (GOLDEN / "ln-pair.data").read_text().splitlines(keepends=True)
    (tmp_path / "m.data").write_text("".join(lines[:4]))  # nor its bias
    (tmp_path / "m.meta").write_bytes((GOLDEN / "ln-pair.meta").read_bytes())
    with pytest.raises(LoadError, match="the file has 2, the collection 9"):
        dy.load(tmp_path / "m", dy.ParameterCollection())
