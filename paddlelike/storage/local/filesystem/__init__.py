"""What a save and a load ask of a local file system: locks, links, mapped files, calls and their errors."""
