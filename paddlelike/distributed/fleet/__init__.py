"""fleet: one object that knows this process's role, makes its programs, serves, trains and saves.

A script calls ``fleet.init(role_maker)``, wraps its optimizer in ``fleet.distributed_optimizer``, and then
serves or trains according to its role. Scripts can also use the transpiler, the servers and the saves without
fleet. Fluid's names for these modules begin with ``incubate.fleet``.
"""
