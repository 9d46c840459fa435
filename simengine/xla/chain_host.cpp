// XLA's custom call for a function that makes the engine's steps and computes something before and after them for each
// world, such as a step of an environment. `simengine_envs/lanes/chain.py` writes it.
//
//   arrays that XLA gives ---> program 0 ---> steps 0 ---> program 1 ---> ... ---> last program ---> results
//
// A thread takes a shard of the worlds through all of this, since no world needs another one. Program k stores into the
// memory of steps k, and later ones load from it. No rows are loaded after their place has results, since only the last
// program stores these, and it loads the rows of a block before it stores any.

namespace chain {

// Calls of the engine's steps of one kind.
struct Stage {
  int64_t kind;
  const Memory* memory;
  std::unique_ptr<int32_t[]> mask;  // of the worlds that they work on, if they choose
};

struct Chain {
  std::vector<Stage> stages;
  lanes::Arrays arrays;
  std::vector<lanes::Program> programs;
  int64_t registers;

  int64_t worlds() const {
    const Memory& memory = *stages[0].memory;
    return memory.shards[memory.num_shards - 1].end;
  }

  // Whether all steps have the same shards. Another number of processors makes others.
  bool has_same_shards() const {
    const Memory& one = *stages[0].memory;
    for (const Stage& stage : stages) {
      if (stage.memory->num_shards != one.num_shards) return false;
      for (int64_t s = 0; s < one.num_shards; ++s) {
        if (stage.memory->shards[s].end != one.shards[s].end) return false;
      }
    }
    return true;
  }

  // Take the worlds from `begin` to `end` through all programs and steps: those of shard s, or of all shards if it is -1.
  bool run(int64_t s, int64_t begin, int64_t end, std::string& why) const {
    for (size_t k = 0; k < stages.size(); ++k) {
      lanes::run(programs[k], registers, arrays, begin, end);
      const Stage& stage = stages[k];
      const int64_t first = s < 0 ? 0 : s, last = s < 0 ? stage.memory->num_shards : s + 1;
      for (int64_t own = first; own < last; ++own) {
        if (stage.mask && choose(*stage.memory, own, stage.mask.get()) == 0) continue;
        if (!run_shard(stage.kind, *stage.memory, own, why)) return false;
      }
    }
    lanes::run(programs.back(), registers, arrays, begin, end);
    return true;
  }

  void add_fields(std::vector<lanes::Rows>& rows, const Field* fields, int64_t number) {
    for (int64_t i = 0; i < number; ++i) rows.push_back({fields[i].data, fields[i].stride});
  }

  // Find all arrays: those of XLA, then those of the steps. `rows` is the number of worlds.
  ffi::Error find_arrays(ffi::RemainingArgs& given, ffi::RemainingRets& wanted, int64_t rows) {
    size_t inputs = 0, outputs = 0;
    for (const Stage& stage : stages) {
      inputs += stage.memory->num_inputs + 1;
      outputs += stage.memory->num_outputs;
    }
    arrays.given.reserve(given.size() + outputs);
    arrays.wanted.reserve(wanted.size() + inputs);
    for (size_t i = 0; i < given.size(); ++i) {
      auto array = given.get<ffi::AnyBuffer>(i);
      if (!array.has_value()) return array.error();
      arrays.given.push_back({static_cast<char*>(array->untyped_data()), int64_t(array->size_bytes()) / rows});
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto array = wanted.get<ffi::AnyBuffer>(i);
      if (!array.has_value()) return array.error();
      arrays.wanted.push_back({static_cast<char*>((*array)->untyped_data()), int64_t((*array)->size_bytes()) / rows});
    }
    for (Stage& stage : stages) {
      const Memory& memory = *stage.memory;
      add_fields(arrays.given, memory.outputs, memory.num_outputs);
      add_fields(arrays.wanted, memory.inputs, memory.num_inputs);
      if (memory.chosen) {
        stage.mask.reset(new int32_t[rows]);
        arrays.wanted.push_back({reinterpret_cast<char*>(stage.mask.get()), sizeof(int32_t)});
      }
    }
    return ffi::Error::Success();
  }

  // Read [registers, number of instructions of each program..., instruction...].
  void find_programs(const int32_t* text) {
    registers = text[0];
    const size_t number = stages.size() + 1;
    const lanes::Instruction* at = reinterpret_cast<const lanes::Instruction*>(text + 1 + number);
    for (size_t k = 0; k < number; ++k) {
      programs.push_back({at, at + text[1 + k]});
      at += text[1 + k];
    }
  }
};

// Run a chain whose memories are taken.
static ffi::Error run(ffi::ThreadPool& pool, Chain& chain, int64_t number) {
  const Memory& memory = *chain.stages[0].memory;
  for (const Stage& stage : chain.stages) clear(*stage.memory);
  const bool same = chain.has_same_shards();
  const int64_t worlds = chain.worlds(), threads = threads_for(number, same ? most_threads(pool, memory) : 1, -1);
  const bool whole = !same || (threads == 1 && worlds <= lanes::BLOCK);
  const Chain* known = &chain;
  auto work = std::make_shared<Work>(whole ? 1 : memory.num_shards, [=](int64_t s, std::string& why) {
    const Shard* shards = known->stages[0].memory->shards;
    return whole ? known->run(-1, 0, worlds, why) : known->run(s, shards[s].begin, shards[s].end, why);
  });
  const auto began = std::chrono::steady_clock::now();
  Work::run_on(threads, expected_duration(number), work);
  note_duration(number, threads, -1, std::chrono::steady_clock::now() - began);
  return work->failed ? ffi::Error::Internal(work->why) : ffi::Error::Success();
}

static ffi::Error call(ffi::ThreadPool pool, ffi::RemainingArgs given, ffi::RemainingRets wanted,
                       ffi::Span<const int64_t> kinds, int64_t number, ffi::Span<const int32_t> program) {
  Chain chain;
  std::string why;
  size_t entered = 0;
  for (; entered < kinds.size() && why.empty(); ++entered) {
    const Memory* memory = take(kinds[entered], why);
    if (memory) chain.stages.push_back({kinds[entered], memory, nullptr});
  }
  ffi::Error error = ffi::Error::Success();
  if (chain.stages.size() < kinds.size()) {
    error = ffi::Error::Internal(why);
  } else {
    chain.find_programs(program.begin());
    error = chain.find_arrays(given, wanted, chain.worlds());
    if (error.success()) error = run(pool, chain, number);
  }
  for (const Stage& stage : chain.stages) give_back(stage.kind, stage.memory);
  for (size_t k = 0; k < entered; ++k) leave(kinds[k]);
  return error;
}

}  // namespace chain

XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_chain, chain::call,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<ffi::Span<const int64_t>>("kinds")
                                  .Attr<int64_t>("number")
                                  .Attr<ffi::Span<const int32_t>>("program"));
