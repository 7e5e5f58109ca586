"""Models for prediction, and the engines that run them."""
