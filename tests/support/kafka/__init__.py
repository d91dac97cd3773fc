"""A real Apache Kafka for tests: brokers in KRaft mode from the published jars, with the machine's Java."""
