"""What trainers and servers say to each other and when: messages and two state machines, nothing else.

No sockets, no threads, no clock: whoever carries the messages (:mod:`paddlelike.distributed.client`) passes
the time in. :mod:`.messages` are the words, :mod:`.door` says who may speak to a server, :mod:`.server` what
it answers, :mod:`.trainer` what a trainer asks next, :mod:`.agreement` how trainers bring servers together.

What is promised of synchronous training, whatever is lost, repeated, late, killed or hung: the parameters are
those of an undisturbed run, bit for bit, or an error names the endpoint or the trainers, in bounded time.

==============================  ====================  ======================================================
what happens                    noticed by            what follows
==============================  ====================  ======================================================
a call or its answer is lost    failure, deadline     the call is repeated; no repetition changes anything
a server hangs, is cut off      deadline              its calls are repeated until the window is over
a server never comes back       window                every trainer ends, and names it
a server was restarted          its incarnation       ``exit``: every trainer ends, and names it;
                                                      ``rollback``: all go back to the newest common save
a trainer hangs, comes late     barrier               the others wait, and know for whom
a trainer never comes back      barrier's patience    the others end, and name it
a trainer was restarted         its process number    the new process finishes its round, or does it anew
two processes, one trainer id   the same              the older one is fenced, and ends
an old message comes late       session, generation   it is refused
another program, another job    digest, job           refused before anything is staged
==============================  ====================  ======================================================

Asynchronous updates are applied at most once; a server that is lost loses what came after its last save.
Clocks matter in one place: a trainer's process is newer when it started later, also on another machine.
"""
