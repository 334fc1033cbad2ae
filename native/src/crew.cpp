#include "crew.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "rounding.h"

namespace petrel {
namespace {

// A helper looks for work this long before it sleeps: longer than the gaps inside a step.
constexpr std::chrono::microseconds kPatience{100};
// What is left of another thread's item takes at most about this long while that thread runs.
constexpr std::chrono::microseconds kItemTime{1000};

constexpr uint64_t kItems = 0xffffffff;
using Clock = std::chrono::steady_clock;

class Crew {
 public:
  explicit Crew(int threads) {
    helpers_.reserve(static_cast<size_t>(threads));
    try {
      for (int worker = 1; worker < threads; ++worker) helpers_.emplace_back([this, worker] { help(worker); });
    } catch (const std::system_error& error) {
      const size_t started = helpers_.size() + 1;
      dismiss();  // a thread that is destroyed before it is joined ends the process
      throw std::runtime_error("cannot start thread " + std::to_string(started + 1) + " of " + std::to_string(threads) +
                               ": " + error.code().message());
    }
  }
  ~Crew() { dismiss(); }
  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  void run(int64_t n, int64_t chunk, crew::Function function, const void* context) {
    const uint64_t call = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    // First close the last call: a helper that has read its ticket must not claim with it once the new bounds are
    // visible.
    ticket_.store((call - 1) << 32 | kItems);
    n_.store(n, std::memory_order_release);
    chunk_.store(chunk, std::memory_order_release);
    function_.store(function, std::memory_order_release);
    context_.store(context, std::memory_order_release);
    done_.store(0, std::memory_order_release);
    ticket_.store(call << 32);
    if (sleeping_.load() > 0) wake();
    while (takeOne(0)) {}
    waitFor(n);
  }

 private:
  void dismiss() {
    stopping_.store(true);
    ticket_.fetch_add(kItems + 1);  // a new call, of nothing
    wake();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
  }

  /**
   * Claims and does one chunk of the current call; false when there is none left. The ticket holds the call's number
   * and the next item. When the exchange succeeds, the ticket has not moved since it was read: the call is not over,
   * and what was read of it in between is whole.
   */
  bool takeOne(int worker) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
      const int64_t from = static_cast<int64_t>(ticket & kItems), n = n_.load(std::memory_order_acquire);
      const int64_t chunk = chunk_.load(std::memory_order_acquire), to = from + chunk < n ? from + chunk : n;
      const crew::Function function = function_.load(std::memory_order_acquire);
      const void* context = context_.load(std::memory_order_acquire);
      if (from >= n) {
        const uint64_t again = ticket_.load(std::memory_order_acquire);
        if (again == ticket) return false;
        ticket = again;
        continue;
      }
      if (!ticket_.compare_exchange_weak(ticket, (ticket & ~kItems) | static_cast<uint64_t>(to),
                                         std::memory_order_acq_rel))
        continue;
      function(context, from, to, worker);
      done_.fetch_add(to - from, std::memory_order_release);
      return true;
    }
  }

  /** A helper at work is done soon; one that is not scheduled may be waiting for this very processor. */
  void waitFor(int64_t n) {
    if (done_.load(std::memory_order_acquire) == n) return;
    const Clock::time_point since = Clock::now();
    while (done_.load(std::memory_order_acquire) < n) {
      for (int i = 0; i < 32; ++i) _mm_pause();
      if (Clock::now() - since > kItemTime) sched_yield();
    }
  }

  void help(int worker) {
    const UsualRounding rounding;
    Clock::time_point idleSince = Clock::now();
    while (!stopping_.load(std::memory_order_relaxed)) {
      const uint64_t seen = ticket_.load(std::memory_order_acquire);
      if (takeOne(worker)) {
        idleSince = Clock::now();
        continue;
      }
      for (int i = 0; i < 16 && ticket_.load(std::memory_order_relaxed) == seen; ++i) _mm_pause();
      if (Clock::now() - idleSince < kPatience) continue;
      sleepUntilAfter(seen >> 32);
      idleSince = Clock::now();
    }
  }

  void sleepUntilAfter(uint64_t call) {
    const uint32_t before = bell_.load();
    sleeping_.fetch_add(1);
    if (ticket_.load() >> 32 == call && !stopping_.load())
      syscall(SYS_futex, &bell_, FUTEX_WAIT_PRIVATE, before, nullptr, nullptr, 0);
    sleeping_.fetch_sub(1);
  }

  void wake() {
    bell_.fetch_add(1);
    syscall(SYS_futex, &bell_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<int64_t> n_{0};
  std::atomic<int64_t> chunk_{1};
  std::atomic<crew::Function> function_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<bool> stopping_{false};
  std::atomic<int> sleeping_{0};
  std::atomic<uint32_t> bell_{0};
  std::vector<std::thread> helpers_;
};

alignas(64) std::atomic<uint64_t> ticks{0};

thread_local std::unique_ptr<Crew> crewOfThread;
thread_local int workerInside = -1;  // this thread's place while it does an item

struct Inside {
  int before;
  explicit Inside(int worker) : before(workerInside) { workerInside = worker; }
  ~Inside() { workerInside = before; }
};

}  // namespace

void useThreads(int threads) {
  if (threads == teamSize()) return;
  crewOfThread.reset();
  if (threads > 1) crewOfThread = std::make_unique<Crew>(threads);
}

uint64_t workTicks() { return ticks.load(std::memory_order_relaxed); }

int teamSize() { return crewOfThread ? crewOfThread->size() : 1; }

namespace crew {

struct Call {
  Function function;
  const void* context;
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the first item that failed

  Call(Function f, const void* c) : function(f), context(c) {}

  /**
   * An exception that left a helper's thread would end the process; one that left the caller's would free what helpers
   * use.
   */
  void doItems(int64_t from, int64_t to, int worker) {
    if (failed.load(std::memory_order_relaxed)) return;
    const Inside inside(worker);
    try {
      function(context, from, to, worker);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
};

void run(int64_t n, int64_t chunk, Function function, const void* context) {
  if (n <= 0) return;
  if (workerInside < 0) ticks.fetch_add(1, std::memory_order_relaxed);
  if (workerInside >= 0 || !crewOfThread || n <= chunk) {
    function(context, 0, n, workerInside < 0 ? 0 : workerInside);
    return;
  }
  Call call(function, context);
  crewOfThread->run(
      n, chunk,
      [](const void* data, int64_t from, int64_t to, int worker) {
        static_cast<Call*>(const_cast<void*>(data))->doItems(from, to, worker);
      },
      &call);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace crew
}  // namespace petrel
