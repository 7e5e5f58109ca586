"""Hostile files: every reader on mutate real files and on crafted ones.

``python -m tests.fuzz --count 100000 --seed 0`` runs a campaign; ``pytest tests/fuzz`` a short one.

=============  =============================================================================
seeds          the real files that mutations begin with
mutations      blind changes of bytes
pickle_maker   pickles: opcodes in any order, foreign globals, canaries that would leave a trace
program_maker  programs: messages with any fields set, and changes that keep the encoding whole
stream_maker   tensor streams and combined files with absurd numbers
tree_maker     directories: links, pipes, names that lead out
readers        the readers of bytes, and what must hold of what they accept
loaders        the loaders of directories with one file changed
control_files  manifests, checkpoints, journals and rules
markers        what lies beside directories behind URLs
calls          messages between trainers and servers, tables of servers
trees          names of variables, links and staging areas
guard          the limits: time, memory, files, code
guided         one target under atheris, by hand
campaign       many inputs in several processes, their faults kept in files
=============  =============================================================================
"""
