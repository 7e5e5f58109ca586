"""Places: programs run on the CPU, and on GPUs that JAX sees."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from paddlelike.core import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, is_compiled_with_cuda, places
from paddlelike.core.places import cpu_places, cuda_pinned_places, cuda_places, require_device
from paddlelike.errors import UnsupportedError


def test_places_compare_by_value() -> None:
    assert CPUPlace() == CPUPlace()
    assert CUDAPlace(1) != CUDAPlace(2)
    assert len({CUDAPlace(1), CUDAPlace(1), CPUPlace()}) == 2
    assert [str(place) for place in (CPUPlace(), CUDAPlace(3), CUDAPinnedPlace())] == [
        "CPUPlace", "CUDAPlace(3)", "CUDAPinnedPlace",
    ]  # fmt: skip


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have JAX see that many GPUs."""
    return lambda count: monkeypatch.setattr(places, "_count_gpus", SimpleNamespace(function=lambda: count))


def test_the_default_is_the_cpu(gpus: Callable[[int], None]) -> None:
    gpus(0)
    assert require_device(None) == require_device(CPUPlace()) == CPUPlace()
    assert is_compiled_with_cuda() is False


def test_the_gpus_of_jax_are_available_as_places(
    gpus: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(2)
    monkeypatch.delenv("FLAGS_selected_gpus", raising=False)
    assert is_compiled_with_cuda() is True
    assert require_device(CUDAPlace(1)) == CUDAPlace(1)
    assert cuda_places() == [CUDAPlace(0), CUDAPlace(1)]
    assert cuda_places([1]) == [CUDAPlace(1)]
    monkeypatch.setenv("FLAGS_selected_gpus", "1")
    assert cuda_places() == [CUDAPlace(1)]
    assert cuda_pinned_places(3) == [CUDAPinnedPlace()] * 3
    with pytest.raises(UnsupportedError, match=r"CUDAPlace\(2\): JAX sees 2 GPUs"):
        require_device(CUDAPlace(2))


@pytest.mark.parametrize("place", [CUDAPlace(0), CUDAPinnedPlace()], ids=str)
def test_invalid_places_are_refused_with_a_list_of_valid_ones(
    place: Place, gpus: Callable[[int], None]
) -> None:
    gpus(0)
    with pytest.raises(
        UnsupportedError, match=r"JAX sees no GPU here|is not installed|no program runs there"
    ) as caught:
        require_device(place)
    assert "CPUPlace()" in str(caught.value.hint)
    for list_places in (cuda_places, cuda_pinned_places):
        with pytest.raises(UnsupportedError, match="no GPU places"):
            list_places()


def test_the_number_of_cpu_places_comes_from_the_caller_or_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CPU_NUM", raising=False)
    assert cpu_places() == [CPUPlace()]
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(cpu_places()) == 3
    assert len(cpu_places(2)) == 2
    monkeypatch.setenv("CPU_NUM", "many")
    with pytest.raises(ValueError, match="many"):
        cpu_places()
