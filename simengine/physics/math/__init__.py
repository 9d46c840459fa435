"""Mathematics that several topics share: vectors, quaternions, spatial algebra, trees, linear algebra, random order."""
