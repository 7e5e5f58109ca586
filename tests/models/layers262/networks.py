"""Whole networks."""

import paddle
from inputs import real, whole
from paddle import nn
from paddle.nn import functional as F  # noqa: N812


class Residual(nn.Layer):
    """Depthwise convolution, squeeze and excitation, hard swish and a shortcut, as in MobileNetV3."""

    def __init__(self, channels):
        super().__init__()
        self.expand = nn.Conv2D(channels, 2 * channels, 1, bias_attr=False)
        self.norm = nn.BatchNorm2D(2 * channels)
        self.depthwise = nn.Conv2D(2 * channels, 2 * channels, 3, padding=1, groups=2 * channels)
        self.squeeze = nn.Conv2D(2 * channels, channels, 1)
        self.excite = nn.Conv2D(channels, 2 * channels, 1)
        self.project = nn.Conv2D(2 * channels, channels, 1)

    def forward(self, x):
        y = F.hardswish(self.depthwise(F.relu6(self.norm(self.expand(x)))))
        gate = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.project(y * gate)


class ConvNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(3, 4, 3, 2, 1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(3, 2, 1)
        )
        self.blocks = nn.Sequential(Residual(4), Residual(4))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(4, 5))

    def forward(self, x):
        return F.softmax(self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1)))


class Bert(nn.Layer):
    def __init__(self):
        super().__init__()
        self.word, self.position, self.kind = (
            nn.Embedding(20, 8, padding_idx=0),
            nn.Embedding(12, 8),
            nn.Embedding(2, 8),
        )
        self.norm = nn.LayerNorm(8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu"), 2)
        self.pooler = nn.Linear(8, 8)

    def forward(self, ids, kinds):
        mask = paddle.unsqueeze((ids == 0).astype("float32") * -1e4, axis=[1, 2])
        places = paddle.cumsum(paddle.ones_like(ids), axis=-1) - 1
        x = self.encoder(self.norm(self.word(ids) + self.position(places) + self.kind(kinds)), mask)
        return x, paddle.tanh(self.pooler(x[:, 0]))


class Ocr(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(1, 4, 3, (2, 1), 1)
        self.rnn = nn.LSTM(8, 6, direction="bidirectional")
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), (2, 1))
        x = paddle.transpose(paddle.reshape(x, [0, -1, x.shape[3]]), [0, 2, 1])
        scores = F.softmax(self.head(self.rnn(x)[0]), axis=2)
        return scores, paddle.argmax(scores, axis=2)


class Ctr(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(30, 1), nn.Embedding(30, 4)
        self.deep = nn.Sequential(nn.Linear(15, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, ids, dense):
        rows = self.second(ids)
        summed = paddle.sum(rows, axis=1)
        crossed = 0.5 * paddle.sum(summed * summed - paddle.sum(rows * rows, axis=1), axis=1, keepdim=True)
        deep = self.deep(paddle.concat([paddle.flatten(rows, 1), dense], axis=1))
        return F.sigmoid(paddle.sum(self.first(ids), axis=1) + crossed + deep)


class Translator(nn.Layer):
    """Greedy decoding by a loop until all sequences have ended."""

    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.cell, self.head = (
            nn.Embedding(9, 4),
            nn.GRU(4, 4),
            nn.GRUCell(4, 4),
            nn.Linear(4, 9),
        )

    def forward(self, ids):
        _, state = self.encoder(self.words(ids))
        state = state[0]
        word = paddle.zeros_like(ids[:, 0])
        out = paddle.unsqueeze(word, 1)
        step = paddle.zeros([1], "int64")
        while step < 5:
            _, state = self.cell(self.words(word), state)
            word = paddle.argmax(self.head(state), axis=1)
            out = paddle.concat([out, paddle.unsqueeze(word, 1)], axis=1)
            step = step + 1
        return out


def networks():
    """Whole networks, saved by `paddle.jit.save` and by `save_inference_model`."""
    yield "convnet", ConvNet, [real(2, 3, 16, 16)]
    yield "bert", Bert, [whole(20, 2, 6), whole(2, 2, 6)]
    yield "ocr", Ocr, [real(2, 1, 8, 10)]
    yield "ctr", Ctr, [whole(30, 4, 3), real(4, 3)]
    yield "translator", Translator, [whole(9, 2, 5)]
