"""Blocks of several threads: scopes, programs and generated names are those of the thread's own block."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.foundation.current import Block, Current
from paddlelike.framework.graph.operator import DEVICE
from paddlelike.unique_name import UniqueNameGenerator
from tests.interrupts.interrupting import interrupt, list_operations

Guard = Callable[[Any], AbstractContextManager[object]]

#: By name: the guard, what it replaces, and values for it.
GUARDS: dict[str, tuple[Guard, Callable[[], Any], Callable[[], Any]]] = {
    "scope": (fluid.scope_guard, fluid.global_scope, fluid.Scope),
    "program": (fluid.program_guard, fluid.default_main_program, fluid.Program),
    "startup": (
        lambda program: fluid.program_guard(fluid.Program(), program),
        fluid.default_startup_program,
        fluid.Program,
    ),
    "device": (fluid.device_guard, DEVICE.get, itertools.cycle(["cpu", "gpu"]).__next__),
}


@pytest.mark.parametrize("name", GUARDS)
def test_threads_enter_and_leave_their_blocks_in_any_order(name: str) -> None:
    guard, get, make = GUARDS[name]
    before = get()
    values = [make(), make()]
    first, second = map(guard, values)
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(lambda: first.__enter__()).result()
        other.submit(lambda: second.__enter__()).result()
        assert (one.submit(get).result(), other.submit(get).result()) == (values[0], values[1])
        assert get() is before  # of the main thread, which entered none
        one.submit(first.__exit__, None, None, None).result()
        assert other.submit(get).result() is values[1]
        other.submit(second.__exit__, None, None, None).result()
        assert [one.submit(get).result(), other.submit(get).result(), get()] == [before] * 3


@pytest.mark.parametrize("name", GUARDS)
def test_an_interrupt_at_any_operation_leaves_no_block_entered(name: str) -> None:
    guard, get, make = GUARDS[name]
    value = make()

    def call() -> None:
        with guard(value):
            get()

    operations, kept = list_operations(call, also=(__file__,)), []
    assert len(operations) > 20
    with ThreadPoolExecutor(1) as pool:  # it has the value of a block that any thread is in
        before = pool.submit(get).result()
        for at in operations:
            kept.append(interrupt(call, at, also=(__file__,)))  # as an interactive session keeps it
            assert pool.submit(get).result() is before, at
    assert sum(isinstance(error, KeyboardInterrupt) for error in kept) == len(operations)


def test_a_guard_decorates_a_function_again_and_again() -> None:
    value = fluid.Scope()

    @fluid.scope_guard(value)
    def call() -> bool:
        return fluid.global_scope() is value

    assert [call(), call(), fluid.global_scope() is value] == [True, True, False]


@pytest.mark.parametrize("name", GUARDS)
def test_the_guard_entered_last_counts_whichever_was_made_first(name: str) -> None:
    guard, get, make = GUARDS[name]
    before, values = get(), [make(), make()]
    first, second = map(guard, values)
    with second:
        with first:
            assert get() is values[0]
        assert get() is values[1]
        with pytest.raises(RuntimeError, match="one `with` at a time"), second:
            pass
    assert get() is before


def test_a_guard_used_again_counts_as_entered_last_and_is_remembered_once() -> None:
    size = Current(1)
    first, second = size.replaced(2), size.replaced(3)
    for _ in range(3):
        with first:
            assert size.get() == 2
        with second, first:
            assert size.get() == 2
    assert len(size.blocks) == 2


def test_a_thread_keeps_its_value_while_other_threads_leave_their_guards() -> None:
    size = Current(1)
    others = [size.replaced(value) for value in (3, 4)]

    class Last(Block):
        def is_own(self) -> bool:
            others.clear()  # as if other threads left them at this moment
            return super().is_own()

    with size.replaced(2), ThreadPoolExecutor(1) as pool:
        last = Last({size: 5})
        for block in (*others, last):
            pool.submit(ExitStack().enter_context, block).result()
        del block
        assert size.get() == 2
        pool.submit(last.__exit__, None, None, None).result()


def test_a_generator_may_end_its_guard_in_another_thread() -> None:
    def read() -> Iterator[fluid.Scope]:
        with fluid.scope_guard(fluid.Scope()):
            yield fluid.global_scope()

    before, reader = fluid.global_scope(), read()
    assert next(reader) is not before
    with ThreadPoolExecutor(1) as pool:
        pool.submit(reader.close).result()
    assert fluid.global_scope() is before


def test_each_thread_numbers_its_names_independently() -> None:
    def build() -> list[str]:
        with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
            both.wait(30)
            layers = [fluid.layers.fc(fluid.data(name, [None, 4]), 3) for name in "xy"]
            both.wait(30)
            names = [layer.name for layer in layers]
            program = fluid.default_main_program()
            return [*names, *sorted(p.name for p in program.all_parameters())]

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        found = [future.result() for future in [pool.submit(build), pool.submit(build)]]
    assert found[0] == found[1]
    assert found[0][2:] == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_a_thread_started_inside_of_a_block_has_its_value() -> None:
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(fluid.global_scope).result()
        with fluid.scope_guard(scope := fluid.Scope()):
            assert pool.submit(fluid.global_scope).result() is scope
        assert pool.submit(fluid.global_scope).result() is before


def test_a_switched_program_stays_current_until_its_block_ends() -> None:
    before, inner, outer = (fluid.Program() for _ in range(3))
    with fluid.program_guard(before):
        with fluid.program_guard(fluid.Program()):
            with fluid.name_scope("of_another_kind"):
                fluid.framework.switch_main_program(inner)
            assert fluid.default_main_program() is inner
        assert fluid.default_main_program() is before
        assert fluid.framework.switch_main_program(outer) is before
        assert fluid.default_main_program() is outer


def test_concurrent_threads_never_get_the_same_name() -> None:
    """The second thread asks for a name while the first one has read the count and not increased it."""
    generator = UniqueNameGenerator()
    names: list[str] = []
    second = threading.Thread(target=lambda: names.append(generator("fc")))

    class Slow(Counter[str]):
        def __getitem__(self, key: str) -> int:
            count = super().__getitem__(key)
            if not second.ident:
                second.start()
                second.join(0.1)  # it cannot end before this one has its name
            return count

    generator.counts = Slow()
    names.append(generator("fc"))
    second.join(30)
    assert sorted(names) == ["fc_0", "fc_1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_drops_the_blocks_of_other_threads() -> None:
    size = Current(1)
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as other:
        block = size.replaced(2)
        pool.submit(lambda: block.__enter__()).result()
        assert other.submit(size.get).result() == 2
        child = os.fork()
        if child == 0:
            found: list[int] = []
            thread = threading.Thread(target=lambda: found.append(size.get()))
            thread.start()
            thread.join(30)
            os._exit(found[0])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        pool.submit(block.__exit__, None, None, None).result()
