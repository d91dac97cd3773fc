"""What `groundwatch demo` starts: a RAG application, a stub model, and the terminal's view of a sidecar.

`rag_app.py` and `stub_llm.py` are scripts that run in processes of their own, started by path, and import nothing
of groundwatch, so that what the demo shows is what any application's telemetry would show.
"""
