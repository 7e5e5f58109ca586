"""Operators of images in torch, eager."""

import torch
from cases import measure_output
from torch.nn import functional

torch.set_num_threads(1)


def build(case, both, library):
    """Return a function that runs an operator, with its gradients if ``both``, and the sum of its result."""
    x, d_out = torch.randn(case.x, requires_grad=both), torch.randn(measure_output(case))
    leaves = [x]
    if case.op == "batch_norm":
        ones = [torch.ones(case.x[1], requires_grad=both and index > 1) for index in range(4)]
        leaves += ones[2:]

        def run():
            return functional.batch_norm(x, *ones, training=True)

    elif case.op == "pool2d":
        run = _bind_pool(case, x)
    else:
        w = torch.randn(case.w, requires_grad=both)
        leaves.append(w)
        transposed = case.op.endswith("transpose")
        more = (0,) * len(case.stride)

        def run():
            return torch.convolution(
                x, w, None, case.stride, case.pad, case.dilation, transposed, more, case.groups
            )

    def step():
        return torch.autograd.grad(run(), leaves, d_out)[0] if both else run()

    return step, float(step().abs().sum())


def _bind_pool(case, x):
    if case.mode == "adaptive":
        return lambda: functional.adaptive_avg_pool2d(x, case.kernel)
    pool = functional.max_pool2d if case.kind == "max" else functional.avg_pool2d
    return lambda: pool(x, case.kernel, case.stride, case.pad)
