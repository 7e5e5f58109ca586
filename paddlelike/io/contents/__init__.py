"""Sources of values: directories, files, folders of several files, dicts of arrays; and reading from them."""
