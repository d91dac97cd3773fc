"""Mechanism without domain: clock, bounded queue, worker processes."""
