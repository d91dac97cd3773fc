"""What is the score of this interaction? A leaf: knows no telemetry, no queue and no transport of ours."""
