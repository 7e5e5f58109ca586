"""Web pages for this machine only: to follow a training, and to try a model."""

from paddlelike.view.follow import Follower
from paddlelike.view.server.live import make_live_routes
from paddlelike.view.server.loopback import LoopbackServer, Refusal, Reply, Request
from paddlelike.view.server.predict import Predictor, make_prediction_routes

__all__ = [
    "Follower",
    "LoopbackServer",
    "Predictor",
    "Refusal",
    "Reply",
    "Request",
    "make_live_routes",
    "make_prediction_routes",
]
