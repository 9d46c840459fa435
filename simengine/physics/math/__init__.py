"""Mathematics that several topics share; there are no stages here.

    spatial, vector, quaternion     three-vectors, quaternions, com-based spatial vectors and inertias
    tree                            sums along branches and over subtrees of kinematic trees
    linalg, registers, dense        dense symmetric matrices: in registers, or by loops over memory
    wide, wide_solve                the same with two rows in a lane's registers, of 33 to 64 rows
    block_rows                      the same with one row in each lane of a block, of 65 to 128 rows
    squares                         the same in memory, with entries in registers four by four
    four_pivots                     elimination of four columns at a time, which both of these share
    tile_factor                     Cholesky factors of a tile of worlds on the host
    padded_matrix, vector_matrices, register_products
                                    the same in vectors of the host, and products added up in its registers
    branch_rows, branch_terms, branch_solve
                                    matrices with entries along the branches of trees
    envelope, blocks                large sparse matrices, and block-diagonal ones
    tree_matrices, forest           matrices of trees in JAX, and of many small trees
    sorting, random, dual           radix sort, pseudo-random order, dual numbers

Conventions are those of MuJoCo's documentation, chapter "Computation", section "General framework".
"""
