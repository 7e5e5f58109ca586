"""Files in directories, local and remote: atomic transactions, manifests, locks.

A save into DIR replaces the whole set or leaves the old one. It adds one file, ``DIR/__manifest__``, and,
while it runs, one hidden entry beside the directory, ``.DIR.saving-directory``. README.md in this folder
states what is guaranteed and what is not.
"""
