"""CNTK's operations: their numbers in files, and their names.

The numbers come from PrimitiveOpType in CNTK 2.7; CNTK never changes existing numbers.
"""

from __future__ import annotations

from typing import Final

_LISTED: Final = """
0 Negate Sigmoid Tanh ReLU Exp Log Sqrt Floor Abs Reciprocal
10 Softmax Hardmax TransposeAxes Where Slice Dropout Reshape Pooling SumAll Plus
20 Minus ElementTimes Equal NotEqual Less LessEqual Greater GreaterEqual PackedIndex GatherPacked
30 ScatterPacked Times TransposeTimes Convolution SquaredError CrossEntropyWithSoftmax ClassificationError
37 PastValue FutureValue ReduceElements BatchNormalization Clip Select Splice Combine RandomSample
46 RandomSampleInclusionFrequency ROIPooling Logistic OptimizedRNNStack ReconcileDynamicAxis LogSoftmax
52 LogPlus CosDistance Sin Cos Pass Block Unpooling LambdaRank NDCG EditDistanceError NoOp LabelsToGraph
64 StopGradient ELU ForwardBackward CosDistanceWithNegativeSamples OneHot Pow ToSequence ToSequenceLike
72 UnpackSequence Assign Gather StableSigmoid RandomDistribution Sinh Cosh UnpackBatch ToBatch
81 Asin Acos Pad Crop Atanh Asinh TopK
88 Squeeze ConstantOp LatticeSequenceWithSoftmax Cast EyeLike CustomProxy StraightThrough Tan Atan
"""


def _parse() -> dict[int, str]:
    found: dict[int, str] = {}
    for line in _LISTED.strip().splitlines():
        first, *names = line.split()
        found.update(enumerate(names, int(first)))
    return found


#: The name of each operation.
NAMES: Final = _parse()
#: The number of each operation.
NUMBERS: Final = {name: number for number, name in NAMES.items()}


def name_operation(number: int) -> str:
    """Return the name of an operation.

    >>> name_operation(31), name_operation(900)
    ('Times', 'operation 900')
    """
    return NAMES.get(number, f"operation {number}")
