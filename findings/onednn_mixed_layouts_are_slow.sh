#!/usr/bin/env bash
# onednn-cpu-gomp 2023.2.0 (oneDNN 3.2, AVX-512 or AVX2): a convolution from NCHW to NHWC, float32, falls to the reference
# implementation ("ref:any") without an error; NHWC to NHWC and layouts of its own choice are compiled (jit, brgconv).
# The reference is hundreds to thousands of times slower; only the descriptor's name of the implementation shows it.
# Seen: serving ResNet-50, whose first convolution took 5.5 s in place of 2.4 ms when it read the picture as it came.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/v"
"$folder/v/bin/pip" install -q --no-deps onednn-cpu-gomp==2023.2.0
cat > "$folder/run.py" <<'EOF'
import ctypes as C
import sys

dnnl, Dims = C.CDLL(sys.prefix + "/lib/libdnnl.so.3"), C.c_int64 * 12


def make(name, *arguments):
    handle = C.c_void_p()
    status = getattr(dnnl, "dnnl_" + name)(C.byref(handle), *arguments)
    assert status == 0, (name, status)
    return handle


def describe(shape, steps=None):
    given = C.c_int(len(shape)), Dims(*shape), C.c_int(3)
    if steps is None:  # the library chooses
        return make("memory_desc_create_with_tag", *given, C.c_int(1))
    return make("memory_desc_create_with_strides", *given, Dims(*steps))


def images(shape, layout):
    n, c, h, w = shape
    return describe(shape, {"NCHW": (c * h * w, h * w, w, 1), "NHWC": (c * h * w, 1, w * c, c), "any": None}[layout])


engine, names = make("engine_create", C.c_int(1), C.c_size_t(0)), {}
for source, target in (("any", "any"), ("NHWC", "NHWC"), ("NCHW", "NHWC")):
    found = make(
        "convolution_forward_primitive_desc_create", engine, C.c_int(96), C.c_int(1), images((1, 3, 224, 224), source),
        describe((64, 3, 7, 7)), None, images((1, 64, 112, 112), target), Dims(2, 2), Dims(0, 0), Dims(3, 3), Dims(3, 3), None,
    )
    name = C.c_char_p()
    assert dnnl.dnnl_primitive_desc_query(found, C.c_int(8), C.c_int(0), C.byref(name)) == 0
    names[source, target] = name.value.decode()
    print(f"{source} to {target}: {names[source, target]}")
slow = [pair for pair, name in names.items() if name.startswith("ref")]
sys.exit(slow != [("NCHW", "NHWC")])
EOF
"$folder/v/bin/python" "$folder/run.py"
