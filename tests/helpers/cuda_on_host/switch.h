// Stacks of fibers, and the way from one fiber to another.
//
// `swapcontext` asks the kernel to change the mask of signals, twice for each turn of a fiber. On x86-64 a few
// instructions do without that: they keep the registers that a function must keep, and change the stack.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#define STACK_BYTES (1 << 19)  // without optimisation, functions need more

inline char* memory_of_stacks(int number) {
  return static_cast<char*>(mmap(nullptr, size_t(number) * STACK_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

#if defined(__x86_64__) && defined(__linux__)

struct Context {
  void* top;  // of the stack, where the kept registers are
};

extern "C" __attribute__((visibility("hidden"))) void switch_stacks(void** from, void* to);
asm(R"(
  .text
  .hidden switch_stacks
  .globl switch_stacks
  .type switch_stacks, @function
switch_stacks:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size switch_stacks, .-switch_stacks
)");

inline void go_from(Context* here, Context* there) { switch_stacks(&here->top, there->top); }

// The first turn of a fiber returns from `switch_stacks` to its function, which finds the stack as after a call.
inline void begin_with(Context* context, char* stack, void (*body)()) {
  const int kept = 6;
  void** end = reinterpret_cast<void**>(stack + STACK_BYTES);
  end[-1] = nullptr;  // where the function would return to
  end[-2] = reinterpret_cast<void*>(body);
  for (int i = 1; i <= kept; ++i) end[-2 - i] = nullptr;
  context->top = end - 2 - kept;
}

#else

#include <ucontext.h>

typedef ucontext_t Context;

inline void go_from(Context* here, Context* there) { swapcontext(here, there); }

inline void begin_with(Context* context, char* stack, void (*body)()) {
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = STACK_BYTES;
  context->uc_link = nullptr;
  makecontext(context, body, 0);
}

#endif
