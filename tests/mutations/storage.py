"""Faults in ``paddlelike/storage/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "a save that works without the lock",
        "storage/local/transaction.py",
        "            with self._lock:\n                if (inside",
        "            if True:\n                if (inside",
        "S2",
    ),
    Mutation(
        "the directories change places in two steps",
        "storage/local/generation.py",
        "                exchange(self.new, self._directory)",
        '                os.rename(self._directory, self.new + "-old")\n'
        "                os.rename(self.new, self._directory)\n"
        '                os.rename(self.new + "-old", self.new)',
        "S1",
    ),
    Mutation(
        "files of others are not linked into the new version",
        "storage/local/generation.py",
        "in sorted(self._files.keys() - changed - self._spares.keys()):",
        "in sorted(self._files.keys() & self._spares.keys()):",
        "S3",
    ),
    Mutation(
        "late files of others are removed with the old version",
        "storage/local/filesystem/retired.py",
        "            elif known.get(path) != inode:\n",
        "            elif False:\n",
        "S4",
    ),
    Mutation(
        "a late file overwrites a newer one",
        "storage/local/filesystem/retired.py",
        "if not os.path.lexists(target) or os.lstat(target).st_ino == known:",
        "if True:",
        "S4",
    ),
    Mutation(
        "a failed commit under the journal is not undone",
        "storage/local/journal.py",
        '        _replay(layout, journal._replace(direction="back"))\n        if isinstance',
        "        if isinstance",
        "S5",
    ),
    Mutation(
        "a step of the journal cannot be done twice",
        "storage/local/journal.py",
        "    left = [(source, target) for source, target in moves if is_there(source)]",
        "    left = list(moves)",
        "S5",
    ),
    Mutation(
        "a journal overwrites what others have restored",
        "storage/local/journal.py",
        "    return bool(foreign)\n",
        "    return False\n",
        "S6",
    ),
    Mutation(
        "a mix of restored and saved files is completed",
        "storage/local/journal.py",
        "    if foreign and new:",
        "    if False:",
        "S6",
    ),
    Mutation(
        "dots may lead out of the directory",
        "storage/names.py",
        '    if ".." in parts:',
        '    if parts[0] == "..":',
        "S7",
    ),
    Mutation(
        "an absolute path is a name",
        "storage/names.py",
        "    if not parts[0] and len(parts) > 1:",
        "    if not parts[0] and len(parts) > 2:",
        "S7",
    ),
    Mutation(
        "a journal follows links out of the directory",
        "storage/local/journal.py",
        "        if os.path.realpath(folder) != folder:\n            raise StorageError(",
        "        if not os.path.exists(folder):\n            raise StorageError(",
        "S7",
    ),
    Mutation(
        "a save goes through a link",
        "storage/local/target.py",
        "    if os.path.islink(folder):\n        raise SaveError(",
        "    if os.path.islink(folder) and not os.path.isdir(folder):\n        raise SaveError(",
        "S7",
    ),
    Mutation(
        "a kept file is not looked at again under the lock",
        "storage/local/transaction.py",
        "            if is_still(front + path, record):",
        "            if record:",
        "S8",
    ),
    Mutation(
        "a file of another size counts as unchanged",
        "storage/manifest.py",
        "facts.st_size == self.size and make_stamp(facts) == self.stamp",
        "facts.st_size == self.size",
        "S8",
    ),
    Mutation(
        "files that others replaced stay in the manifest",
        "storage/local/transaction.py",
        "        return found\n",
        "        return dict(before.files) if before else found\n",
        "S9",
    ),
    Mutation(
        "the manifest's digest is not compared",
        "storage/manifest.py",
        "    if _tail(body) != tail:",
        "    if not tail:",
        "S9",
    ),
    Mutation(
        "a lock is taken whose file was removed",
        "storage/local/filesystem/lock.py",
        "            if not _is_there(fd, self._path):\n"
        "                os.close(fd)\n"
        "                return None\n",
        "",
        "S2",
    ),
    Mutation(
        "a reader takes files of two saves",
        "storage/local/files.py",
        "            if _generation(directory) == before:\n"
        "                # S10\n"
        "                return values",
        "            return values",
        "S10",
    ),
    Mutation(
        "the old version is taken for the new one after a kill",
        "storage/local/crash_recovery.py",
        "return manifest is not None and manifest.token == staged.token",
        "return manifest is not None",
        "S11",
    ),
    Mutation(
        "the token is not looked at",
        "storage/local/crash_recovery.py",
        "return manifest is not None and manifest.token == staged.token",
        "return False",
        "S11",
    ),
    Mutation(
        "both of two remote savers commit",
        "storage/remote/transaction.py",
        "            if not store.create(mark, data):\n"
        "                safe = True\n"
        "                raise self._conflict_error()\n",
        "            store.create(mark, data)\n",
        "S12",
    ),
    Mutation(
        "a marker that was cut counts",
        "storage/remote/marker.py",
        "if top and not manifest.is_complete(data):",
        "if not data:",
        "S12",
    ),
    Mutation(
        "files of other programs are stale",
        "storage/stale.py",
        "if record.author.program == author.program:",
        "if record.author.program:",
        "S13",
    ),
    Mutation(
        "chosen variables make others stale",
        "storage/stale.py",
        "if author.program is None or author.part is None:",
        "if author.program is None:",
        "S13",
    ),
    Mutation(
        "a file with another name is written over",
        "storage/local/filesystem/mapping.py",
        "    return os.fstat(fd).st_nlink == 1",
        "    return True",
        "S14",
    ),
    Mutation(
        "pieces begin at the wrong byte",
        "storage/hashing.py",
        "                self._room = PIECE\n            part",
        "                self._room = PIECE - 1\n            part",
    ),
    Mutation(
        "a cut file counts as good",
        "storage/verification.py",
        "    if file.size != record.size:",
        "    if file.size > record.size:",
    ),
    Mutation(
        "extra files are not named",
        "storage/verification.py",
        "if name not in manifest.files]",
        "if name in manifest.files and False]",
    ),
    Mutation(
        "an author's index is off by one",
        "storage/manifest.py",
        """f',"author":{len(ends)}}}'""",
        """f',"author":{len(ends) - 1}}}'""",
    ),
    Mutation(
        "a commit comes before its bytes",
        "storage/local/transaction.py",
        "            sync_file_system(plan.new)\n",
        "            pass\n",
        "S15",
    ),
    Mutation(
        "a journal gets its name before the new files' bytes",
        "storage/local/journal.py",
        '                sync_directory(os.path.join(layout.staging, "new", path))\n',
        "                pass\n",
        "S16",
    ),
    Mutation(
        "a journal gets its name before its own bytes",
        "storage/local/journal_file.py",
        "        os.fsync(file.fileno())\n",
        "",
        "S16",
    ),
    Mutation(
        "the version before goes at once",
        "storage/local/syncing.py",
        "            sync_file_system(layout.directory)\n",
        "            finish()\n            sync_file_system(layout.directory)\n",
        "S17",
    ),
    Mutation(
        "what a power cut took does not come back",
        "storage/local/crash_recovery.py",
        "        exchange(new, layout.directory)\n",
        "",
        "S17",
    ),
    Mutation(
        "the hidden entry of another user is taken for ours",
        "storage/local/filesystem/owners.py",
        '    return _find_shown(parent or ".", facts.st_dev) == facts.st_uid\n',
        "    return True\n",
        "S18",
    ),
]
