"""A live view of a job: rounds and throughput of every server, and the last lines of the workers' logs.

``launch --progress`` shows it; ``python -m paddlelike.distributed.progress --servers HOST:PORT,...`` shows it
beside any running job. It requests the servers' status, with the job's token and certificates from the same
environment variables. From the end of the workers' logs it reads the last line, and the number after the word
loss or cost in it. The job is neither changed nor delayed. With ``rich`` (extra ``progress``) and a terminal
the view is a redrawn table, otherwise a line every few seconds.
"""
