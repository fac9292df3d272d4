"""RabbitMQ's management HTTP API, with its paths and field names, over the gateway's own inventory.

One module for each kind of thing (`queues`, `exchanges`, ...), each with `Routes` that `router.MANAGEMENT`
joins. A route takes `View` (what there is) and says what callers may ask: `Looker` where it only answers, `Member`
where it changes what the member's rights allow (it asks `caller.may` and `caller.check`), `Administrator` for the rest.
It answers as RabbitMQ does: lists by `listing.answer_list`, which pages, sorts and filters in steps; refusals by
`failures` (404 for what is not there, 400 with `error` and `reason`); 201 for a thing that was made by PUT, 204 where
there is nothing to tell.

A route holds the loop for a few milliseconds at most: a walk over many things goes by `Steps`. What the gateway has
no figure for is left out, not made up. Fields that RabbitMQ does not have are in one object `lmq` inside the answer.
"""
