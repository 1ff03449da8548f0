// The threads that run kernels: the caller and num_threads - 1 workers, entered together, kept in step by a barrier.
//
// While a job runs nobody sleeps: a step has hundreds of barriers a few microseconds apart. Between jobs the workers spin
// shortly (the next step usually comes at once) and then sleep, so an idle engine leaves its cores to the HTTP process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels.h"

namespace octavo {

class ThreadPool {
 public:
  // A job runs on every thread at once, with that thread's context; it may call `barrier`.
  using Job = void (*)(void* argument, ThreadPool& pool, const ThreadContext& context);

  // Throws when there is not enough memory or the system gives no more threads.
  explicit ThreadPool(int32_t num_threads);
  // Not in a forked child: what the workers wait on cannot be taken down without them.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t num_threads() const { return static_cast<int32_t>(contexts_.size()); }

  // Whether this process is a child of the one that has the workers.
  bool forked() const;

  // Returns when every thread has left the job. One caller at a time; in a forked child, whose workers are gone, the
  // caller runs the job alone.
  void run(Job job, void* argument);

  // Every thread of the running job waits here for the others; then the claim counter is zero again.
  void barrier();

 private:
  struct FreeScratch {
    void operator()(std::byte* scratch) const;
  };

  void work(int32_t thread);
  void stop();
  bool wait_for_job(uint32_t seen);

  std::vector<ThreadContext> contexts_;
  std::vector<std::unique_ptr<std::byte, FreeScratch>> scratch_;
  std::vector<std::thread> workers_;
  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Job job_ = nullptr;
  void* argument_ = nullptr;
  int32_t running_ = 1;  // threads in the running job
  const int owner_;      // process id
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int32_t> sleepers_{0};
  alignas(64) std::atomic<int32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  alignas(64) std::atomic<int32_t> next_{0};
};

}  // namespace octavo
