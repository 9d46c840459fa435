"""Convex shapes: distance by GJK, penetration by EPA, and several contacts of flat features."""
