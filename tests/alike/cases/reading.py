"""Data on its way in: feeders, readers, loaders inside and outside of programs."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused


def _samples(count=7):
    return lambda: iter([(np.full(3, i, "float32"), np.array([i % 2])) for i in range(count)])


def _inputs(fluid):
    return [fluid.data("x", [None, 3]), fluid.data("l", [None, 1], "int64")]


def feeders(fluid):
    feeder = fluid.DataFeeder(_inputs(fluid), fluid.CPUPlace())
    return {
        "lists": feeder.feed([([1, 2, 3], [0]), ([4, 5, 6], [1])]),
        "arrays": feeder.feed([(np.ones(3), np.array([1]))]),
        "scalars": feeder.feed([([1.5, 2.5, 3.5], 1)]),
        "too_short": refused(feeder.feed, [([1, 2, 3],)]),
        "too_long": refused(feeder.feed, [([1, 2, 3], [0], [0])]),
        "wrong_width": refused(feeder.feed, [([1, 2], [0])]),
    }


def feeders_by_name(fluid):
    _inputs(fluid)
    feeder = fluid.DataFeeder(["l", "x"], fluid.CPUPlace())
    return [feeder.feed([([1], [1, 2, 3])]), refused(fluid.DataFeeder, ["nobody"], fluid.CPUPlace())]


def feeders_of_images(fluid):
    image = fluid.layers.data("image", [1, 2, 2])
    feeder = fluid.DataFeeder([image], fluid.CPUPlace())
    return feeder.feed([(np.arange(4),), (np.arange(4) * 2,)])


def feeders_of_sequences(fluid):
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    feeder = fluid.DataFeeder([words], fluid.CPUPlace())
    return [feeder.feed([([1, 2, 3],), ([4],)]), feeder.feed([([[1], [2]],), ([[3]],)])]


def feeders_of_nested_sequences(fluid):
    words = fluid.data("w", [None, 1], "int64", lod_level=2)
    feeder = fluid.DataFeeder([words], fluid.CPUPlace())
    return feeder.feed([([[1, 2], [3]],), ([[4]],)])


def feeders_of_wide_sequences(fluid):
    steps = fluid.data("w", [None, 2], lod_level=1)
    feeder = fluid.DataFeeder([steps], fluid.CPUPlace())
    return feeder.feed([([[1, 2], [3, 4]],), ([[5, 6]],)])


def feeders_for_copies(fluid):
    feeder = fluid.DataFeeder(_inputs(fluid), fluid.CPUPlace())
    batches = [[([1, 2, 3], [0])], [([4, 5, 6], [1])]]
    return [
        list(feeder.feed_parallel(batches, 2)),
        refused(lambda: list(feeder.feed_parallel(batches, 3))),
    ]


def feeders_over_readers(fluid):
    feeder = fluid.DataFeeder(_inputs(fluid), fluid.CPUPlace())
    batches = fluid.io.batch(_samples(5), 2)
    alone = list(feeder.decorate_reader(batches, multi_devices=False)())
    pairs = list(feeder.decorate_reader(batches, multi_devices=True, num_places=2)())
    rest = refused(lambda: list(feeder.decorate_reader(batches, True, 2, drop_last=False)()))
    return [len(alone), len(pairs), [len(pair) for pair in pairs], rest]


def readers(fluid):
    io = fluid.io

    def count(stop):
        return lambda: iter(range(stop))

    def pairs():
        return iter([(1, 2), (3, 4)])

    return {
        "batch": list(io.batch(count(5), 2)()),
        "drop_last": list(io.batch(count(5), 2, drop_last=True)()),
        "chain": list(io.chain(count(2), count(3))()),
        "compose": list(io.compose(count(2), pairs)()),
        "unaligned": refused(lambda: list(io.compose(count(2), count(3))())),
        "unaligned_allowed": list(io.compose(count(2), count(3), check_alignment=False)()),
        "firstn": list(io.firstn(count(9), 3)()),
        "map": list(io.map_readers(lambda a, b: a + b, count(3), count(3))()),
        "buffered": list(io.buffered(count(5), 2)()),
        "cache": [list(read()) for read in [io.cache(count(3))] * 2],
        "shuffle": sorted(io.shuffle(count(6), 4)()),
        "xmap": list(io.xmap_readers(lambda a: a * 2, count(5), 2, 2, order=True)()),
        "xmap_unordered": sorted(io.xmap_readers(lambda a: a * 2, count(5), 2, 2)()),
        "wrong_size": refused(io.batch, count(3), 0),
    }


def a_loader(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)
    loader.set_sample_generator(_samples(), batch_size=3, drop_last=False, places=fluid.cpu_places(1))
    return list(loader())


def a_loader_that_drops_the_rest(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)
    loader.set_sample_generator(_samples(), batch_size=3, places=fluid.cpu_places(1))
    return [len(list(loader())), len(list(loader()))]


def a_loader_of_lists(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4, return_list=True)
    batches = fluid.io.batch(_samples(4), 2)
    loader.set_sample_list_generator(batches, places=fluid.cpu_places(1))
    return list(loader())


def a_loader_of_batches(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)

    def batches():
        for i in range(3):
            yield np.full((2, 3), i, "float32"), np.full((2, 1), i)

    loader.set_batch_generator(batches, places=fluid.cpu_places(1))
    return list(loader())


def a_loader_for_two_copies(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)
    loader.set_sample_generator(_samples(8), batch_size=2, places=fluid.cpu_places(2))
    return list(loader())


def a_loader_for_two_copies_with_a_rest(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)
    loader.set_sample_generator(_samples(6), batch_size=2, places=fluid.cpu_places(2))
    return [len(group) for group in loader()]


def a_loader_for_two_copies_that_keeps_the_rest(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4, drop_last=False)
    loader.set_sample_generator(_samples(6), batch_size=2, places=fluid.cpu_places(2))
    return [len(group) for group in loader()]


def training_by_a_loader_for_two_copies(fluid):
    x, label = _inputs(fluid)
    h = fluid.layers.fc(x, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(h, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4)
    places = fluid.cpu_places(2)
    loader.set_sample_generator(_samples(8), batch_size=2, places=places)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
    return [exe.run(compiled, feed=feed, fetch_list=[loss]) for feed in loader()]


def _in_a_program(fluid, epochs=2, **options):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=4, iterable=False, **options)
    loader.set_sample_generator(_samples(), batch_size=3, drop_last=False)
    y = fluid.layers.scale(x, 2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    found = []
    for _ in range(epochs):
        loader.start()
        while True:
            try:
                found.append(exe.run(fetch_list=[y, label]))
            except fluid.core.EOFException:
                loader.reset()
                break
    return found


def a_loader_in_a_program(fluid):
    values = _in_a_program(fluid)
    return [values, fluid.default_main_program(), fluid.default_startup_program()]


def a_loader_in_a_program_without_buffer(fluid):
    values = _in_a_program(fluid, 1, use_double_buffer=False)
    programs = fluid.default_main_program(), fluid.default_startup_program()
    return [values, [[op.type for op in program.global_block().ops] for program in programs]]


def a_loader_in_a_program_left_early(fluid):
    x, label = _inputs(fluid)
    loader = fluid.io.DataLoader.from_generator([x, label], capacity=1, iterable=False)
    loader.set_sample_generator(_samples(9), batch_size=2)
    y = fluid.layers.scale(x, 2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    loader.start()
    first = exe.run(fetch_list=[y])
    loader.reset()
    loader.start()
    again = exe.run(fetch_list=[y])
    loader.reset()
    return [first, again]


def an_older_reader(fluid):
    x, label = _inputs(fluid)
    reader = fluid.io.PyReader([x, label], capacity=4)
    reader.decorate_sample_list_generator(fluid.io.batch(_samples(4), 2), places=fluid.cpu_places(1))
    return list(reader())


def a_py_reader(fluid):
    reader = fluid.layers.py_reader(4, [(-1, 3), (-1, 1)], ["float32", "int64"], name="mine")
    x, label = fluid.layers.read_file(reader)
    reader.decorate_paddle_reader(fluid.io.batch(_samples(4), 2))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    found = []
    for _ in range(2):
        reader.start()
        try:
            while True:
                found.append(exe.run(fetch_list=[x, label]))
        except fluid.core.EOFException:
            reader.reset()
    return [found, fluid.default_main_program(), fluid.default_startup_program(), x.name]


def a_py_reader_with_arrays(fluid):
    reader = fluid.layers.py_reader(
        4, [(-1, 3), (-1, 1)], ["float32", "int64"], lod_levels=[0, 0], use_double_buffer=False
    )
    x, label = fluid.layers.read_file(reader)

    def batches():
        for i in range(2):
            yield np.full((2, 3), i, "float32"), np.full((2, 1), i)

    reader.decorate_tensor_provider(batches)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    reader.start()
    found = [exe.run(fetch_list=[x, label]) for _ in range(2)]
    end = refused(exe.run, fetch_list=[x])
    reader.reset()
    return [found, end, fluid.default_main_program()]


def a_py_reader_by_data(fluid):
    inputs = _inputs(fluid)
    reader = fluid.layers.create_py_reader_by_data(4, inputs, name="mine")
    x, label = fluid.layers.read_file(reader)
    reader.decorate_sample_list_generator(fluid.io.batch(_samples(4), 2))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    reader.start()
    found = exe.run(fetch_list=[x, label])
    reader.reset()
    return [found, fluid.default_main_program(), fluid.default_startup_program(), x.name, label.name]


def a_double_buffer(fluid):
    reader = fluid.layers.py_reader(4, [(-1, 3)], ["float32"], use_double_buffer=False)
    reader = fluid.layers.double_buffer(reader, name="buffer")
    x = fluid.layers.read_file(reader)
    return [x.name, fluid.default_main_program(), fluid.default_startup_program()]


def loaders_refused(fluid):
    x, label = _inputs(fluid)
    make = fluid.io.DataLoader.from_generator
    loader = make([x, label], capacity=4)
    inside = make([x, label], capacity=4, iterable=False)
    return {
        "no_source": refused(lambda: list(loader())),
        "no_capacity": refused(lambda: make([x, label]).set_batch_generator(_samples())),
        "looped_inside": refused(lambda: list(inside)),
        "started_outside": refused(loader.start),
    }
