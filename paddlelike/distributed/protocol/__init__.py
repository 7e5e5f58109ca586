"""What trainers and servers say and when: messages and two state machines, without sockets or clocks."""
