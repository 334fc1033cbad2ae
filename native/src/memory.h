// Memory of the engine: anonymous page-aligned mappings. Nothing of size goes through malloc, so steps neither map,
// unmap nor fault pages anew.
//
// With PETREL_GUARD_PAGES=1, for tests, every block ends where a page without access begins: a kernel that reads or
// writes one element too many gets SIGSEGV. Sanitizers do not see vector instructions with masks; these pages stop them
// too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace petrel {

/** Whether PETREL_GUARD_PAGES=1. Read once per process. */
bool guardPages();

/** One zero-filled anonymous mapping. Movable, not copyable. */
class Mapping {
 public:
  Mapping() = default;
  /** Throws std::runtime_error naming the size when there is no room for it. */
  explicit Mapping(size_t bytes);
  ~Mapping() { release(); }
  Mapping(Mapping&& other) noexcept { *this = static_cast<Mapping&&>(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  void release();
  void* data() const { return data_; }
  /** Bytes that may be used: whole pages, or exactly those asked for where guard pages are on. */
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/** Allocator of vectors that kernels read or write: malloc, or a Mapping of its own where guard pages are on. */
template <class T>
struct KernelMemory {
  using value_type = T;
  KernelMemory() = default;
  template <class U>
  KernelMemory(const KernelMemory<U>&) {}
  T* allocate(size_t n);
  void deallocate(T* data, size_t n);
  template <class U>
  bool operator==(const KernelMemory<U>&) const {
    return true;
  }
  template <class U>
  bool operator!=(const KernelMemory<U>&) const {
    return false;
  }
};
template <class T>
using KernelVector = std::vector<T, KernelMemory<T>>;

void* takeKernelMemory(size_t bytes);
void giveKernelMemory(void* data, size_t bytes) noexcept;
template <class T>
T* KernelMemory<T>::allocate(size_t n) {
  return static_cast<T*>(takeKernelMemory(n * sizeof(T)));
}
template <class T>
void KernelMemory<T>::deallocate(T* data, size_t n) {
  giveKernelMemory(data, n * sizeof(T));
}

/**
 * Blocks handed out in any order and taken back in any order; freed blocks are kept and reused by size class
 * (the smallest kept block that is large enough and at most twice as large; with guard pages, one of the same size).
 * Page-aligned, but with guard pages aligned to the element only. Contents are undefined.
 */
class Arena {
 public:
  void* take(size_t bytes);
  void give(void* block);
  /** Bytes mapped in all. */
  size_t bytes() const;
  void release();

 private:
  struct Block {
    Mapping memory;
    bool used;
  };
  std::vector<Block> blocks_;
};

/** A typed loan from an arena, given back at the end of its scope. */
template <class T>
class Loan {
 public:
  Loan() = default;
  Loan(Arena& arena, size_t count)
      : arena_(&arena), data_(static_cast<T*>(arena.take(count * sizeof(T)))), count_(count) {}
  ~Loan() {
    if (arena_ && data_) arena_->give(data_);
  }
  Loan(Loan&& o) noexcept { *this = static_cast<Loan&&>(o); }
  Loan& operator=(Loan&& o) noexcept {
    if (this != &o) {
      if (arena_ && data_) arena_->give(data_);
      arena_ = o.arena_;
      data_ = o.data_;
      count_ = o.count_;
      o.arena_ = nullptr;
      o.data_ = nullptr;
      o.count_ = 0;
    }
    return *this;
  }
  T* data() const { return data_; }
  operator T*() const { return data_; }
  size_t size() const { return count_; }

 private:
  Arena* arena_ = nullptr;
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace petrel
