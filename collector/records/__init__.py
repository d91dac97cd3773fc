"""Values that cross stage borders: frozen, slotted, no I/O."""
