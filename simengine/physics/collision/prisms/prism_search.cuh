// The searches for contacts with prisms of height fields, one a prism, as kernels of a GPU share them: prism_list lists
// the prisms of a world that may touch, prism_distance finds contacts that need no search and the distance of the other
// cores, prism_depth the depth of cores that overlap, prism_touch their contacts, and prism_count numbers contacts.
// prism_of has the near pair of each prism, and the prism's number in its field.
#pragma once

// What is known of a prism.
#define PRISM_APART 0    // no contact
#define PRISM_TOUCHES 1  // the contact
#define PRISM_NEAR 2     // the cores are near each other
#define PRISM_DEEP 3     // they overlap

// The first lines of the queue of searches that other kernels go on with.
#define QUEUE_PRISMS_DEEP 0
#define QUEUE_PRISMS_NEAR 1

DEVICE int number_of(const Ground& f, const PrismPlace& prism) { return 2 * (f.ncol - 1) * prism.row + prism.number; }

// Find the vertices of a listed prism of a pair.
DEVICE void listed_prism(const Pair& p, int number, Patch& f, real* vert) {
  real centre[3];
  place_field(p, f, centre);
  const int strip = 2 * (f.ncol - 1);
  vertices_of(f, {number / strip, number % strip}, vert);
}
