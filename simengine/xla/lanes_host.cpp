// Runs programs of lanes: what an environment computes before and after the steps of a call, for some worlds at a time.
// `simengine_envs/lanes/program.py` writes them.
//
// A lane is one number of every world. Registers hold lanes of up to BLOCK worlds; a number of eight bytes has two
// registers side by side. Booleans are masks, 0 or ~0. Each block of worlds runs all instructions of the program.
// Operations are rounded one by one, as IEEE 754 says. They are an `enum` that `simengine/xla/lanes.py` puts in front of
// this file.

namespace lanes {

static constexpr int64_t BLOCK = 64, GROUP = 16;

struct Instruction {
  int32_t op, to, a, b, c, d, e;
};

struct alignas(64) Register {
  char data[BLOCK * sizeof(float)];
};

template <class T>
static inline T* at(Register* r, int32_t number) {
  return reinterpret_cast<T*>(r + number);
}

template <class To, class From, class Function>
static inline void unary(Register* r, const Instruction& i, int64_t vectors, Function function) {
  To* to = at<To>(r, i.to);
  const From* a = at<From>(r, i.a);
  for (int64_t v = 0; v < vectors; ++v) to[v] = function(a[v]);
}

template <class To, class From, class Function>
static inline void binary(Register* r, const Instruction& i, int64_t vectors, Function function) {
  To* to = at<To>(r, i.to);
  const From *a = at<From>(r, i.a), *b = at<From>(r, i.b);
  for (int64_t v = 0; v < vectors; ++v) to[v] = function(a[v], b[v]);
}

// A number, or zero with its sign if arithmetic takes numbers as near to zero for it, as XLA's threads do.
template <class Real>
static inline Real flushed(Real x) {
  static volatile float nought = -0.0f;  // which no compiler leaves out
  const float added = nought;
  return x + added;
}

// The larger or smaller number. A number that is none wins, and -0 is less than 0.
template <class Real, class Bits>
static inline Real larger(Real x, Real y) {
  const Real equal = Real(Bits(x) & Bits(y)), chosen = x > y ? x : y;
  return flushed(x == y ? equal : x != x ? x : chosen);
}

template <class Real, class Bits>
static inline Real smaller(Real x, Real y) {
  const Real equal = Real(Bits(x) | Bits(y)), chosen = x < y ? x : y;
  return flushed(x == y ? equal : x != x ? x : chosen);
}

template <class Real>
static inline Half narrow(Real mask) {
  return __builtin_convertvector(mask, Half);
}

// What real numbers of one type do. MASK makes a mask of a register of what a comparison gives.
#define REAL_OPERATIONS(SUFFIX, Real, Bits, Mask, MASK, vectors)                                                       \
  case ADD##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return x + y; });                    \
  case SUB##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return x - y; });                    \
  case MUL##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return x * y; });                    \
  case DIV##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return x / y; });                    \
  case MAX##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return larger<Real, Bits>(x, y); }); \
  case MIN##SUFFIX: return binary<Real, Real>(r, i, vectors, [](Real x, Real y) { return smaller<Real, Bits>(x, y); }); \
  case NEG##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return -x; });                                \
  case ABS##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return Real(Bits(x) & ~Bits(-Real{})); });    \
  case SQRT##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return root(x); });                          \
  case FLOOR##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return lower(x); });                        \
  case SIN##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return sine(x); });                           \
  case COS##SUFFIX: return unary<Real, Real>(r, i, vectors, [](Real x) { return cosine(x); });                         \
  case EQ##SUFFIX: return binary<Mask, Real>(r, i, vectors, [](Real x, Real y) { return MASK(x == y); });              \
  case NE##SUFFIX: return binary<Mask, Real>(r, i, vectors, [](Real x, Real y) { return MASK(x != y); });              \
  case LT##SUFFIX: return binary<Mask, Real>(r, i, vectors, [](Real x, Real y) { return MASK(x < y); });               \
  case LE##SUFFIX: return binary<Mask, Real>(r, i, vectors, [](Real x, Real y) { return MASK(x <= y); });              \
  case FINITE##SUFFIX: return unary<Mask, Real>(r, i, vectors, [](Real x) { return MASK(x - x == x - x); });

#define INTEGER_OPERATIONS(SUFFIX, Integer)                                                                             \
  case LT##SUFFIX: return binary<Int, Integer>(r, i, groups, [](Integer x, Integer y) { return Int(x < y); });          \
  case LE##SUFFIX: return binary<Int, Integer>(r, i, groups, [](Integer x, Integer y) { return Int(x <= y); });         \
  case MAX##SUFFIX: return binary<Integer, Integer>(r, i, groups, [](Integer x, Integer y) { return x > y ? x : y; });  \
  case MIN##SUFFIX: return binary<Integer, Integer>(r, i, groups, [](Integer x, Integer y) { return x < y ? x : y; });

static inline Int same(Int mask) { return mask; }

// A real number as an integer, towards zero; the least or greatest one if it is out of range, and 0 for one that is none.
static inline Int whole(Float x) {
  const Float most = Float{} + 2147483648.0f;
  const Int inside = __builtin_convertvector((x < most) & (x >= -most) ? x : Float{}, Int);
  return x >= most ? Int{} + INT32_MAX : x < -most ? Int{} + INT32_MIN : inside;
}

// The hash of words (c, d) under the key (a, b), to the registers `to` and `e`.
static inline void hashed(Register* r, const Instruction& i, int64_t groups) {
  for (int64_t g = 0; g < groups; ++g) {
    Lanes x = at<Lanes>(r, i.c)[g], y = at<Lanes>(r, i.d)[g];
    hash(at<Lanes>(r, i.a)[g], at<Lanes>(r, i.b)[g], x, y);
    at<Lanes>(r, i.to)[g] = x;
    at<Lanes>(r, i.e)[g] = y;
  }
}

template <class Bits, class Mask>
static inline void select(Register* r, const Instruction& i, int64_t vectors) {
  const Mask* mask = at<Mask>(r, i.a);
  const Bits *yes = at<Bits>(r, i.b), *no = at<Bits>(r, i.c);
  Bits* to = at<Bits>(r, i.to);
  for (int64_t v = 0; v < vectors; ++v) {
    const Bits chosen = __builtin_convertvector(mask[v], Bits);
    to[v] = (yes[v] & chosen) | (no[v] & ~chosen);
  }
}

// Arithmetic on registers.
static inline void operate(Register* r, const Instruction& i, int64_t groups) {
  switch (i.op) {
    REAL_OPERATIONS(_F32, Float, Int, Int, same, groups)
    REAL_OPERATIONS(_F64, Double, Wide, Half, narrow, 2 * groups)
    INTEGER_OPERATIONS(_I32, Int)
    INTEGER_OPERATIONS(_U32, Word)
    case EQ_I32: return binary<Int, Int>(r, i, groups, [](Int x, Int y) { return Int(x == y); });
    case NE_I32: return binary<Int, Int>(r, i, groups, [](Int x, Int y) { return Int(x != y); });
    case ADD_I32: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x + y; });
    case SUB_I32: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x - y; });
    case MUL_I32: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x * y; });
    case AND: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x & y; });
    case OR: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x | y; });
    case XOR: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return x ^ y; });
    case NOT: return unary<Word, Word>(r, i, groups, [](Word x) { return ~x; });
    case LEFT: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return y < 32 ? x << (y & 31) : Word{}; });
    case RIGHT: return binary<Word, Word>(r, i, groups, [](Word x, Word y) { return y < 32 ? x >> (y & 31) : Word{}; });
    case SELECT_32: return select<Word, Word>(r, i, groups);
    case SELECT_64: return select<Wide, Half>(r, i, 2 * groups);
    case HASH: return hashed(r, i, groups);
    case ERF_INV_F32: return unary<Float, Float>(r, i, groups, [](Float x) { return inverse_error(x); });
    case EXP_F32: return unary<Float, Float>(r, i, groups, [](Float x) { return exponential(x); });
    case I32_F32: return unary<Float, Int>(r, i, groups, [](Int x) { return __builtin_convertvector(x, Float); });
    case U32_F32: return unary<Float, Word>(r, i, groups, [](Word x) { return __builtin_convertvector(x, Float); });
    case F32_I32: return unary<Int, Float>(r, i, groups, whole);
    case I32_F64: return unary<Double, Half>(r, i, 2 * groups, [](Half x) { return __builtin_convertvector(x, Double); });
    case F32_F64:
      return unary<Double, HalfFloat>(r, i, 2 * groups, [](HalfFloat x) { return __builtin_convertvector(x, Double); });
    case F64_F32:
      return unary<HalfFloat, Double>(r, i, 2 * groups, [](Double x) { return __builtin_convertvector(x, HalfFloat); });
  }
}

