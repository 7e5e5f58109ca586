"""The names of ``fluid.dygraph`` and where each is defined."""

from paddlelike.fluid.dygraph.base import (
    disable_dygraph as disable_dygraph,
    disable_imperative as disable_imperative,
    enabled as enabled,
    no_grad as no_grad,
)
from paddlelike.fluid.dygraph.container import (
    LayerList as LayerList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from paddlelike.fluid.dygraph.layers import Layer as Layer
from paddlelike.fluid.dygraph.nn import (
    NCE as NCE,
    BatchNorm as BatchNorm,
    BCELoss as BCELoss,
    BilinearTensorProduct as BilinearTensorProduct,
    Conv2D as Conv2D,
    Conv2DTranspose as Conv2DTranspose,
    Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose,
    Dropout as Dropout,
    Embedding as Embedding,
    GroupNorm as GroupNorm,
    GRUUnit as GRUUnit,
    InstanceNorm as InstanceNorm,
    L1Loss as L1Loss,
    LayerNorm as LayerNorm,
    Linear as Linear,
    MSELoss as MSELoss,
    NLLLoss as NLLLoss,
    Pool2D as Pool2D,
    PRelu as PRelu,
    SpectralNorm as SpectralNorm,
    TreeConv as TreeConv,
)
from paddlelike.fluid.dygraph.parallel import ParallelEnv as ParallelEnv
