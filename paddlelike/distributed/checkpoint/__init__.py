"""Saving and loading with parameter servers: trainer 0 writes a directory, every server loads its rows of it.

The directory is the one a single process would write: a file per variable of the user's program, whole, in
    Paddle's format. Any number of servers, or none, can continue with it.
Only a table that is sharded by id has a file per server, ``__lookup_table__/<table>_<server>``.

:mod:`.partitions` and :mod:`.local` plan the saves and loads of a program in this process, :mod:`.view` gives
one server its rows of a directory, :mod:`.gather` (with :mod:`.streams` and :mod:`.tables`) joins variables
in files, :mod:`.shards` reads sharded tables, :mod:`.servers` has the calls of the client that a save needs,
:mod:`.local` also makes a trainer's program run without servers, :mod:`.operators` are Fluid's own save
operators.
"""
