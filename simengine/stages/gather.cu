// The problem of every island of a world, dense and contiguous, as the solver of a whole world would find it.

// Records, class by class in the order of the world's islands, and where the inertia and the Jacobian of each start.
DEVICE void make_records(int islands, const int* island_size, const int* island_first, const int* island_adr,
                         const int* island_totals, int con_adr, int efc_adr, int world, int shard_size,
                         int* island_index, int* island_record, int* at) {
  ROLLED for (int c = 0, base = 0; c < NUM_ISLAND_CLASSES; base += island_totals[c], ++c) {
    int index = base + island_adr[c * shard_size];
    for (int i = 0; i < islands; ++i) {
      if (island_class(island_size[2 * i]) == c) island_index[i] = index++;
    }
  }
  int M = island_adr[COLUMN_ISLAND_M * shard_size], J = island_adr[COLUMN_ISLAND_J * shard_size];
  ROLLED for (int i = 0; i < islands; ++i) {
    const int n = island_size[2 * i], rows = island_size[2 * i + 1];
    int* record = island_record + 8 * island_index[i];
    record[0] = world;
    record[1] = n;
    record[2] = rows;
    record[3] = island_first[2 * i];
    record[4] = efc_adr + island_first[2 * i + 1];
    record[5] = at[2 * i] = M;
    record[6] = at[2 * i + 1] = J;
    record[7] = con_adr;
    M += island_words(COLUMN_ISLAND_M, n, rows);
    J += island_words(COLUMN_ISLAND_J, n, rows);
  }
}

// Matrices of the islands: zero but for the blocks, dof by dof. What holds of inertia holds of its Cholesky factor.
DEVICE void gather_matrices(const Model& m, const int* block_island, const int* block_place, const int* island_size,
                            const int* at, const real* blocks, real* matrices) {
  LANE_FOR(v, m.nv()) {
    const int b = m.dof_block()[v], island = block_island[b];
    if (island < 0) continue;
    const Block block = block_of(m, b);
    const int n = island_size[2 * island], place = block_place[b], i = v - block.dof;
    real* row = matrices + size_t(4) * at[2 * island] + (place + i) * n;
    ROLLED for (int j = 0; j < n; ++j) {
      const int k = j - place;
      row[j] = k >= 0 && k < block.n ? blocks[block.at + i * block.n + k] : R(0.0);
    }
  }
}

// Row r in its island: zero but for the blocks it touches.
DEVICE void gather_row(const Model& m, int r, const int* efc_block, const int* block_island, const int* block_place,
                       const int* island_size, const int* island_first, const int* at, const real* efc_J_blocks,
                       const int* efc_place, real* island_efc_J) {
  const int island = block_island[efc_block[2 * r]];
  const DofsOfBlocks blocks = dofs_of_blocks(m, efc_block[2 * r], efc_block[2 * r + 1]);
  const int stride = (island_size[2 * island] + 3) & ~3, place1 = block_place[efc_block[2 * r]];
  const int place2 = blocks.n2 ? block_place[efc_block[2 * r + 1]] : 0;
  const real* J = efc_J_blocks + size_t(r) * m.nJ();
  real* row = island_efc_J + size_t(4) * at[2 * island + 1] +
              size_t(efc_place[r] - island_first[2 * island + 1]) * stride;
  ROLLED for (int j = 0; j < stride; ++j) {
    const int k1 = j - place1, k2 = j - place2;
    real x = k1 >= 0 && k1 < blocks.n1 ? J[k1] : R(0.0);
    if (k2 >= 0 && k2 < blocks.n2) x = J[blocks.n1 + k2];
    row[j] = x;
  }
}

DEVICE void gather(const Model& m, const int* con_adr, const int* efc_adr, const int* ncon, const int* nefc,
                   const real* qM_blocks, const real* qLD_blocks, const real* qfrc_smooth, const real* qacc_smooth,
                   const real* qacc_warmstart, const int* contact_efc_address, const real* efc_J_blocks,
                   const int* efc_block, const real* efc_D, const real* efc_aref, const int* efc_type,
                   const int* efc_id, const real* efc_frictionloss, const int* efc_place, const int* block_island,
                   const int* block_place, const int* nisland, const int* island_size, const int* island_first,
                   const int* island_adr, const int* island_totals, int* island_index, int* island_record,
                   real* island_qM, real* island_qLD, real* island_efc_J, real* island_qfrc_smooth,
                   real* island_qacc_smooth, real* island_qacc_warmstart, real* island_efc_D, real* island_efc_aref,
                   int* island_efc_type, int* island_efc_id, real* island_efc_frictionloss,
                   int* island_contact_efc_address, real* at, int world, int shard_size) {
  int* starts = reinterpret_cast<int*>(at);
  if (lane() == 0) {
    make_records(nisland[0], island_size, island_first, island_adr, island_totals, con_adr[0], efc_adr[0], world,
                 shard_size, island_index, island_record, starts);
  }
  lane_sync();
  gather_matrices(m, block_island, block_place, island_size, starts, qM_blocks, island_qM);
  gather_matrices(m, block_island, block_place, island_size, starts, qLD_blocks, island_qLD);
  LANE_FOR(v, m.nv()) {
    const int b = m.dof_block()[v], island = block_island[b];
    if (island < 0) continue;
    const int to = island_first[2 * island] + block_place[b] + v - m.block_dofadr()[b];
    island_qfrc_smooth[to] = qfrc_smooth[v];
    island_qacc_smooth[to] = qacc_smooth[v];
    island_qacc_warmstart[to] = qacc_warmstart[v];
  }
  LANE_FOR(r, nefc[0]) {
    gather_row(m, r, efc_block, block_island, block_place, island_size, island_first, starts, efc_J_blocks,
               efc_place, island_efc_J);
    const int to = efc_place[r];
    island_efc_D[to] = efc_D[r];
    island_efc_aref[to] = efc_aref[r];
    island_efc_type[to] = efc_type[r];
    island_efc_id[to] = efc_id[r];
    island_efc_frictionloss[to] = efc_frictionloss[r];
  }
  LANE_FOR(k, ncon[0]) {
    const int first = contact_efc_address[k];
    const int island = first < 0 ? -1 : block_island[efc_block[2 * first]];
    island_contact_efc_address[k] = first < 0 ? -1 : efc_place[first] - island_first[2 * island + 1];
  }
  lane_sync();
}
