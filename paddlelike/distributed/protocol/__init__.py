"""The protocol between trainers and servers: messages and two state machines.

It has no sockets, no threads and no clock: the callers, :mod:`paddlelike.distributed.client` and
:mod:`paddlelike.distributed.server`, pass the time in. :mod:`.messages` defines requests and replies.
:mod:`.server` decides what a server replies and whose requests it accepts. :mod:`.trainer` decides what a
trainer requests next, and how it brings the servers to one round.

Synchronous training guarantees one of two results, whatever is lost, repeated, late, killed or hung: the
parameters are bit for bit those of an undisturbed run, or an error names the endpoint or the trainers in
bounded time.

==============================  ====================  ======================================================
fault                           detected by           consequence
==============================  ====================  ======================================================
a call or its answer is lost    failure, deadline     the call is repeated; no repetition changes anything
a server hangs, is cut off      deadline              its calls are repeated until the window is over
a server never comes back       window                every trainer ends, and names it
a server was restarted          its incarnation       ``exit``: every trainer ends, and names it;
                                                      ``rollback``: all return to the newest common checkpoint
a trainer hangs, comes late     barrier               the others wait, and know for which one
a trainer never comes back      barrier's timeout     the others end, and name it
a trainer was restarted         its process id        the new process finishes its round, or repeats it
two processes, one trainer id   the same              the older one is fenced, and ends
a trainer of another run        the servers' rounds   its first push fails, unless its loop follows them
a copied save without a round   the servers' rounds   the server takes the round of the others, or begins at 0
servers loaded different saves  the servers' rounds   every trainer ends (exit code 1), and names the rounds
a message arrives late          session, generation   it is refused
another program, another job    digest, job           refused before anything is staged
==============================  ====================  ======================================================

Asynchronous updates are applied at most once; a lost server loses the updates since its last save. Clocks
matter in one place: of two processes of one trainer, the one that started later counts as newer, even on
another machine.
"""
