// Starting, waking, keeping in step and ending the threads of the pool.
#include "thread_pool.h"

#include <immintrin.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <new>

namespace octavo {
namespace {

// At a barrier: about 20 us of pauses, then the core is offered to whoever waits for it, perhaps the thread we wait for.
constexpr int kBarrierSpins = 1000;
// Between jobs: longer than the engine needs from one step to the next.
constexpr auto kIdleSpin = std::chrono::microseconds(150);

}  // namespace

void ThreadPool::FreeScratch::operator()(std::byte* scratch) const { std::free(scratch); }

ThreadPool::ThreadPool(int32_t num_threads) : owner_(static_cast<int>(getpid())) {
  for (int32_t thread = 0; thread < num_threads; ++thread) {
    auto* scratch = static_cast<std::byte*>(std::aligned_alloc(64, kScratchBytes));
    if (scratch == nullptr) throw std::bad_alloc();
    scratch_.emplace_back(scratch);
    contexts_.push_back({thread, num_threads, &next_, scratch, kScratchBytes});
  }
  try {
    for (int32_t thread = 1; thread < num_threads; ++thread) workers_.emplace_back(&ThreadPool::work, this, thread);
  } catch (...) {  // the system gives no more threads; a running one must not meet its std::thread's destructor
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

bool ThreadPool::forked() const { return static_cast<int>(getpid()) != owner_; }

void ThreadPool::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Job job, void* argument) {
  const std::lock_guard<std::mutex> only_caller(callers_);
  next_.store(0, std::memory_order_relaxed);
  if (workers_.empty() || forked()) {
    running_ = 1;
    ThreadContext alone = contexts_[0];
    alone.num_threads = 1;
    job(argument, *this, alone);
    return;
  }
  running_ = num_threads();
  job_ = job;
  argument_ = argument;
  generation_.fetch_add(1);  // sequentially consistent with sleepers_: either we see the sleeper or it sees the job
  if (sleepers_.load() > 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  job(argument, *this, contexts_[0]);
  barrier();
}

void ThreadPool::barrier() {
  const int32_t running = running_;  // before arriving: after the last arrival the next `run` may write it
  if (running == 1) {
    next_.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == running) {
    arrived_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
    if (spins < kBarrierSpins) {
      _mm_pause();
    } else {
      sched_yield();
    }
  }
}

void ThreadPool::work(int32_t thread) {
  uint32_t seen = 0;
  while (wait_for_job(seen)) {
    seen = generation_.load(std::memory_order_acquire);
    job_(argument_, *this, contexts_[thread]);
    barrier();
  }
}

// True when there is a job newer than `seen`, false when the pool stops.
bool ThreadPool::wait_for_job(uint32_t seen) {
  const auto deadline = std::chrono::steady_clock::now() + kIdleSpin;
  while (std::chrono::steady_clock::now() < deadline) {
    for (int spins = 0; spins < 16; ++spins) {
      if (generation_.load(std::memory_order_acquire) != seen) return true;
      _mm_pause();
    }
    if (stop_.load(std::memory_order_relaxed)) return false;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, [&] { return generation_.load() != seen || stop_.load(); });
  sleepers_.fetch_sub(1);
  return generation_.load() != seen;
}

}  // namespace octavo
