"""Places: programs run on CPU places, others can only be named."""

from __future__ import annotations

import pytest

from paddlelike.core.places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    Place,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
    require_cpu,
)
from paddlelike.errors import UnsupportedError


def test_places_are_values() -> None:
    assert CPUPlace() == CPUPlace()
    assert CUDAPlace(1) != CUDAPlace(2)
    assert len({CUDAPlace(1), CUDAPlace(1), CPUPlace()}) == 2
    assert [str(place) for place in (CPUPlace(), CUDAPlace(3), CUDAPinnedPlace())] == [
        "CPUPlace", "CUDAPlace(3)", "CUDAPinnedPlace",
    ]  # fmt: skip


def test_the_default_is_the_cpu() -> None:
    assert require_cpu(None) == require_cpu(CPUPlace()) == CPUPlace()
    assert is_compiled_with_cuda() is False


@pytest.mark.parametrize("place", [CUDAPlace(0), CUDAPinnedPlace()], ids=str)
def test_other_places_are_refused_with_what_to_pass(place: Place) -> None:
    with pytest.raises(UnsupportedError, match="has no kernels here") as caught:
        require_cpu(place)
    assert "CPUPlace()" in str(caught.value.hint)
    for list_places in (cuda_places, cuda_pinned_places):
        with pytest.raises(UnsupportedError, match="no GPU places"):
            list_places()


def test_the_count_of_cpu_places_comes_from_the_caller_or_the_environment(
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
