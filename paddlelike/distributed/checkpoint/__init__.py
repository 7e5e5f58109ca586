"""Saving and loading with parameter servers: trainer 0 writes a directory, every server reads its rows of it.

The directory is the one a single process would write: a file per variable of the user's program, whole, in
Paddle's format. So it does not tell how many servers there were, and any number of them, or none, can go on
with it. Only a table that is sharded by id has a file per server, ``__lookup_table__/<table>_<number>``.

:mod:`.alone` and :mod:`.programs` say what a save or a load of a program is in this process, :mod:`.view`
what a directory looks like from a server, :mod:`.gather` brings variables together in a file, :mod:`.serve`
is what a server does for a save, :mod:`.standing` the place in training that a manifest keeps.
"""