// An array of the worlds, of which each has a row.
struct Rows {
  char* data;
  int64_t stride;  // bytes from one row to the next
};

struct Arrays {
  std::vector<Rows> given, wanted;
};

// A program for the worlds from `begin` to `end`.
struct Program {
  const Instruction *begin, *end;
};

template <class Number, class Own, class Function>
static inline void load(const Rows& from, int32_t column, int64_t first, int64_t rows, Own* to, Function function) {
  const char* place = from.data + first * from.stride + column * sizeof(Number);
  if (from.stride == sizeof(Number)) {
    for (int64_t k = 0; k < rows; ++k) to[k] = function(reinterpret_cast<const Number*>(place)[k]);
  } else {
    for (int64_t k = 0; k < rows; ++k) to[k] = function(*reinterpret_cast<const Number*>(place + k * from.stride));
  }
}

template <class Number, class Own, class Function>
static inline void store(const Rows& to, int32_t column, int64_t first, int64_t rows, const Own* from, Function function) {
  char* place = to.data + first * to.stride + column * sizeof(Number);
  if (to.stride == sizeof(Number)) {
    for (int64_t k = 0; k < rows; ++k) reinterpret_cast<Number*>(place)[k] = function(from[k]);
  } else {
    for (int64_t k = 0; k < rows; ++k) *reinterpret_cast<Number*>(place + k * to.stride) = function(from[k]);
  }
}

