"""The nets in torch, eager."""

import data
import torch
from torch import nn

torch.manual_seed(5)


class _Step(nn.Module):
    """A model whose forward pass is the loss."""

    def __init__(self, model, loss_of):
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def forward(self):
        return self.loss_of(self.model)


def prepare(net, device="cpu", distribute=False):
    """Return a function that trains one step and returns the loss; ``distribute``: by DDP."""
    batch = {name: torch.from_numpy(array).to(device) for name, array in data.make_batch(net).items()}
    if net == "chain":
        return lambda: _chain(batch["x"]).numpy()
    model, loss_of, optimizers = NETS[net](batch)
    model.to(device)  # in place: the optimizers have the same parameters
    if not isinstance(optimizers, tuple):
        optimizers = (optimizers,)
    compute = _Step(model, loss_of)
    if distribute:
        compute = nn.parallel.DistributedDataParallel(compute)

    def step():
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = compute()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return step


def _chain(x):
    with torch.no_grad():
        for _ in range(1000):
            x = x * 1.0001
    return x


def _adam(model, rate=1e-3):
    return torch.optim.Adam(model.parameters(), rate)


def fit_a_line(batch):
    model = nn.Linear(13, 1)
    loss = lambda m: nn.functional.mse_loss(m(batch["x"]), batch["y"])
    return model, loss, torch.optim.SGD(model.parameters(), 0.01)


def mlp(batch):
    model = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), _adam(model)


def lenet(batch):
    model = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10),
    )  # fmt: skip
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), _adam(model)


def word2vec(batch):
    model = nn.ModuleList([nn.Embedding(2073, 32), nn.Linear(128, 256), nn.Linear(256, 2073)])

    def loss(m):
        rows = torch.cat([m[0](batch[f"w{i}"][:, 0]) for i in range(4)], 1)
        return nn.functional.cross_entropy(m[2](torch.sigmoid(m[1](rows))), batch["y"][:, 0])

    return model, loss, torch.optim.SGD(model.parameters(), 1e-2)


class _Convolve(nn.Sequential):
    def __init__(self, channels, filters, size, stride):
        super().__init__(
            nn.Conv2d(channels, filters, size, stride, (size - 1) // 2, bias=False), nn.BatchNorm2d(filters)
        )


class _Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.first = _Convolve(channels, filters, 3, stride)
        self.second = _Convolve(filters, filters, 3, 1)
        self.short = _Convolve(channels, filters, 1, 2) if stride == 2 else nn.Identity()

    def forward(self, x):
        return nn.functional.relu(self.second(nn.functional.relu(self.first(x))) + self.short(x))


def resnet20(batch):
    layers, channels = [_Convolve(3, 16, 3, 1), nn.ReLU()], 16
    for filters in (16, 32, 64):
        for block in range(3):
            layers.append(_Block(channels, filters, 2 if filters > 16 and block == 0 else 1))
            channels = filters
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), optimizer


def lstm(batch):
    model = nn.ModuleList([nn.LSTM(128, 128, 2, batch_first=True), nn.Linear(128, 10)])
    x = batch["x"].reshape(32, data.STEPS, 128)
    return (
        model,
        lambda m: nn.functional.cross_entropy(m[1](m[0](x)[0][:, -1]), batch["y"][:, 0]),
        _adam(model),
    )


class _Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, 128)
        self.three = nn.Linear(128, 384)
        self.mix = nn.Linear(128, 128)
        self.norms = nn.ModuleList([nn.LayerNorm(128), nn.LayerNorm(128)])
        self.inner = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
        self.guess = nn.Linear(128, 1000)

    def forward(self, x):
        x = self.table(x)
        q, k, v = (p.reshape(16, 32, 4, 32).transpose(1, 2) for p in self.three(x).split(128, -1))
        weights = nn.functional.softmax(q @ k.transpose(2, 3) * 32**-0.5, -1)
        mixed = (weights @ v).transpose(1, 2).reshape(16, 32, 128)
        x = self.norms[0](x + self.mix(mixed))
        x = self.norms[1](x + self.inner(x))
        return self.guess(x.reshape(-1, 128))


def encoder(batch):
    model = _Encoder()
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), _adam(model)


def wide_deep(batch):
    tables = nn.ModuleList([nn.Embedding(data.IDS, width, sparse=True) for width in (1, 16)])
    dense = nn.Sequential(
        nn.Linear(13 + 16 * data.SLOTS, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
    )

    def loss(model):
        wide, deep = (table(batch["ids"]) for table in model[0])
        guess = model[1](torch.cat([batch["x"], deep.reshape(512, -1)], 1)) + wide.sum(1)
        return nn.functional.binary_cross_entropy_with_logits(guess, batch["y"])

    model = nn.ModuleList([tables, dense])
    return model, loss, (torch.optim.SparseAdam(list(tables.parameters()), 1e-3), _adam(dense))


class _Layer(nn.Module):
    """A layer of BERT base."""

    def __init__(self):
        super().__init__()
        self.three, self.mix = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.norms = nn.ModuleList([nn.LayerNorm(768), nn.LayerNorm(768)])
        self.inner = nn.Sequential(nn.Linear(768, 4 * 768), nn.GELU(), nn.Linear(4 * 768, 768))

    def forward(self, x):
        count, length, _ = x.shape
        q, k, v = (p.reshape(count, length, 12, 64).transpose(1, 2) for p in self.three(x).split(768, -1))
        weights = nn.functional.softmax(q @ k.transpose(2, 3) * 64**-0.5, -1)
        x = self.norms[0](x + self.mix((weights @ v).transpose(1, 2).reshape(x.shape)))
        return self.norms[1](x + self.inner(x))


class _Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.places = nn.Embedding(30000, 768), nn.Parameter(torch.zeros(64, 768))
        self.norm, self.layers = nn.LayerNorm(768), nn.Sequential(*(_Layer() for _ in range(12)))
        self.guess = nn.Linear(768, 2)

    def forward(self, x):
        return self.guess(self.layers(self.norm(self.table(x) + self.places))[:, 0])


def bert(batch):
    model = _Bert()
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), _adam(model, 1e-4)


class _Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, channels, filters, stride):
        super().__init__()
        self.first = _Convolve(channels, filters, 1, 1)
        self.second = _Convolve(filters, filters, 3, stride)
        self.third = _Convolve(filters, 4 * filters, 1, 1)
        same = channels == 4 * filters
        self.short = nn.Identity() if same else _Convolve(channels, 4 * filters, 1, stride)

    def forward(self, x):
        relu = nn.functional.relu
        return relu(self.third(relu(self.second(relu(self.first(x))))) + self.short(x))


def resnet50(batch):
    layers, channels = [_Convolve(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        filters = 64 * 2**stage
        for block in range(blocks):
            layers.append(_Bottleneck(channels, filters, 2 if stage and not block else 1))
            channels = 4 * filters
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    return model, lambda m: nn.functional.cross_entropy(m(batch["x"]), batch["y"][:, 0]), optimizer


NETS = {f.__name__: f for f in (fit_a_line, mlp, lenet, word2vec, resnet20, lstm, encoder, wide_deep)}
NETS.update(bert=bert, resnet50=resnet50)
