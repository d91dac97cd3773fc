"""What end-to-end tests share: real processes, their addresses, and waiting for conditions instead of time."""
