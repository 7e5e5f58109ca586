"""Starting a job: ``python -m paddlelike.distributed.launch --server_num 2 --worker_num 2 train.py``.

``command`` reads the command line, ``plan`` says which processes there are and what their environment
holds, ``supervisor`` starts them, watches them, and restarts the job. The processes belong to ``local``, on
this machine, or to ``cluster``, on Ray. ``viewer`` shows what happens.
"""
