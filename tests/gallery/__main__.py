"""Write ``tests/gallery/errors.md``: ``python -m tests.gallery``."""

from tests.gallery.page import PAGE, write_page

PAGE.write_text(write_page())