static void copy(const Rows& to, const Rows& from, int64_t size, int64_t first, int64_t rows) {
  char* place = to.data + first * to.stride;
  const char* source = from.data + first * from.stride;
  if (to.stride == size && from.stride == size) {
    std::memcpy(place, source, rows * size);
  } else {
    for (int64_t k = 0; k < rows; ++k) std::memcpy(place + k * to.stride, source + k * from.stride, size);
  }
}

template <class Number>
static inline Number itself(Number number) {
  return number;
}

static inline int32_t mask_of(uint8_t truth) { return -int32_t(truth != 0); }
static inline uint8_t truth_of(int32_t mask) { return mask & 1; }

static inline bool any(const int32_t* mask, int64_t rows) {
  int32_t found = 0;
  for (int64_t k = 0; k < rows; ++k) found |= mask[k];
  return found;
}

// `rows` rows from `first` on of what an instruction loads or stores. Returns the number of instructions to leave out.
static inline int64_t move(Register* r, const Instruction& i, const Arrays& arrays, int64_t first, int64_t rows) {
  const std::vector<Rows>&given = arrays.given, &wanted = arrays.wanted;
  switch (i.op) {
    case LOAD_32: load<uint32_t>(given[i.a], i.b, first, rows, at<uint32_t>(r, i.to), itself<uint32_t>); return 0;
    case LOAD_64: load<uint64_t>(given[i.a], i.b, first, rows, at<uint64_t>(r, i.to), itself<uint64_t>); return 0;
    case LOAD_MASK: load<uint8_t>(given[i.a], i.b, first, rows, at<int32_t>(r, i.to), mask_of); return 0;
    case STORE_32: store<uint32_t>(wanted[i.a], i.b, first, rows, at<uint32_t>(r, i.to), itself<uint32_t>); return 0;
    case STORE_64: store<uint64_t>(wanted[i.a], i.b, first, rows, at<uint64_t>(r, i.to), itself<uint64_t>); return 0;
    case STORE_MASK: store<uint8_t>(wanted[i.a], i.b, first, rows, at<int32_t>(r, i.to), truth_of); return 0;
    case COPY: copy(wanted[i.b], given[i.a], i.to, first, rows); return 0;
    case JUMP: return i.a - 1;
    case JUMP_IF_NONE: return any(at<int32_t>(r, i.to), rows) ? 0 : i.a - 1;
    case FILL_32:
      for (int64_t g = 0; g < BLOCK / GROUP; ++g) at<Int>(r, i.to)[g] = Int{} + i.a;
      return 0;
    case FILL_64:
      for (int64_t g = 0; g < 2 * BLOCK / GROUP; ++g) at<Wide>(r, i.to)[g] = Wide{} + (int64_t(i.b) << 32 | uint32_t(i.a));
      return 0;
  }
  return 0;
}

// Run a program, which has so many registers, for the worlds from `begin` to `end`.
static void run(const Program& program, int64_t registers, const Arrays& arrays, int64_t begin, int64_t end) {
  static thread_local std::vector<Register> memory;
  if (int64_t(memory.size()) < registers) memory.resize(registers);
  Register* r = memory.data();
  for (int64_t first = begin; first < end; first += BLOCK) {
    const int64_t rows = std::min(BLOCK, end - first), groups = (rows + GROUP - 1) / GROUP;
    for (const Instruction* i = program.begin; i < program.end; ++i) {
      if (i->op > HIGHEST_OF_REGISTERS) i += move(r, *i, arrays, first, rows);
      else operate(r, *i, groups);
    }
  }
}

}  // namespace lanes
