"""The launcher of jobs: ``python -m paddlelike.distributed.launch --server_num 2 --worker_num 2 train.py``.

:mod:`.command` runs the command line, :mod:`.options` parses it, :mod:`.processes_plan` defines the processes
and their environments, :mod:`.supervisor` starts, watches and restarts them. They run on this machine
(:mod:`.local`) or on a Ray cluster (:mod:`.slurm_and_ray`). :mod:`.viewer` shows the report.
"""
