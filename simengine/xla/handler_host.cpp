// XLA's custom call on a CPU: copies the state into the engine's memory, runs the programs of all shards, and copies the
// new state and derived fields out.

// Time that calls of steps have taken [ns], copies included.
static std::atomic<int64_t> time_of_steps{0};

extern "C" int64_t simengine_time_of_steps() { return time_of_steps; }

static void copy(char* to, int64_t to_stride, const char* from, int64_t from_stride, const Field& field) {
  if (to_stride == field.bytes && from_stride == field.bytes) {
    std::memcpy(to, from, field.rows * field.bytes);
    return;
  }
  for (int64_t i = 0; i < field.rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, field.bytes);
}

static ffi::Error step_once(ffi::ThreadPool& pool, ffi::RemainingArgs& arguments, ffi::RemainingRets& results,
                            int64_t kind) {
  std::string why;
  const auto called = std::chrono::steady_clock::now();
  const Memory* memory = take(kind, why);
  if (memory == nullptr) return ffi::Error::Internal(why);
  int64_t chosen = -1;  // number of worlds that it works on, if it chooses
  if (memory->chosen) {
    chosen = 0;
    auto given = arguments.get<ffi::AnyBuffer>(memory->num_inputs);
    if (!given.has_value()) return given.error();
    const int32_t* mask = static_cast<const int32_t*>(given->untyped_data());
    for (int64_t s = 0; s < memory->num_shards; ++s) chosen += choose(*memory, s, mask);
    if (chosen == 0) {
      for (int64_t i = 0; i < memory->num_outputs; ++i) {
        auto wanted = results.get<ffi::AnyBuffer>(i);
        if (!wanted.has_value()) return wanted.error();
        std::memset((*wanted)->untyped_data(), 0, (*wanted)->size_bytes());
      }
      give_back(kind, memory);
      return ffi::Error::Success();
    }
  }
  for (int64_t i = 0; i < memory->num_inputs; ++i) {
    auto given = arguments.get<ffi::AnyBuffer>(i);
    if (!given.has_value()) return given.error();
    const Field& field = memory->inputs[i];
    if (int64_t(given->size_bytes()) != field.rows * field.bytes) {
      give_back(kind, memory);
      return ffi::Error::InvalidArgument("an argument of simengine's step has another size than it was traced with");
    }
    copy(field.data, field.stride, static_cast<const char*>(given->untyped_data()), field.bytes, field);
  }
  clear(*memory);
  auto work = std::make_shared<Work>(
      memory->num_shards, [=](int64_t s, std::string& text) { return run_shard(kind, *memory, s, text); });
  const int64_t threads = threads_for(kind, most_threads(pool, *memory), chosen);
  const auto began = std::chrono::steady_clock::now();
  Work::run_on(threads, expected_duration(kind), work);
  note_duration(kind, threads, chosen, std::chrono::steady_clock::now() - began);
  for (int64_t i = 0; i < memory->num_outputs && !work->failed; ++i) {
    auto wanted = results.get<ffi::AnyBuffer>(i);
    if (!wanted.has_value()) return wanted.error();
    const Field& field = memory->outputs[i];
    copy(static_cast<char*>((*wanted)->untyped_data()), field.bytes, field.data, field.stride, field);
  }
  give_back(kind, memory);
  if (chosen < 0) time_of_steps += std::chrono::nanoseconds(std::chrono::steady_clock::now() - called).count();
  return work->failed ? ffi::Error::Internal(work->why) : ffi::Error::Success();
}

static ffi::Error step(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results, int64_t kind) {
  ffi::Error error = step_once(pool, arguments, results, kind);
  leave(kind);
  return error;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_step, step,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets().Attr<int64_t>("kind"));
