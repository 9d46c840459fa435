"""Islands: what constraint rows connect, gathered, solved and scattered back; and the stages on inertia by blocks."""
