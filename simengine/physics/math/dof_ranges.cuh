// Ranges of dofs that nothing couples with others: a robot, and each of the things that it does not touch. Kernels with
// SEVERAL_TREES, a row of a matrix in each lane, solve the systems of all ranges side by side.
//
// A lane has only those columns of its row in registers where its range has entries: its window. All windows of a
// world are as wide as the widest range needs, in columns by fours. Entries that the windows leave out are zeros, so
// that sums have the same bits as without ranges.
#pragma once

#if defined(SEVERAL_TREES) && SIMENGINE_GPU && LANES <= 32
#define DOF_RANGES 1
#define CHUNKS_OF_ROWS 2  // of LANES rows, of which a range keeps which are its own

// Of the range that has the lane's dof: its dofs, from `begin` to before `end`; the first column of its window; and the
// width of all windows in fours. `rows` are the range's rows as bits, in chunks. `begins` are the first dofs of all
// ranges as bits. `spans` has the fours of columns that the lane's own row of each chunk spans: a byte for the first,
// and one for that behind the last. A lane without a dof has a range of none.
struct DofRange {
  int begin, end, base, fours;
  unsigned rows[CHUNKS_OF_ROWS], begins, spans;
};

// Columns of row r of J that have entries, as bits.
DEVICE unsigned columns_of_row(const real* J, int r, int stride) {
  const real* row = J + size_t(r) * stride;
  unsigned columns = 0;
  OVERLAPPED for (int j = 0; j < stride; j += 4) {
    const unsigned four = (row[j] != 0) + 2 * (row[j + 1] != 0) + 4 * (row[j + 2] != 0) + 8 * (row[j + 3] != 0);
    columns |= four << j;
  }
  return columns;
}

// Of the rows from `first` on, one in each lane, those of the lane's range.
DEVICE unsigned find_rows(const DofRange& range, unsigned columns) {
  const int owner = columns ? highest_bit(range.begins & ((2u << lowest_bit(columns)) - 1)) : -1;
  unsigned own = 0;
  ROLLED for (unsigned left = range.begins; left; left &= left - 1) {
    const int begin = lowest_bit(left);
    const unsigned rows = lane_ballot(owner == begin);
    own = begin == range.begin ? rows : own;
  }
  return range.begin < range.end ? own : 0;
}

DEVICE unsigned rows_of_range(const DofRange& range, int nrow, const real* J, int stride, int first) {
  if (first == 0) return range.rows[0];
  if (first == LANES) return range.rows[1];
  const int r = first + lane();
  return find_rows(range, r < nrow ? columns_of_row(J, r, stride) : 0);
}

// The range of the lane's dof, where only the rows of J couple trees.
DEVICE DofRange range_of_dof(const Model& m, int nrow, const real* J, int stride) {
  const int i = lane(), n = m.nv();
  unsigned columns[CHUNKS_OF_ROWS], coupled = 0;
  UNROLLED for (int c = 0; c < CHUNKS_OF_ROWS; ++c) columns[c] = 0;
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    const int r = first + i;
    const unsigned own = r < nrow ? columns_of_row(J, r, stride) : 0;
    if (first == 0) columns[0] = own;
    if (first == LANES) columns[1] = own;
    // from behind the first column to the last
    coupled |= own ? (2u << highest_bit(own)) - (2u << lowest_bit(own)) : 0;
  }
  coupled = lane_or(coupled);
  const int tree = i < n ? m.dof_treeid()[i] : -1, before = i > 0 && i <= n ? m.dof_treeid()[i - 1] : -1;
  DofRange range;
  range.spans = 0;
  UNROLLED for (int c = 0; c < CHUNKS_OF_ROWS; ++c) {
    if (!columns[c]) continue;
    range.spans |= unsigned(lowest_bit(columns[c]) / 4 | (highest_bit(columns[c]) / 4 + 1) << 8) << 16 * c;
  }
  range.begins = lane_ballot(tree != before && !(coupled >> i & 1));
  const unsigned upto = (2u << i) - 1, above = range.begins & ~upto;
  range.begins &= (n < 32 ? 1u << n : 0u) - 1;
  range.begin = i < n ? highest_bit(range.begins & upto) : 0;
  range.end = i < n ? above ? lowest_bit(above) : n : 0;
  const int aligned = range.begin / 4 * 4;
  range.fours = lane_most((range.end - aligned + 3) / 4);
  const int last = (n + 3) / 4 * 4 - 4 * range.fours;
  range.base = aligned < last ? aligned : last;
  UNROLLED for (int c = 0; c < CHUNKS_OF_ROWS; ++c) range.rows[c] = nrow > c * LANES ? find_rows(range, columns[c]) : 0;
  return range;
}

// The same where no row does.
DEVICE DofRange range_of_tree(const Model& m) { return range_of_dof(m, 0, (const real*)0, 0); }

// The same range, of which a compiler does not know that it stays the same in a loop: it would keep all that follows
// from it in registers.
DEVICE DofRange made_anew(DofRange range) {
  asm volatile("" : "+r"(range.begin), "+r"(range.end), "+r"(range.base), "+r"(range.fours));
  return range;
}

// The lane's row of a symmetric matrix, in its window. By symmetry it reads a column, so that neighbouring lanes read
// neighbouring words.
template <int WORDS>
DEVICE void range_load(real* h, const DofRange& range, const real* A, int n) {
  const bool there = lane() < n;
  const real* entry = A + range.base * n + lane();
#pragma unroll
  for (int j = 0; j < WORDS; ++j) {
    if (j < 4 * range.fours) h[j] = there && range.base + j < n ? entry[j * n] : R(0.0);
  }
}

// h = the window `row` of the lane's row.
template <int WORDS>
DEVICE void range_take(real* h, const DofRange& range, const real* row) {
#pragma unroll
  for (int j = 0; j < WORDS; ++j) {
    if (j < 4 * range.fours) h[j] = row[j];
  }
}

// Is `dof` one of the range?
DEVICE bool is_in(const DofRange& range, int dof) {
  return unsigned(dof - range.begin) < unsigned(range.end - range.begin);
}
#else
#define DOF_RANGES 0
#endif
