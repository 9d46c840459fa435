// Copy the problem of every island of a world to contiguous memory, as a solver reads it. Most islands become dense
// problems. A large island keeps its blocks, and its rows over the dofs of two blocks. What no solver reads of a small
// island is not copied: its blocks, and the types of its rows where all of them only push.

#ifndef ROW_KINDS
#define ROW_KINDS 1  // whether solvers of small islands ask for the types of rows
#endif

// (1) the record of each island, sorted by size class, and the addresses of its matrices
DEVICE void make_records(const Model& m, int islands, const int* island_size, const int* island_first,
                         const int* island_adr, const int* island_totals, int con_adr, int efc_adr, int world,
                         int shard_size, int* island_index, int* island_record) {
  LANE_FOR(b, m.nblock()) island_index[b] = 0;  // also where there is no island
  lane_sync();
  int present = 0;  // classes of the lane's islands, as bits
  LANE_FOR(i, islands) present |= 1 << island_class(m, island_size[4 * i]);
  ROLLED for (int c = 0, base = 0; c < NUM_ISLAND_CLASSES; base += island_totals[c], ++c) {
    if (!lane_any(present >> c & 1)) continue;
    const int start = base + island_adr[c * shard_size];
    sums_before(
        islands, [&](int i) { return int(island_class(m, island_size[4 * i]) == c); },
        [&](int i, int before) {
          if (island_class(m, island_size[4 * i]) == c) island_index[i] = start + before;
        });
  }
  lane_sync();
  const int start[3] = {island_adr[COLUMN_ISLAND_M * shard_size], island_adr[COLUMN_ISLAND_H * shard_size],
                        island_adr[COLUMN_ISLAND_J * shard_size]};  // loaded at once
  const auto place = [&](int column, int start, int word, bool large) {
    sums_before(
        islands, [&](int i) { return island_pieces(m, column, island_size + 4 * i); },
        [&](int i, int before) {
          if (column == COLUMN_ISLAND_J || is_large(m, island_size[4 * i]) == large) {
            island_record[ISLAND_RECORD * island_index[i] + word] = start + before;
          }
        });
  };
  place(COLUMN_ISLAND_M, start[0], 5, false);
  if (lane_any(present >> LARGE_ISLANDS)) place(COLUMN_ISLAND_H, start[1], 5, true);
  place(COLUMN_ISLAND_J, start[2], 6, true);
  LANE_FOR(i, islands) {
    int* record = island_record + ISLAND_RECORD * island_index[i];
    record[0] = world;
    record[1] = island_size[4 * i];
    record[2] = island_size[4 * i + 1];
    record[3] = island_first[3 * i];
    record[4] = efc_adr + island_first[3 * i + 1];
    record[7] = con_adr;
    record[8] = island_first[3 * i + 2];
    record[9] = island_size[4 * i + 2];
    record[10] = record[11] = 0;
  }
  lane_sync();
}

// A row of an island: its first words are zero but for those of one or two blocks, which come one after the other.
struct IslandRow {
  real* to;
  const real* from;
  int words, place1, n1, place2, n2;

  DEVICE_METHOD real word(int j) const {
    const int in1 = j - place1, in2 = j - place2;
    return in1 >= 0 && in1 < n1 ? from[in1] : in2 >= 0 && in2 < n2 ? from[n1 + in2] : R(0.0);
  }
  DEVICE_METHOD void put_all() const {
#ifdef MATRIX_VECTORS
    for (int j = 0; n1 + n2 < words && j < words; j += VECTOR_WIDTH) store_words(to + j, Lanes{}, words - j);
    put_words(to + place1, from, n1);
    put_words(to + place2, from + n1, n2);
#else
    ROLLED for (int j = 0; n1 + n2 < words && j < words; ++j) to[j] = 0;
    ROLLED for (int k = 0; k < n1; ++k) to[place1 + k] = from[k];
    ROLLED for (int k = 0; k < n2; ++k) to[place2 + k] = from[n1 + k];
#endif
  }
#ifdef MATRIX_VECTORS
  static void put_words(real* to, const real* from, int number) {
    for (int k = 0; k < number; k += VECTOR_WIDTH) {
      store_words(to + k, load_words(from + k, number - k), number - k);
    }
  }
#endif
};

#if SIMENGINE_GPU
// The row of one lane of a warp, in all of them.
DEVICE IslandRow row_of_lane(const IslandRow& own, int from) {
  const auto pointer = [&](unsigned long long x) {
    const unsigned low = unsigned(warp_get_int(int(unsigned(x)), from));
    const unsigned high = unsigned(warp_get_int(int(unsigned(x >> 32)), from));
    return (static_cast<unsigned long long>(high) << 32) | low;
  };
  return {reinterpret_cast<real*>(pointer(reinterpret_cast<unsigned long long>(own.to))),
          reinterpret_cast<const real*>(pointer(reinterpret_cast<unsigned long long>(own.from))),
          warp_get_int(own.words, from),
          warp_get_int(own.place1, from),
          warp_get_int(own.n1, from),
          warp_get_int(own.place2, from),
          warp_get_int(own.n2, from)};
}
#endif

