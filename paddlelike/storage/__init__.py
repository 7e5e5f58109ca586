"""Bytes and places: names that are safe as paths, files to read, sets of files written as one.

A save into DIR replaces the whole set or leaves the old one (``storage.transaction`` says how). What saving
needs lies beside DIR, never inside:

======================  ==========================================================================
``DIR.manifest.json``   what each file is; stays
``DIR.lock``            while somebody saves
``DIR.saving``          the files that are going to be; with ``keep_generation`` those before, which stay
``DIR.journal``         a commit in several steps, which the next load or save finishes
======================  ==========================================================================

Behind URLs a save is committed by a marker instead (``storage.marker``).

A commit is one step of the system, so that also those who know nothing of us find all old or all new: Paddle
itself, whose reading after kills is a test. Only where the files cannot change places as a directory are they
renamed one right after the other, and a kill between two of these renames leaves a mix until the next load or
save of ours: the few files of ``fluid.save``, which lie among those of others, directories that are mount
points, hold one, or are the working directory, and file systems without that step.

``durability="process"`` survives the death of every process at any instant, ``"power"`` also a power cut.
Checksums cost more than writing: a sha256 takes a core 0.6 s a GB, a crc32 0.35 s, the writing itself 0.2 s.
"""
