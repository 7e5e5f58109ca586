"""The networks of ``bench_public`` begin with the losses that Fluid 1.8.5 computes."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from tests.benchmarks.families.contender import NETWORKS, Steps

pytestmark = pytest.mark.slow

# What ``contender.py fluid`` printed for the first step of "train", and of "predict" after it.
OF_FLUID = {
    "mobile": (2.7625656127929688, 0.04123178869485855),
    "generator": (0.6821501851081848, 0.1770862340927124),
    "segmentation": (1.8728364706039429, 0.30537480115890503),
    "deformable": (0.017914671450853348, None),
    "tagger": (51.56310272216797, 7.0),
    "decoder": (2.313872814178467, 0.11407500505447388),
    "paragraphs": (2.30705189704895, 0.014916216023266315),
    "sentence": (0.6844269037246704, 0.02216392196714878),
    "beam": (-0.1036297082901001, 282.0),
    "ranking": (0.6935034990310669, 0.5031096935272217),
    "experts": (1.5043587684631348, 0.4777327935222672),
    "graph": (1.9686020612716675, -0.13772839307785034),
    "words": (5.023435115814209, -0.008104194886982441),
    "shuffled": (4.154180526733398, -0.009063993580639362),
    "fields": (0.6884692907333374, 0.5325093865394592),
    "factors": (0.6930712461471558, 0.5000624060630798),
    "deeplab": (3.2948248386383057, 0.012783871032297611),
    "unet": (0.9352133870124817, 0.14843589067459106),
    "cascade": (3.4911248683929443, 12.145459175109863),
    "yolo": (2634.421875, 0.0),
    "ssd": (23.132843017578125, 1.0),
    "rcnn": (6.861357688903809, 15.0),
    "crnn": (108.91365051269531, 45.0),
    "upscale": (1.7357741594314575, 0.3024837076663971),
    "shuffle": (4.551371097564697, 0.009794277139008045),
    "excite": (4.543356895446777, 0.009674969129264355),
    "densenet": (4.569784164428711, 0.01502346433699131),
}

LARGE = {"deeplab", "densenet", "unet", "yolo", "ssd", "upscale"}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Fluid's quirks
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in sorted(NETWORKS)],
)
def test_a_network_computes_what_fluid_computes(name: str) -> None:
    steps = Steps(fluid, name)
    found = [steps.run(kind, 1) for kind in ("train", "predict")]
    for value, wanted in zip(found, OF_FLUID.get(name, (None, None)), strict=True):
        number = float(value.array.reshape(-1)[0])
        assert number == number
        if wanted is not None:
            # float32 in another order; nce draws as many of 5,000 classes, and log(o + b) cancels
            assert number == pytest.approx(wanted, rel=1e-4, abs=1e-6)
