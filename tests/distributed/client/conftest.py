"""Jobs in one test are not patient, as in tests of training."""

from tests.distributed.training.conftest import short_patience

__all__ = ["short_patience"]
