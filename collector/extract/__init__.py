"""Spans and log records of released traces to RAG interactions; see README.md."""
