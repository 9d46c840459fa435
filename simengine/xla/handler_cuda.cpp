// XLA's custom call on a GPU: copies the state into the engine's memory, launches kept graphs and copies the new state
// and derived fields out, all on XLA's own stream. The host waits for nothing.
//
// The engine's memory is a `Memory`, one for each kind of call and device, which Python makes and keeps alive. Only the
// driver's interface is used, through the functions whose addresses it gives at run time, so that no CUDA header is
// needed.

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Stream = void*;

// An array of the engine: `rows` rows of `bytes` bytes, `stride` bytes apart.
struct Field {
  char* data;
  int64_t rows, bytes, stride;
};

struct Graph {
  void* handle;
  int64_t repeats;
};

struct Memory {
  const Field* inputs;
  int64_t num_inputs;
  const Field* outputs;
  int64_t num_outputs;
  const Graph* graphs;
  int64_t num_graphs;
  void* gather;   // kernels; see copies.cu
  void* scatter;
  int32_t* progress;       // flags of full arenas, which a call clears first and looks at last
  int64_t progress_words;
  void* event;             // behind the latest call, since the next one may be on another stream
  const int64_t* fallback;  // for each output the input that it keeps if an arena is full, or -1
  const Field* cleared;     // arrays that a call sets to zero first
  int64_t num_cleared;
  void* choose;             // kernel that lists the worlds a call works on; see copies.cu
  int32_t* chosen;          // the list, or null if it works on all
  int32_t* num_chosen;
  int64_t num_worlds;
};

// One array to copy, and where to find its words instead if an arena was full; see copies.cu.
struct Item {
  const char* from;
  const char* instead;
  char* to;
  int32_t rows, words, from_stride, to_stride, instead_stride, unused;
};

static const int MOST = 56;  // items of a launch, whose parameters may take 4 KB
struct Items {
  Item item[MOST];
};

// Python makes the memory of a kind on a device; null if it could not. Its text says why.
using Make = const Memory* (*)(int64_t kind, int64_t device, char* why, int64_t room);
static Make make_memory = nullptr;
static std::mutex guard;
static std::mutex issuing;  // launches of two calls must not interleave, and no call uses memory that is forgotten
static std::map<std::pair<int64_t, int64_t>, const Memory*> known;
static bool closed = false;  // guarded by `issuing`

extern "C" void simengine_set_callbacks(Make make) { make_memory = make; }

extern "C" void simengine_add(int64_t kind, int64_t device, const Memory* memory) {
  std::lock_guard<std::mutex> lock(guard);
  known[{kind, device}] = memory;
}

extern "C" void simengine_forget(int64_t kind) {
  std::lock_guard<std::mutex> none(issuing);
  std::lock_guard<std::mutex> lock(guard);
  for (auto at = known.begin(); at != known.end();) at = at->first.first == kind ? known.erase(at) : std::next(at);
}

// Wait for the call that is being issued, and let later ones fail. Python calls this before its interpreter ends. A
// thread that asks the interpreter for memory afterwards would never come back, and XLA would wait for it for ever.
extern "C" void simengine_close() {
  std::lock_guard<std::mutex> none(issuing);
  closed = true;
}

extern "C" int64_t simengine_most_items() { return MOST; }

template <typename F>
static F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}

using LaunchKernel = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,
                             void**);
using LaunchGraph = int (*)(void*, Stream);
using OnEvent = int (*)(void*, Stream);
using WaitEvent = int (*)(Stream, void*, unsigned);

static int launch(void* kernel, const Items& items, int64_t number, const Memory& memory, Stream stream) {
  static auto launch_kernel = driver<LaunchKernel>("cuLaunchKernel");
  int64_t most = 1;
  for (int64_t i = 0; i < number; ++i) most = std::max<int64_t>(most, int64_t(items.item[i].rows) * items.item[i].words);
  const unsigned blocks = unsigned(std::min<int64_t>(256, (most + 255) / 256));
  int32_t* progress = memory.progress;
  int32_t words = int32_t(memory.progress_words);
  void* parameters[] = {const_cast<Items*>(&items), &progress, &words};
  return launch_kernel(kernel, blocks, unsigned(std::max<int64_t>(1, number)), 1, 256, 1, 1, 0, stream, parameters, nullptr);
}

