"""Messages for later: one durable timer for every door."""
