"""fleet: one object that knows this process's role and does what the role asks for.

A script says ``fleet.init(role_maker)``, wraps its optimizer in ``fleet.distributed_optimizer``, and then
serves or trains, whichever its role is. Underneath are the transpiler, the servers and the saves that
scripts can also use without it. Fluid's names for what is here begin with ``incubate.fleet``.
"""