static int choose(const int32_t* mask, const Memory& memory, Stream stream) {
  static auto launch_kernel = driver<LaunchKernel>("cuLaunchKernel");
  int32_t number = int32_t(memory.num_worlds);
  int32_t *chosen = memory.chosen, *num_chosen = memory.num_chosen;
  void* parameters[] = {&mask, &number, &chosen, &num_chosen};
  return launch_kernel(memory.choose, 1, 1, 1, 1024, 1, 1, 0, stream, parameters, nullptr);
}

static ffi::Error failed(const char* what, int code) {
  return ffi::Error::Internal(std::string("CUDA reports error ") + std::to_string(code) + " while simengine " + what);
}

static ffi::Error step(Stream stream, int32_t device, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                       int64_t kind) {
  static auto launch_graph = driver<LaunchGraph>("cuGraphLaunch");
  static auto record = driver<OnEvent>("cuEventRecord");
  static auto wait = driver<WaitEvent>("cuStreamWaitEvent");
  std::lock_guard<std::mutex> alone(issuing);
  if (closed) return ffi::Error::Internal("simengine makes no more steps, because Python is ending");
  const Memory* memory = nullptr;
  {
    std::lock_guard<std::mutex> lock(guard);
    auto found = known.find({kind, device});
    if (found != known.end()) memory = found->second;
  }
  if (memory == nullptr) {
    char text[512] = "";
    memory = make_memory(kind, device, text, sizeof text);
    if (memory == nullptr) return ffi::Error::Internal(text);
  }
  Items in = {}, out = {};
  for (int64_t i = 0; i < memory->num_inputs; ++i) {
    auto given = arguments.get<ffi::AnyBuffer>(i);
    if (!given.has_value()) return given.error();
    const Field& field = memory->inputs[i];
    if (int64_t(given->size_bytes()) != field.rows * field.bytes) {
      return ffi::Error::InvalidArgument("an argument of simengine's step has another size than it was traced with");
    }
    const int32_t words = int32_t(field.bytes / 4);
    in.item[i] = {static_cast<const char*>(given->untyped_data()), nullptr, field.data, int32_t(field.rows), words, words,
                  int32_t(field.stride / 4), 0, 0};
  }
  for (int64_t i = 0; i < memory->num_cleared; ++i) {
    const Field& field = memory->cleared[i];
    const int32_t words = int32_t(field.bytes / 4);
    in.item[memory->num_inputs + i] = {nullptr, nullptr, field.data, int32_t(field.rows), words, words, words, 0, 0};
  }
  for (int64_t i = 0; i < memory->num_outputs; ++i) {
    auto wanted = results.get<ffi::AnyBuffer>(i);
    if (!wanted.has_value()) return wanted.error();
    const Field& field = memory->outputs[i];
    const int32_t words = int32_t(field.bytes / 4);
    const int64_t same = memory->fallback[i];
    const char* instead = same < 0 ? nullptr : in.item[same].from;
    out.item[i] = {field.data, instead, static_cast<char*>((*wanted)->untyped_data()), int32_t(field.rows), words,
                   int32_t(field.stride / 4), words, words, 0};
  }
  if (int code = wait(stream, memory->event, 0)) return failed("waits for its latest step", code);
  if (int code = launch(memory->gather, in, memory->num_inputs + memory->num_cleared, *memory, stream)) return failed("copies a state in", code);
  if (memory->chosen) {
    auto given = arguments.get<ffi::AnyBuffer>(memory->num_inputs);
    if (!given.has_value()) return given.error();
    if (int code = choose(static_cast<const int32_t*>(given->untyped_data()), *memory, stream)) {
      return failed("lists worlds", code);
    }
  }
  for (int64_t g = 0; g < memory->num_graphs; ++g) {
    for (int64_t repeat = 0; repeat < memory->graphs[g].repeats; ++repeat) {
      if (int code = launch_graph(memory->graphs[g].handle, stream)) return failed("launches a graph", code);
    }
  }
  if (int code = launch(memory->scatter, out, memory->num_outputs, *memory, stream)) {
    return failed("copies a state out", code);
  }
  if (int code = record(memory->event, stream)) return failed("records an event", code);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_step, step,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<Stream>>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<int64_t>("kind"));
