// The C interface of the library, called through ctypes (native.py), which releases Python's lock for the call.
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "dispatch.h"
#include "pack.h"
#include "program.h"

#define OCTAVO_EXPORT extern "C" __attribute__((visibility("default")))

namespace octavo {
namespace {

// Threads, their kernels, and the room in which attention shares a long context.
struct Engine {
  ThreadPool pool;
  const KernelTable& kernels;
  std::byte* workspace;

  Engine(int32_t num_threads, const KernelTable& table)
      : pool(num_threads), kernels(table), workspace(map_zeros(kAttentionWorkspaceBytes)) {}
  ~Engine() {
    if (workspace != nullptr) munmap(workspace, kAttentionWorkspaceBytes);
  }

  static std::byte* map_zeros(size_t bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
  }
};

struct SampleJob {
  const Engine& engine;
  const SampleArgs& args;
};

void run_sample(void* argument, ThreadPool&, const ThreadContext& context) {
  const auto& job = *static_cast<const SampleJob*>(argument);
  job.engine.kernels.sample(job.args, context);
}

}  // namespace
}  // namespace octavo

using namespace octavo;

// Sizes of the structs that native.py mirrors: RunArgs, Op, SampleArgs.
OCTAVO_EXPORT void octavo_struct_sizes(int64_t* sizes) {
  sizes[0] = sizeof(RunArgs);
  sizes[1] = sizeof(Op);
  sizes[2] = sizeof(SampleArgs);
}

// 1 if this build and this machine have the instruction set (dispatch.h: Isa).
OCTAVO_EXPORT int32_t octavo_has_isa(int32_t isa) { return kernel_table(static_cast<Isa>(isa)) != nullptr; }

// Null without memory, without threads, or without the instruction set.
OCTAVO_EXPORT void* octavo_engine_create(int32_t num_threads, int32_t isa) {
  const KernelTable* kernels = kernel_table(static_cast<Isa>(isa));
  if (kernels == nullptr || num_threads < 1) return nullptr;
  try {
    return new Engine(num_threads, *kernels);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// A forked child leaves the engine as it is: it has none of the threads that would have to let go of it.
OCTAVO_EXPORT void octavo_engine_destroy(void* engine) {
  auto* self = static_cast<Engine*>(engine);
  if (!self->pool.forked()) delete self;
}

OCTAVO_EXPORT int64_t octavo_packed_bytes(int64_t n, int64_t k, int32_t dtype) {
  return packed_bytes(n, k, static_cast<Dtype>(dtype));
}

OCTAVO_EXPORT void octavo_pack_linear(const void* source, int64_t n, int64_t k, int32_t dtype, void* packed) {
  pack_linear(source, n, k, static_cast<Dtype>(dtype), packed);
}

// Weights are read from end to end every step: 2 MiB pages spare the address translation.
OCTAVO_EXPORT void octavo_advise_huge_pages(void* start, int64_t bytes) { madvise(start, bytes, MADV_HUGEPAGE); }

OCTAVO_EXPORT int32_t octavo_run(void* engine, const Op* ops, int32_t num_ops, RunArgs* args) {
  auto& self = *static_cast<Engine*>(engine);
  args->attention_workspace = self.workspace;
  args->attention_workspace_bytes = self.workspace != nullptr ? kAttentionWorkspaceBytes : 0;
  return static_cast<int32_t>(run_program(self.pool, self.kernels, ops, num_ops, *args));
}

OCTAVO_EXPORT void octavo_sample(void* engine, const SampleArgs* args) {
  auto& self = *static_cast<Engine*>(engine);
  SampleJob job = {self, *args};
  self.pool.run(run_sample, &job);
}
