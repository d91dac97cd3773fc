"""The one HTTP port: status page, JSON API, health and metrics, with OTLP/HTTP mounted beside them."""
