"""Collections beside files of the real DyNet. The marks D.. are rows of the list of DyNet's features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
import paddlelike.collection as dy
from paddlelike.errors import FormatError, GraphError, LoadError, MissingFileError, SaveError
from tests.collection.models import GOLDEN, arrays_of, make_whole, read_golden


def test_names_are_numbered_as_in_dynet() -> None:  # D03, D04, D12, D13
    m, enc = make_whole()
    golden = read_golden("whole.npz")
    assert {name: array.shape for name, array in arrays_of(m).items()} == {n: golden[n].shape for n in golden}
    assert (m.name(), enc.name()) == ("/", "/enc/")
    assert dy.ParameterCollection().name() == "/"


@pytest.mark.parametrize("name", ["a/b", "a_b"])
def test_names_with_a_slash_or_underscore_are_refused(name: str) -> None:  # D12
    m = dy.ParameterCollection()
    for add in (lambda: m.add_parameters(2, name=name), lambda: m.add_subcollection(name)):
        with pytest.raises(GraphError, match="may not contain '/' or '_'"):
            add()
    assert m.parameters_list() == []


def test_values_of_a_dynet_file_are_loaded_and_written_back_byte_for_byte(
    tmp_path: Path,
) -> None:  # D01-D06, D37, D38
    m, enc = make_whole()
    m.populate(GOLDEN / "whole.model")
    golden = read_golden("whole.npz")
    for name, array in arrays_of(m).items():
        np.testing.assert_array_equal(array, golden[name])  # 9 digits give every float32 back (D36)
    for file, save in {
        "whole.model": lambda p: m.save(p),
        "sub.model": lambda p: enc.save(p),
        "sub-keyed.model": lambda p: enc.save(p, "/ns"),
        "whole-keyed.model": lambda p: m.save(p, "/ns/"),
    }.items():
        save(tmp_path / file)
        assert (tmp_path / file).read_bytes() == (GOLDEN / file).read_bytes(), file


def test_a_prefix_selects_by_path_components(tmp_path: Path) -> None:  # D05, D19
    m = dy.ParameterCollection()
    m.add_parameters((2, 2))
    m.add_parameters(2)
    m.add_lookup_parameters((3, 2, 2))
    m.populate(GOLDEN / "whole.model", "/enc")
    golden = read_golden("whole-prefix-enc.npz")
    for name, array in arrays_of(m).items():
        np.testing.assert_array_equal(array, golden[name])


def test_keys_and_append_work_as_in_the_tutorial(tmp_path: Path) -> None:  # D07-D11, D14
    m1, other = dy.ParameterCollection(), dy.ParameterCollection()
    m3 = m1.add_subcollection("m3")
    a = m1.add_parameters(10, name="a")
    table = m1.add_lookup_parameters((10, 2), name="la")
    b = other.add_parameters((3, 7))
    c, d = m3.add_parameters((3, 7), name="pc"), m3.add_parameters((3, 7))
    golden = read_golden("partial.npz")
    for one, name in ((a, "|a"), (table, "|X"), (b, "|_0"), (c, "|m3|pc"), (d, "|m3|_0")):
        one.set_value(golden[name])
    file = tmp_path / "partial.model"
    table.save(file, "/X")
    for one in (a, c, b, d):
        one.save(file, append=True)
    assert file.read_bytes() == (GOLDEN / "partial.model").read_bytes()
    fresh = dy.ParameterCollection()
    c2 = fresh.add_parameters((3, 7), name="of another name".replace(" ", "-"))
    c2.populate(file, "/m3/pc")
    np.testing.assert_array_equal(c2.as_array(), c.as_array())


def test_a_duplicate_name_is_refused_and_the_file_is_unchanged(tmp_path: Path) -> None:  # D09, D11
    one, two = dy.ParameterCollection(), dy.ParameterCollection()
    one.add_parameters(2)
    two.add_parameters(2)
    file = tmp_path / "m"
    one.save(file)
    before = file.read_bytes()
    with pytest.raises(SaveError, match=r"Parameter /_0 twice"):
        two.save(file, append=True)
    assert file.read_bytes() == before
    two.save(file, "/second", append=True)
    assert file.read_bytes().startswith(before)


@pytest.mark.parametrize("key", ["a b", "a#b", "/", "ns"])
def test_a_key_that_dynet_refuses_is_refused(key: str, tmp_path: Path) -> None:  # D08
    m = dy.ParameterCollection()
    m.add_parameters(2)
    with pytest.raises(ValueError, match="key"):
        m.save(tmp_path / "m", key)
    assert not (tmp_path / "m").exists()


def test_populate_changes_everything_or_nothing_and_lists_every_difference() -> None:  # D05, D06
    m = dy.ParameterCollection()
    m.add_parameters(6, init=1.0)
    m.add_parameters((3, 5), init=2.0)
    with pytest.raises(LoadError) as caught:
        m.populate(GOLDEN / "whole.model")
    text = str(caught.value)
    assert "Parameter: the file has 6, the collection 2" in text
    assert "LookupParameter: the file has 2, the collection 0" in text
    assert "/_0 in the file has shape (5,)" in text
    assert [set(p.as_array().ravel()) for p in m.parameters_list()] == [{1.0}, {2.0}]


def test_strict_names_refuse_names_that_differ(tmp_path: Path) -> None:  # D05
    saved, mine = dy.ParameterCollection(), dy.ParameterCollection()
    saved.add_parameters(2, name="a")
    mine.add_parameters(2, name="b")
    saved.save(tmp_path / "m")
    mine.populate(tmp_path / "m")
    with pytest.raises(LoadError, match="/a in the file, /b in the collection"):
        mine.populate(tmp_path / "m", strict_names=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, p: p.populate(GOLDEN / "whole.model", "/nokey"), LoadError, "has no Parameter '/nokey'"),
        (lambda m, p: p.populate(GOLDEN / "whole.model", "/enc/emb"), LoadError, "one of the other kind"),
        (lambda m, p: p.populate(GOLDEN / "whole.model", ""), ValueError, "needs the key"),
        (lambda m, p: p.populate(GOLDEN / "whole.model", "/w"), LoadError, r"has shape \(3, 5\)"),
        (
            lambda m, p: m.populate(GOLDEN / "whole.model", "/nowhere"),
            LoadError,
            "the file has 0, the collection 1",
        ),
        (lambda m, p: m.populate(GOLDEN / "nofile"), MissingFileError, "no such file: .*nofile"),
        (lambda m, p: m.load_param(GOLDEN / "whole.model", "/enc/emb"), LoadError, "other kind"),
    ],
    ids=["no-such-key", "other-kind", "empty-key", "dims", "empty-prefix", "no-file", "load-lookup"],
)
def test_invalid_loads_raise_and_change_no_parameter(
    call: object, error: type[Exception], text: str
) -> None:  # D06, D14, D15
    m = dy.ParameterCollection()
    p = m.add_parameters(5, init=3.0)
    with pytest.raises(error, match=text):
        call(m, p)  # type: ignore[operator]
    assert set(p.as_array()) == {3.0}


def test_load_param_adds_a_parameter_with_the_size_in_the_file() -> None:  # D15
    m = dy.ParameterCollection()
    w = m.load_param(GOLDEN / "whole.model", "/w")
    table = m.load_lookup_param(GOLDEN / "whole.model", "/enc/emb")
    assert (w.name(), w.shape(), table.shape()) == ("/w", (3, 5), (3, 2, 2))
    np.testing.assert_array_equal(w.as_array(), np.load(GOLDEN / "whole.npz")["|w"])
    assert m.parameters_list() == [w]
    assert m.lookup_parameters_list() == [table]


def test_gradients_are_saved_and_loaded_with_the_values(tmp_path: Path) -> None:  # D38, D41
    m = dy.ParameterCollection()
    w, b = m.add_parameters((3, 2), name="W"), m.add_parameters(3, name="b")
    table, unused = m.add_lookup_parameters((4, 2), name="E"), m.add_parameters(2, name="unused")
    m.populate(GOLDEN / "grad.model")
    golden = read_golden("grad.npz")
    for one in (w, b, table, unused):
        np.testing.assert_array_equal(one.grad_as_array(), golden["grad" + one.name().replace("/", "|")])
    m.save(tmp_path / "grad.model")
    assert (tmp_path / "grad.model").read_bytes() == (GOLDEN / "grad.model").read_bytes()
    for one in (w, b, table, unused):
        one.reset_gradient()
    loss = dy.squared_norm(dy.tanh(dy.parameter(w) * dy.lookup(table, 1) + dy.parameter(b)))
    loss.backward()
    for one in (w, b, table):  # float32 sums in another order
        wanted = golden["grad" + one.name().replace("/", "|")]
        np.testing.assert_allclose(one.grad_as_array(), wanted, rtol=1e-5, atol=1e-7)


def test_decayed_values_match_the_file() -> None:  # D43
    m = dy.ParameterCollection()
    x = m.add_parameters(3)
    m.populate(GOLDEN / "decay.model")
    np.testing.assert_array_equal(x.as_array(), np.load(GOLDEN / "decay.npz")["loaded"])


def test_inf_and_nan_are_refused_on_save_and_load(tmp_path: Path) -> None:  # D42
    m = dy.ParameterCollection()
    m.add_parameters(2, init=np.float32([1, np.nan]), name="x")
    with pytest.raises(SaveError, match=r"/x holds inf or nan"):
        m.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with pytest.raises(FormatError, match=r"nonfinite.model: .*block /edge"):
        m.populate(GOLDEN / "nonfinite.model")


def test_fluid_trains_and_saves_the_same_values(tmp_path: Path) -> None:  # D01, D16
    m = dy.ParameterCollection()
    w = m.add_parameters((1, 3), name="w")
    x = dy.inputVector([1.0, -2.0, 0.5])
    loss = dy.squared_norm(dy.parameter(w) * x - dy.inputVector([3.0]))
    fluid.optimizer.SGD(0.05).minimize(loss.variable)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    losses = [float(exe.run(fetch_list=[loss.variable])[0]) for _ in range(30)]
    assert losses[-1] < 1e-3 < losses[0]
    assert abs(float((w.as_array() @ [1.0, -2.0, 0.5])[0]) - 3) < 0.05
    fluid.io.save_params(exe, str(tmp_path / "dir"))
    trained = w.as_array()
    w.zero()
    fluid.io.load_params(exe, str(tmp_path / "dir"), fluid.default_main_program().clone(for_test=True))
    np.testing.assert_array_equal(w.as_array(), trained)