#if SIMENGINE_GPU
#if LANES > 32
DEVICE int most_of_warp(int x) { return warp_most(x); }
#else
DEVICE int most_of_warp(int x) { return lane_most(x); }
#endif

// Write the rows of the lanes of a warp, of which each has one, by groups of WIDTH lanes. Several are under way at a
// time.
template <int WIDTH>
DEVICE void put_rows_of_lanes(const IslandRow& own, int number) {
  constexpr int ROWS = WARP_LANES / WIDTH, AT_ONCE = WIDTH < WARP_LANES ? 2 : 4;
  const int group = warp_lane() / WIDTH, place = warp_lane() % WIDTH;
  ROLLED for (int k = 0; k < number; k += ROWS * AT_ONCE) {
    IslandRow row[AT_ONCE];
    int most = 0;
    UNROLLED for (int e = 0; e < AT_ONCE; ++e) {
      row[e] = row_of_lane(own, k + ROWS * e + group);
      most = row[e].words > most ? row[e].words : most;
    }
    ROLLED for (int j = place; j < most; j += WIDTH) {
      real x[AT_ONCE];
      UNROLLED for (int e = 0; e < AT_ONCE; ++e) x[e] = j < row[e].words ? row[e].word(j) : R(0.0);
      UNROLLED for (int e = 0; e < AT_ONCE; ++e) {
        if (j < row[e].words) row[e].to[j] = x[e];
      }
    }
  }
}
#endif

#if SIMENGINE_GPU
#define MOST_OWN_WORDS 8  // of a row that a lane writes alone

// Write the lane's own row, which is short: all its words are under way at once, and four of them are a store where the
// number of words lets rows begin so.
DEVICE void put_own_row(const IslandRow& own) {
  real x[MOST_OWN_WORDS];
  UNROLLED for (int j = 0; j < MOST_OWN_WORDS; ++j) x[j] = j < own.words ? own.word(j) : R(0.0);
  if (own.words % 4 == 0) {
    UNROLLED for (int j = 0; j < MOST_OWN_WORDS; j += 4) {
      if (j < own.words) *reinterpret_cast<Vec4*>(own.to + j) = {x[j], x[j + 1], x[j + 2], x[j + 3]};
    }
  } else {
    UNROLLED for (int j = 0; j < MOST_OWN_WORDS; ++j) {
      if (j < own.words) own.to[j] = x[j];
    }
  }
}
#endif

// Write rows 0 to `number` - 1, of which row_at(r) gives each, or one without words. The lanes of a warp share each
// row, after each of them has found one: so neighbours write neighbouring words. A short row is the work of a lane.
template <typename RowAt>
DEVICE void put_rows(int number, RowAt row_at) {
#if SIMENGINE_GPU
  ROLLED for (int base = WARP_LANES * warp_index(); base < number; base += LANES) {
    const int r = base + warp_lane(), rest = number - base, rows = rest < WARP_LANES ? rest : WARP_LANES;
    const IslandRow none = {0, 0, 0, 0, 0, 0, 0}, own = r < number ? row_at(r) : none;
    const int most = most_of_warp(own.words);
    if (most <= MOST_OWN_WORDS) {
      put_own_row(own);
    } else if (most <= 16 && WARP_LANES > 16) {
      put_rows_of_lanes<(WARP_LANES > 16 ? 16 : WARP_LANES)>(own, rows);
    } else {
      put_rows_of_lanes<WARP_LANES>(own, rows);
    }
  }
#else
  LANE_FOR(r, number) {
    row_at(r).put_all();
  }
#endif
}

// (2) dense matrices of the islands, which are zero outside the blocks. Used for the inertia and for its factor.
DEVICE void gather_matrices(const Model& m, const int* block_island, const int* block_island_dof,
                            const int* island_size, const int* island_index, const int* island_record,
                            const real* blocks, real* matrices) {
  put_rows(m.nv(), [&](int v) {
    const int b = m.dof_block()[v], island = block_island[b];
    if (island < 0 || is_large(m, island_size[4 * island])) return IslandRow{0, 0, 0, 0, 0, 0, 0};
    const Block block = block_of(m, b);
    const int n = island_size[4 * island], place = block_island_dof[b], i = v - block.dof;
    real* row = matrices + size_t(4) * island_record[ISLAND_RECORD * island_index[island] + 5] + (place + i) * n;
    return IslandRow{row, blocks + block.at + i * block.n, n, place, block.n, 0, 0};
  });
}

