"""What RabbitMQ's API has no word for, below `/api/lmq`: light queues of every door, sessions, groups, ...

One module for each kind of thing, as in `gateway.admin.management`, whose lists, names and refusals are used here.
"""
