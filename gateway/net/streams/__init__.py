"""What lies between a connection's handler and its peer: the socket, and what turns its bytes into others."""
