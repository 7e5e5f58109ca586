"""Networks of images in numpy by hand: channels last in memory, windows unfolded a cache's worth at a time."""

import numpy as np
from by_hand import Adam, Flat, softmax_loss, sum_rows
from numpy.lib.stride_tricks import as_strided

CHUNK = 512 << 10  # bytes of unfolded windows


class Convolution:
    """A convolution of pixels ``(N, H, W, C)`` with fixed shapes; its filter is ``(k k C, O)``."""

    def __init__(self, shape, filters, size, stride, pad):
        batch, high, wide, channels = shape
        self.size, self.stride, self.pad, self.channels = size, stride, pad, channels
        self.padded = np.zeros((batch, high + 2 * pad, wide + 2 * pad, channels), "f4")
        self.inside = self.padded[:, pad : pad + high, pad : pad + wide]
        count = (high + 2 * pad - size) // stride + 1
        self.out = np.empty((batch, count, count, filters), "f4")
        by_image, by_row, by_pixel, by_channel = self.padded.strides
        self.windows = as_strided(
            self.padded,
            (batch, count, count, size, size * channels),
            (by_image, by_row * stride, by_pixel * stride, by_row, by_channel),
        )
        width = size * size * channels
        step = max(1, CHUNK // (4 * width * count * count))
        self.parts = [slice(start, start + step) for start in range(0, batch, step)]
        self.unfolded = np.empty((step, count, count, size, size * channels), "f4")
        self.product, self.turned = np.empty((width, filters), "f4"), None

    def _unfold(self, part):
        seen = self.windows[part]
        unfolded = self.unfolded[: len(seen)]
        np.copyto(unfolded, seen)
        return unfolded.reshape(-1, self.product.shape[0])

    def forward(self, x, w):
        np.copyto(self.inside, x)
        for part in self.parts:
            np.matmul(self._unfold(part), w, out=self.out[part].reshape(-1, w.shape[1]))
        return self.out

    def filter_gradient(self, d_out, d_w):
        d_w[...] = 0
        for part in self.parts:
            np.matmul(self._unfold(part).T, d_out[part].reshape(-1, d_w.shape[1]), out=self.product)
            np.add(d_w, self.product, out=d_w)

    def input_gradient(self, d_out, w):
        """Convolve the gradient with the turned filter, or add its products to the pixels of their windows."""
        if self.pad and self.stride == 1:
            if self.turned is None:
                self.turned = Convolution(d_out.shape, self.channels, self.size, 1, self.size - 1 - self.pad)
            filters = w.reshape(self.size, self.size, self.channels, -1)[::-1, ::-1].swapaxes(2, 3)
            return self.turned.forward(d_out, filters.reshape(-1, self.channels))
        total, count = np.zeros_like(self.padded), d_out.shape[1]
        for part in self.parts:
            each = (d_out[part].reshape(-1, w.shape[1]) @ w.T).reshape(
                -1, count, count, self.size, self.size, self.channels
            )
            images = total[part]
            for i in range(self.size):
                for j in range(self.size):
                    ends = [k + self.stride * (count - 1) + 1 for k in (i, j)]
                    images[:, i : ends[0] : self.stride, j : ends[1] : self.stride] += each[:, :, :, i, j]
        high, wide = self.inside.shape[1:3]
        return total[:, self.pad : self.pad + high, self.pad : self.pad + wide]


def _order_filter(w):
    """Return ``(O, C, k, k)`` as ``(k k C, O)``."""
    return np.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(-1, len(w))


class _Pool:
    """Maxima of 2x2 pixels; then a bias and relu, which numpy does on a quarter of the pixels."""

    def __init__(self, shape):
        batch, high, wide, channels = shape
        self.out = np.empty((batch, high // 2, wide // 2, channels), "f4")
        self.other, self.d_x = np.empty_like(self.out), np.empty(shape, "f4")
        self.maxima = np.empty_like(self.out)
        self.hit, self.left = np.empty(self.out.shape, bool), np.empty(self.out.shape, bool)

    def _places(self, x):
        return [x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]

    def forward(self, x, bias):
        a, b, c, d = self._places(x)
        np.maximum(a, b, out=self.maxima)
        np.maximum(c, d, out=self.other)
        np.maximum(self.maxima, self.other, out=self.maxima)
        np.add(self.maxima, bias, out=self.out)
        np.maximum(self.out, 0, out=self.out)
        return self.out

    def backward(self, x, d_out):
        d_out *= self.out > 0
        self.left[...] = True
        for place, d_place in zip(self._places(x), self._places(self.d_x), strict=True):
            np.equal(place, self.maxima, out=self.hit)
            self.hit &= self.left
            self.left ^= self.hit
            np.multiply(d_out, self.hit, out=d_place)
        return self.d_x


def lenet(batch, params):
    x, y, at = batch["x"].reshape(64, 28, 28, 1), batch["y"][:, 0], np.arange(64)
    first, bias1, second, bias2, last, bias3 = params
    turned = last.reshape(50, 4, 4, 10).transpose(1, 2, 0, 3).reshape(800, 10)
    adam = Adam([_order_filter(first), bias1, _order_filter(second), bias2, turned, bias3])
    w1, b1, w2, b2, w3, b3 = adam.params
    dw1, db1, dw2, db2, dw3, db3 = adam.grads
    conv1, conv2 = Convolution((64, 28, 28, 1), 20, 5, 1, 0), Convolution((64, 12, 12, 20), 50, 5, 1, 0)
    pool1, pool2 = _Pool((64, 24, 24, 20)), _Pool((64, 8, 8, 50))
    out, ones = np.empty((64, 10), "f4"), np.ones(64 * 144, "f4")

    def step():
        one = conv1.forward(x, w1)
        two = conv2.forward(pool1.forward(one, b1), w2)
        h = pool2.forward(two, b2).reshape(64, 800)
        np.matmul(h, w3, out=out)
        np.add(out, b3, out=out)
        loss = softmax_loss(out, y, at)
        np.matmul(h.T, out, out=dw3)
        np.add.reduce(out, 0, out=db3)
        d = (out @ w3.T).reshape(64, 4, 4, 50)
        d_two = pool2.backward(two, d)
        db2[...] = sum_rows(d.reshape(-1, 50), ones[:1024])
        conv2.filter_gradient(d_two, dw2)
        d = conv2.input_gradient(d_two, w2)
        d_one = pool1.backward(one, d)
        db1[...] = sum_rows(d.reshape(-1, 20), ones)
        conv1.filter_gradient(d_one, dw1)
        adam.update()
        return loss

    return step


class _Momentum(Flat):
    """Updates all parameters at once."""

    def __init__(self, params, rate):
        super().__init__(params)
        self.velocity, self.rate = np.zeros_like(self.flat), np.float32(rate)

    def update(self):
        np.multiply(self.velocity, np.float32(0.9), out=self.velocity)
        np.add(self.velocity, self.grad, out=self.velocity)
        np.multiply(self.velocity, self.rate, out=self.grad)
        np.subtract(self.flat, self.grad, out=self.flat)


class _Norm:
    """batch_norm of rows ``(M, C)``, several of which are taken as one of about a thousand elements."""

    def __init__(self, rows, channels):
        self.count, self.channels, self.fold = rows, channels, max(1, 1024 // channels)
        self.shape = (rows // self.fold, self.fold * channels)
        self.out, self.d_x = np.empty(self.shape, "f4"), np.empty(self.shape, "f4")
        self.ones = np.ones(self.shape[0], "f4")
        step = max(1, (256 << 10) // (4 * self.shape[1]))
        self.parts = [slice(start, start + step) for start in range(0, self.shape[0], step)]
        self.one = np.empty((step, self.shape[1]), "f4")
        self.moving = [np.zeros(channels, "f4"), np.ones(channels, "f4")]

    def _tile(self, values):
        return np.tile(values, self.fold)

    def _by_channel(self, sums):
        return sums.reshape(self.fold, self.channels).sum(0)

    def forward(self, x, scale, bias, relu):
        x = x.reshape(self.shape)
        mean = self._by_channel(self.ones @ x) / self.count
        self.center, squares = self._tile(mean), np.zeros(self.shape[1], "f4")
        for part in self.parts:
            centered = np.subtract(x[part], self.center, out=self.out[part])
            squares += np.einsum("ij,ij->j", centered, centered)
        variance = self._by_channel(squares) / self.count
        self.inverse = 1 / np.sqrt(variance + np.float32(1e-5))
        factor, shift = self._tile(scale * self.inverse), self._tile(bias)
        for part in self.parts:
            out = self.out[part]
            out *= factor
            out += shift
            if relu:
                np.maximum(out, 0, out=out)
        for moving, now in zip(self.moving, (mean, variance), strict=True):
            moving *= np.float32(0.9)
            moving += np.float32(0.1) * now
        return self.out

    def backward(self, x, d_out, scale, d_scale, d_bias):
        """Return the gradient of x, from that before relu."""
        x, d_out = x.reshape(self.shape), d_out.reshape(self.shape)
        products = np.zeros(self.shape[1], "f4")
        for part in self.parts:
            centered = np.subtract(x[part], self.center, out=self.one[: len(x[part])])
            products += np.einsum("ij,ij->j", centered, d_out[part])
        d_scale[...] = self._by_channel(products) * self.inverse
        d_bias[...] = self._by_channel(self.ones @ d_out)
        factor = scale * self.inverse
        times = self._tile(factor)
        slope = self._tile(-factor * self.inverse * d_scale / self.count)
        shift = self._tile(-factor * d_bias / self.count) - self.center * slope
        for part in self.parts:
            out = np.multiply(x[part], slope, out=self.d_x[part])
            out += shift
            out += np.multiply(d_out[part], times, out=self.one[: len(out)])
        return self.d_x


class _Layer:
    """A convolution with batch_norm, its parameters and their gradients."""

    def __init__(self, shape, filters, size, stride):
        self.convolution = Convolution(shape, filters, size, stride, (size - 1) // 2)
        self.shape = self.convolution.out.shape
        self.norm = _Norm(int(np.prod(self.shape[:3])), filters)

    def forward(self, x, relu):
        self.before = self.convolution.forward(x, self.w)
        return self.norm.forward(self.before, self.scale, self.bias, relu).reshape(self.shape)

    def backward(self, d_out, first=False):
        d = self.norm.backward(self.before, d_out, self.scale, self.d_scale, self.d_bias).reshape(self.shape)
        self.convolution.filter_gradient(d, self.d_w)
        return None if first else self.convolution.input_gradient(d, self.w)


def resnet20(batch, params):
    x, y, at = np.ascontiguousarray(batch["x"].transpose(0, 2, 3, 1)), batch["y"][:, 0], np.arange(32)
    stem = _Layer(x.shape, 16, 3, 1)
    layers, blocks, shape = [stem], [], stem.shape
    for filters in (16, 32, 64):
        for index in range(3):
            stride = 2 if filters > 16 and index == 0 else 1
            one = _Layer(shape, filters, 3, stride)
            two = _Layer(one.shape, filters, 3, 1)
            short = _Layer(shape, filters, 1, 2) if stride == 2 else None
            blocks.append((one, two, short))
            layers += [layer for layer in (one, two, short) if layer]
            shape = one.shape
    trained = []
    for index in range(len(layers)):
        w, scale, bias = params[5 * index : 5 * index + 3]
        trained += [_order_filter(w), scale, bias]
    optimizer = _Momentum([*trained, *params[-2:]], 0.1)
    *trained, w_last, b_last = optimizer.params
    *gradients, d_w_last, d_b_last = optimizer.grads
    for index, layer in enumerate(layers):
        layer.w, layer.scale, layer.bias = trained[3 * index : 3 * index + 3]
        layer.d_w, layer.d_scale, layer.d_bias = gradients[3 * index : 3 * index + 3]

    def step():
        h, seen = stem.forward(x, True), []
        first = h
        for one, two, short in blocks:
            inner = two.forward(one.forward(h, True), False)
            inner += h if short is None else short.forward(h, False)
            np.maximum(inner, 0, out=inner)
            seen.append(h)
            h = inner
        pooled = h.reshape(32, 64, 64).mean(1)
        out = pooled @ w_last
        out += b_last
        loss = softmax_loss(out, y, at)
        np.matmul(pooled.T, out, out=d_w_last)
        np.add.reduce(out, 0, out=d_b_last)
        d_pooled = out @ w_last.T
        d_pooled /= np.float32(64)
        d = np.empty_like(h)
        d[...] = d_pooled[:, None, None]
        for (one, two, short), before in zip(reversed(blocks), reversed(seen), strict=True):
            d *= h > 0
            d_inner = two.backward(d)
            middle = one.norm.out.reshape(one.shape)
            d_before = one.backward(np.multiply(d_inner, middle > 0))
            d = d_before + (d if short is None else short.backward(d))
            h = before
        d *= first > 0
        stem.backward(d, first=True)
        optimizer.update()
        return loss

    return step
