"""One engine with one model, run by ``bench_inference`` in the interpreter that has the engine.

    python contender.py ENGINE FOLDER THREADS

After its first answer, and for each line of its standard input, it prints seconds as JSON. Python 3.7 runs it, for
Fluid 1.8.5, and nothing but the engine and numpy is imported.
"""

import json
import os
import sys
import time

import numpy as np

BEGIN = time.time()
LEAST = 0.05  # seconds of calls that one figure is of


def open_predictor(core, folder, feed, switch):
    config = core.AnalysisConfig(os.path.join(folder, "__model__"), os.path.join(folder, "__params__"))
    config.disable_gpu()
    config.switch_use_feed_fetch_ops(False)
    config.switch_specify_input_names(True)
    config.set_cpu_math_library_num_threads(int(sys.argv[3]))
    switch(config)
    return call_handles(core.create_paddle_predictor(config), feed)


def call_handles(predictor, feed):
    take = getattr(predictor, "get_input_tensor", None) or predictor.get_input_handle
    give = getattr(predictor, "get_output_tensor", None) or predictor.get_output_handle
    run = getattr(predictor, "zero_copy_run", None) or predictor.run

    def call():
        for name in predictor.get_input_names():
            take(name).copy_from_cpu(feed[name])
        run()
        return [give(name).copy_to_cpu() for name in predictor.get_output_names()]

    return call


def open_paddlelike(folder, feed, switch=lambda config: None, flags=None):
    import paddlelike as fluid

    fluid.set_flags({"FLAGS_paddle_num_threads": int(sys.argv[3]), **(flags or {})})
    return open_predictor(fluid.core, folder, feed, switch)


def open_fluid(folder, feed):
    from paddle.fluid import core

    return open_predictor(core, folder, feed, lambda config: config.enable_mkldnn())


def open_paddle2(folder, feed):
    from paddle import inference

    config = inference.Config(os.path.join(folder, "__model__"), os.path.join(folder, "__params__"))
    config.disable_gpu()
    config.disable_glog_info()
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(int(sys.argv[3]))
    return call_handles(inference.create_predictor(config), feed)


def open_onnxruntime(folder, feed):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = int(sys.argv[3]), 1
    session = onnxruntime.InferenceSession(
        os.path.join(folder, "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, feed)


ENGINES = {
    "plain": lambda folder, feed: open_paddlelike(folder, feed, lambda config: config.switch_ir_optim(False)),
    "paddlelike": lambda folder, feed: open_paddlelike(folder, feed, flags={"FLAGS_use_fast_kernels": False}),
    "fast": open_paddlelike,
    "engine": lambda folder, feed: open_paddlelike(folder, feed, lambda config: config.enable_onnxruntime()),
    "onnxruntime": open_onnxruntime,
    "fluid": open_fluid,
    "paddle2": open_paddle2,
}


def main():
    feed = dict(np.load(os.path.join(sys.argv[2], "feed.npz")))
    call = ENGINES[sys.argv[1]](sys.argv[2], feed)
    out = call()
    print(json.dumps([time.process_time(), time.time() - BEGIN, float(np.abs(out[0]).mean())]), flush=True)
    count = 1
    for _ in sys.stdin:
        start = time.process_time()
        for _ in range(count):
            call()
        seconds = (time.process_time() - start) / count
        count = max(1, int(LEAST / max(seconds, 1e-7)))
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
