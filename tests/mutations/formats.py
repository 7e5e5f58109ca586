"""Faults in ``paddlelike/formats/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "a negative dim is written as it is",
        "formats/paddle/tensor_desc.py",
        "    value %= _U64  # a negative number takes ten bytes\n",
        "    value = abs(value)\n",
    ),
    Mutation(
        "packed dims are passed over",
        "formats/paddle/tensor_desc.py",
        "            dims.extend(_unpack(part))",
        "            list(_unpack(part))",
    ),
    Mutation(
        "a number that ends too early passes",
        "formats/paddle/tensor_desc.py",
        '            raise FormatError("the TensorDesc ends inside a number")',
        "            return value, at",
    ),
    Mutation(
        "sizes beyond any file pass",
        "formats/elements.py",
        "nbytes = math.prod(dim for dim in shape[:_MAX_DIMS] if dim) * itemsize",
        "nbytes = math.prod(shape[:_MAX_DIMS]) * itemsize",
    ),
    Mutation(
        "unknown element types pass",
        "formats/paddle/tensor_desc.py",
        "    if dtype not in TENSOR_DTYPES:\n",
        "    if dtype is None:\n",
    ),
    Mutation(
        "a slice beyond the tensor is read",
        "formats/paddle/lod_tensor.py",
        "if start < 0 or count < 0 or offset + count * size > self.end:",
        "if start < 0 or count < 0:",
    ),
    Mutation(
        "a LoD is written with the number of its elements",
        "formats/paddle/lod_tensor.py",
        'b"".join(len(level).to_bytes(8, "little") + level for level in levels)',
        'b"".join((len(level) // 8).to_bytes(8, "little") + level for level in levels)',
    ),
    Mutation(
        "a cut stream is plain",
        "formats/paddle/lod_tensor.py",
        "start, nbytes, surplus) if surplus >= 0 else None",
        "start, nbytes, surplus) if surplus >= -8 else None",
    ),
    Mutation(
        "tensors in a safetensors file may overlap",
        "formats/safetensors.py",
        "if entry.offset != at or entry.nbytes != expected:",
        "if entry.nbytes != expected:",
    ),
    Mutation(
        "the header of a safetensors file is not aligned",
        "formats/safetensors.py",
        '        text += b" " * (-len(text) % 8)\n',
        "",
    ),
    Mutation(
        "rows of a safetensors header are in the order of names",
        "formats/safetensors.py",
        'key=lambda name: (-_ORDER.index(names[name] or ""), name)',
        "key=lambda name: name",
    ),
    Mutation(
        "a pickle in an NPY file is opened",
        "formats/npy.py",
        "    if dtype.hasobject or dtype.subdtype is not None:",
        "    if dtype.subdtype is not None:",
    ),
    Mutation(
        "Fortran order is taken for C order",
        "formats/npy.py",
        'found[2] == "True", end)',
        'found[2] == "true", end)',
    ),
    Mutation(
        "NPY headers are padded to 16 bytes",
        "formats/npy.py",
        "+ 1) % 64",
        "+ 1) % 16",
    ),
    Mutation(
        "two members of one name pass",
        "formats/zips.py",
        "            if count > 1 and not doubled:",
        "            if False and not doubled:",
    ),
    Mutation(
        "the sums of a ZIP file are not compared",
        "formats/zips.py",
        "        if found != member.info.CRC:",
        "        if found == 0 != member.info.CRC:",
    ),
    Mutation(
        "an encrypted member passes",
        "formats/zips.py",
        "    if info.flag_bits & 1:",
        "    if info.flag_bits & 2:",
    ),
    Mutation(
        "the dims of a lookup table are turned",
        "formats/dynet.py",
        "(*shape[1:], shape[0]) if self.is_lookup else shape",
        "shape if self.is_lookup else shape",
    ),
    Mutation(
        "two blocks of one name pass",
        "formats/dynet.py",
        "            if block.name in found:",
        "            if block.name is None:",
    ),
]
