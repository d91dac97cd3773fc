"""groundwatch's collector: which interactions are scored, when, at what price, and what it means."""

__version__ = "0.1.0"
