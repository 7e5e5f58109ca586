"""What ends otherwise here, on purpose: the case, and why. Each must go on being different."""

from __future__ import annotations

__all__ = ["DIFFERENT"]

DIFFERENT = {
    "backward.a_clipped_value": "the clip of a gradient is backward here: a test clone drops it",
    "backward.a_loss_that_is_a_matrix": "the real one starts with the gradient of one element",
    "backward.a_parameter_that_is_not_there": "the real one passes over it",
    "backward.callbacks": "the real one calls before the operators are in the block",
    "backward.gradients_given_for_a_target_on_the_way": "the real one drops what comes from the other target",
    "backward.gradients_of_a_target_on_the_way_to_another": "the real one drops the target's own ones",
    "backward.gradients_with_the_same_start_twice": "the real one returns nothing the second time",
    "programs.an_attribute_of_another_type": "the real one writes it into the program",
    "programs.operators_on_what_is_not_there": "the real one fails when the program runs",
    "programs.parameters_without_elements": "the real one makes a parameter that nothing can train",
    "runs.no_rows": "an empty batch is a batch here",
}
