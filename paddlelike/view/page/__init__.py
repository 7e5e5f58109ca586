"""An HTML page that shows the contents of files, without network access."""

from paddlelike.view.page.contents import collect_contents
from paddlelike.view.page.document import format_contents, format_document, format_page, is_page

__all__ = ["collect_contents", "format_contents", "format_document", "format_page", "is_page"]
