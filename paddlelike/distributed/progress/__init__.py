"""A live view of a job: rounds and throughput of every server, and the last lines of the workers' logs.

``launch --progress`` shows it; ``python -m paddlelike.distributed.progress --servers HOST:PORT,...`` shows it
beside any running job. It asks the servers for their status (which takes the job's token and certificates,
from the same environment variables) and reads the end of the workers' logs: the last line, and the number
after the word loss or cost in it. It changes nothing and delays nothing. With ``rich`` (extra ``progress``)
and a terminal it is a table that is redrawn, otherwise a line every few seconds.
"""
