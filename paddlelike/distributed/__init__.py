"""Parameter servers: programs for trainers and servers, what travels between them, and who keeps what."""
