// The team of threads: the calling thread and helpers that join in when they get to it. Work is handed out item by
// item, and a call returns when all items are done, not when all helpers have shown up: on a busy machine a helper that
// is not scheduled costs nothing but the item it holds. Which thread does an item never decides a sum.
#pragma once
#include <cstdint>
#include <type_traits>

namespace petrel {

/** Calls of `shareOut` that work began on since the process started, of all threads: a sign of life. Never blocks. */
uint64_t workTicks();

/**
 * Number of threads that work handed out by this thread uses from now on, itself included. Throws std::runtime_error
 * when the system starts no more threads; the calling thread then works alone.
 */
void useThreads(int threads);
int teamSize();

namespace crew {
using Function = void (*)(const void* context, int64_t from, int64_t to, int worker);
void run(int64_t n, int64_t chunk, Function function, const void* context);
}  // namespace crew

/**
 * f(item, worker) for items [0, n), `chunk` at a time, in any order; worker in [0, teamSize()) is the thread's own
 * place in the team, for scratch. Inside f it runs on the spot. When f throws, items that have not begun are left out,
 * and shareOut throws the first exception once no thread is inside f.
 */
template <class F>
void shareOut(int64_t n, int64_t chunk, F&& f) {
  using Body = std::remove_reference_t<F>;
  crew::run(
      n, chunk,
      [](const void* context, int64_t from, int64_t to, int worker) {
        const Body& body = *static_cast<const Body*>(context);
        for (int64_t i = from; i < to; ++i) body(i, worker);
      },
      &f);
}

}  // namespace petrel
