"""Made-up samples with the shapes and dtypes of the data sets, from which networks can learn.

The same call gives the same samples on every machine. Images of a class are noise around one picture;
sentences of a class prefer some words. The next word depends on the previous one; translations are word by
word.
"""

from paddlelike.dataset.synthetic.arrays import Part, make_images, make_regression
from paddlelike.dataset.synthetic.words import make_sentences, make_translations, make_walks

__all__ = ["Part", "make_images", "make_regression", "make_sentences", "make_translations", "make_walks"]
