"""Bytes and places: names that are safe as paths, files to read, sets of files written as one.

A save into DIR replaces the whole set or leaves the old one (``storage.transaction`` says how). What saving
needs lies beside DIR, never inside:

======================  ==========================================================================
``DIR.manifest.json``   what each file is; stays
``DIR.lock``            while somebody saves
``DIR.saving``          the files that are going to be; with ``keep_generation`` those before, which stay
``DIR.journal``         a commit in several steps, which the next load or save finishes
======================  ==========================================================================

``durability="process"`` survives the death of every process at any instant, ``"power"`` also a power cut.
Checksums cost more than writing: a sha256 takes a core 0.6 s a GB, a crc32 0.35 s, the writing itself 0.2 s.
"""
