"""The wire format of OTLP: cut-down schema, lazy spans, encode and decode, JSON mapping. Below records."""
