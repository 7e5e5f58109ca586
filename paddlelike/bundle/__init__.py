"""Theano's way of saving: any object as a ZIP of NPY arrays and one pickle.

``numpy.load(file)`` shows the arrays by name, without this package and without the classes in the pickle.
Theano's own files are read without Theano, and Theano reads ours.

>>> import io
>>> import numpy as np
>>> file = io.BytesIO()
>>> dump({"W": np.ones((2, 3), "float32"), "epoch": 7}, file)
>>> file.seek(0)
0
>>> np.load(file).files
['W', 'pkl']
>>> load(file)["epoch"]
7
"""

from paddlelike.bundle.objects import dump_all, load_all
from paddlelike.bundle.reader import arrays, load
from paddlelike.bundle.theano import SharedVariable
from paddlelike.bundle.writer import dump
from paddlelike.foundation.docstrings import show_related

__all__ = ["SharedVariable", "arrays", "dump", "dump_all", "load", "load_all"]

show_related(__name__)