// (3) row r of the world becomes row `place` of its island: over all dofs of the island or, for a large island, over
// the dofs of its two blocks.
DEVICE IslandRow gather_row(const Model& m, int r, int place, const int* efc_block, const int* block_island_dof,
                       const int* block_index, int n, const int* record, const real* efc_J_blocks,
                       real* island_efc_J, int* row_block) {
  const bool large = is_large(m, n);
  const int b1 = efc_block[2 * r], b2 = efc_block[2 * r + 1];
  const int stride = large ? m.nJ() : (n + 3) & ~3;
  const real* J = efc_J_blocks + size_t(r) * m.nJ();
  real* row = island_efc_J + size_t(4) * record[6] + size_t(place) * stride;
  if (large) {
    row_block[0] = block_index[b1];
    row_block[1] = b2 < 0 ? -1 : block_index[b2];
    return {row, J, stride, 0, stride, 0, 0};
  }
  const DofsOfBlocks blocks = dofs_of_blocks(m, b1, b2);
  return {row, J, stride, block_island_dof[b1], blocks.n1, blocks.n2 ? block_island_dof[b2] : 0, blocks.n2};
}

// (4) blocks of large islands, sorted by island
DEVICE void gather_blocks(const Model& m, const int* block_island, const int* block_island_dof, const int* block_index,
                          const int* island_size, const int* island_first, int* island_blocks) {
  LANE_FOR(b, m.nblock()) {
    const int island = block_island[b];
    if (island < 0 || !is_large(m, island_size[4 * island])) continue;
    int* words = island_blocks + 6 * (island_first[3 * island + 2] + block_index[b]);
    words[0] = b;
    words[1] = block_island_dof[b];
    words[2] = m.block_dofadr()[b + 1] - m.block_dofadr()[b];
  }
}

DEVICE void gather(const Model& m, const int* con_adr, const int* efc_adr, const int* ncon, const int* nefc,
                   const real* qM_blocks, const real* qLD_blocks, const real* qfrc_smooth, const real* qacc_smooth,
                   const real* qacc_warmstart, const int* contact_efc_address, const real* efc_J_blocks,
                   const int* efc_block, const real* efc_D, const real* efc_aref, const int* efc_type,
                   const int* efc_id, const real* efc_frictionloss, const int* efc_by_island, const int* block_island,
                   const int* block_island_dof, const int* block_index, const int* nisland, const int* island_size,
                   const int* island_first, const int* island_adr, const int* island_totals, int* island_index,
                   int* island_record, real* island_qM, real* island_qLD, real* island_efc_J,
                   real* island_qfrc_smooth, real* island_qacc_smooth, real* island_qacc_warmstart,
                   real* island_efc_D, real* island_efc_aref, int* island_efc_type, int* island_efc_id,
                   real* island_efc_frictionloss, int* island_contact_efc_address, int* island_blocks,
                   int* island_dof_block, int* island_row_block, int world, int shard_size) {
  make_records(m, nisland[0], island_size, island_first, island_adr, island_totals, con_adr[0], efc_adr[0], world,
               shard_size, island_index, island_record);
  gather_matrices(m, block_island, block_island_dof, island_size, island_index, island_record, qM_blocks, island_qM);
  if (m.opt_solver() != SOLVER_NEWTON) {  // which does not read it
    gather_matrices(m, block_island, block_island_dof, island_size, island_index, island_record, qLD_blocks,
                    island_qLD);
  }
  gather_blocks(m, block_island, block_island_dof, block_index, island_size, island_first, island_blocks);
  LANE_FOR(v, m.nv()) {
    const int b = m.dof_block()[v], island = block_island[b];
    if (island < 0) continue;
    const int to = island_first[3 * island] + block_island_dof[b] + v - m.block_dofadr()[b];
    if (is_large(m, island_size[4 * island])) island_dof_block[to] = block_index[b];
    island_qfrc_smooth[to] = qfrc_smooth[v];
    island_qacc_smooth[to] = qacc_smooth[v];
    island_qacc_warmstart[to] = qacc_warmstart[v];
  }
  put_rows(nefc[0], [&](int r) {
    const int to = efc_by_island[r], island = block_island[efc_block[2 * r]], n = island_size[4 * island];
    island_efc_D[to] = efc_D[r];
    island_efc_aref[to] = efc_aref[r];
    if (ROW_KINDS || is_large(m, n)) {
      island_efc_type[to] = efc_type[r];
      island_efc_id[to] = efc_id[r];
      island_efc_frictionloss[to] = efc_frictionloss[r];
    }
    return gather_row(m, r, to - island_first[3 * island + 1], efc_block, block_island_dof, block_index, n,
                      island_record + ISLAND_RECORD * island_index[island], efc_J_blocks, island_efc_J,
                      island_row_block + 2 * to);
  });
  LANE_FOR(k, ROW_KINDS ? ncon[0] : 0) {  // only rows of cones ask for the others of their contact
    const int first = contact_efc_address[k];
    const int island = first < 0 ? -1 : block_island[efc_block[2 * first]];
    island_contact_efc_address[k] = first < 0 ? -1 : efc_by_island[first] - island_first[3 * island + 1];
  }
  lane_sync();
}
