"""One process that speaks for others: HTTP and WebSocket in front of one voice. Needs the `serve` extra."""
