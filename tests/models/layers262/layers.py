"""Layers of paddle.nn."""

import numpy as np
from inputs import IMAGE, ROWS, SERIES, VOLUME, of, real, whole
from paddle import nn
from paddle.nn import functional as F  # noqa: N812


def layers():
    yield "linear", of(lambda x: nn.Linear(5, 3)(x), real(*ROWS))
    yield "linear_3d", of(lambda x: nn.Linear(8, 3)(x), real(*SERIES))
    yield "bilinear", of(lambda x, y: nn.Bilinear(5, 5, 2)(x, y), real(*ROWS), real(*ROWS))
    yield "conv1d", of(lambda x: nn.Conv1D(3, 4, 3, padding=1)(x), real(*SERIES))
    yield "conv2d", of(lambda x: nn.Conv2D(3, 4, 3, stride=2, padding=1)(x), real(*IMAGE))
    yield "conv2d_same", of(lambda x: nn.Conv2D(3, 4, 3, stride=2, padding="SAME")(x), real(*IMAGE))
    yield "conv2d_pad4", of(lambda x: nn.Conv2D(3, 4, 3, padding=[1, 2, 0, 1])(x), real(*IMAGE))
    yield "conv2d_groups", of(lambda x: nn.Conv2D(3, 6, 3, groups=3, dilation=2)(x), real(*IMAGE))
    yield "conv2d_nhwc", of(lambda x: nn.Conv2D(6, 4, 3, data_format="NHWC")(x), real(*IMAGE))
    yield (
        "conv2d_reflect",
        of(lambda x: nn.Conv2D(3, 4, 3, padding=1, padding_mode="reflect")(x), real(*IMAGE)),
    )
    yield "conv3d", of(lambda x: nn.Conv3D(2, 3, 3, padding=1)(x), real(*VOLUME))
    yield "conv1d_transpose", of(lambda x: nn.Conv1DTranspose(3, 4, 3, stride=2)(x), real(*SERIES))
    yield (
        "conv2d_transpose",
        of(lambda x: nn.Conv2DTranspose(3, 4, 3, stride=2, padding=1, output_padding=1)(x), real(*IMAGE)),
    )
    yield "conv3d_transpose", of(lambda x: nn.Conv3DTranspose(2, 3, 3, stride=2)(x), real(*VOLUME))
    for name, layer, array in (
        ("batch_norm1d", lambda: nn.BatchNorm1D(3), real(*SERIES)),
        ("batch_norm2d", lambda: nn.BatchNorm2D(3), real(*IMAGE)),
        ("batch_norm", lambda: nn.BatchNorm(3), real(*IMAGE)),
        ("dropout", lambda: nn.Dropout(0.3), real(*IMAGE)),
        ("dropout2d", lambda: nn.Dropout2D(0.3), real(*IMAGE)),
        ("alpha_dropout", lambda: nn.AlphaDropout(0.3), real(*IMAGE)),
    ):
        yield name, of(lambda x, layer=layer: evaluated(layer())(x), array)
    yield (
        "dropout_downscale",
        of(lambda x: F.dropout(x, 0.3, training=False, mode="downscale_in_infer"), real(*IMAGE)),
    )
    yield "layer_norm", of(lambda x: nn.LayerNorm([6, 6])(x), real(*IMAGE))
    yield "group_norm", of(lambda x: nn.GroupNorm(3, 3)(x), real(*IMAGE))
    yield "instance_norm2d", of(lambda x: nn.InstanceNorm2D(3)(x), real(*IMAGE))
    yield "instance_norm1d", of(lambda x: nn.InstanceNorm1D(3)(x), real(*SERIES))
    yield "local_response_norm", of(lambda x: nn.LocalResponseNorm(3)(x), real(*IMAGE))
    yield "normalize", of(lambda x: F.normalize(x, axis=1), real(*ROWS))
    yield "embedding", of(lambda x: nn.Embedding(9, 4, padding_idx=0)(x), whole(9, 3, 4))
    for kind in (nn.SimpleRNN, nn.LSTM, nn.GRU):
        name = kind.__name__.lower()
        yield name, of(lambda x, kind=kind: sequence_of(kind(8, 5)(x)), real(*SERIES))
        yield (
            f"{name}_deep",
            of(
                lambda x, kind=kind: sequence_of(kind(8, 5, num_layers=2, direction="bidirect")(x)),
                real(*SERIES),
            ),
        )
    yield (
        "lstm_lengths",
        of(
            lambda x, n: sequence_of(nn.LSTM(8, 5, direction="bidirect")(x, sequence_length=n)),
            real(*SERIES),
            np.array([3, 1]),
        ),
    )
    yield (
        "gru_lengths",
        of(lambda x, n: sequence_of(nn.GRU(8, 5)(x, sequence_length=n)), real(*SERIES), np.array([2, 3])),
    )
    yield "lstm_time_major", of(lambda x: sequence_of(nn.LSTM(8, 5, time_major=True)(x)), real(*SERIES))
    yield "rnn_of_cells", of(lambda x: nn.RNN(nn.GRUCell(8, 5))(x)[0], real(*SERIES))
    yield "lstm_cell", of(lambda x: nn.LSTMCell(5, 3)(x)[0], real(*ROWS))
    yield "attention", of(lambda x: evaluated(nn.MultiHeadAttention(8, 2))(x, x, x), real(*SERIES))
    yield (
        "transformer_encoder",
        of(
            lambda x: evaluated(
                nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), 2)
            )(x),
            real(*SERIES),
        ),
    )
    yield (
        "transformer",
        of(lambda x, y: evaluated(nn.Transformer(8, 2, 1, 1, 16))(x, y), real(*SERIES), real(2, 4, 8)),
    )


def evaluated(layer):
    layer.eval()
    return layer


def sequence_of(result):
    outputs, states = result
    return [outputs, *(states if isinstance(states, tuple) else [states])]
