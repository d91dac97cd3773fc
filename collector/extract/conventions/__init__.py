"""The span conventions, one per file, in the order of their precedence on one span."""

from __future__ import annotations

from collector.extract.conventions.generic import Generic
from collector.extract.conventions.genkit import Genkit
from collector.extract.conventions.google_adk import GoogleADK
from collector.extract.conventions.haystack import Haystack
from collector.extract.conventions.laminar import Laminar
from collector.extract.conventions.langfuse import Langfuse
from collector.extract.conventions.langsmith import LangSmith
from collector.extract.conventions.logfire import Logfire
from collector.extract.conventions.mapped import Mapped
from collector.extract.conventions.mlflow import MLflow
from collector.extract.conventions.openinference import OpenInference
from collector.extract.conventions.openlit import OpenLIT
from collector.extract.conventions.openllmetry import OpenLLMetry
from collector.extract.conventions.otel_genai import OTelGenAI
from collector.extract.conventions.pydantic_ai import PydanticAI
from collector.extract.conventions.trulens import TruLens
from collector.extract.conventions.vector_db import VectorDB
from collector.extract.conventions.vercel_ai import VercelAI
from collector.extract.options import Options
from collector.extract.view import Convention


def conventions(options: Options) -> tuple[Convention, ...]:
    """All conventions; where several read one span, the first that says something of a field wins."""
    return (
        Mapped(options),
        OpenInference(),
        LangSmith(),
        Langfuse(),
        MLflow(),
        Haystack(),
        VercelAI(),
        Genkit(),
        Laminar(),
        GoogleADK(),
        TruLens(),
        PydanticAI(),
        Logfire(),
        OpenLIT(),
        OpenLLMetry(),
        OTelGenAI(),
        VectorDB(),
        Generic(),
    )
