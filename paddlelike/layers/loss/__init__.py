"""Loss functions; the package lists the names of Fluid's ``layers.loss``."""
