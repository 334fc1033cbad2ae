#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace petrel {
namespace {

constexpr size_t kPage = 4096;

size_t roundToPages(size_t bytes) { return bytes == 0 ? kPage : (bytes + kPage - 1) / kPage * kPage; }

/** Throws std::runtime_error. */
void* map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("cannot map " + std::to_string(bytes >> 20) + " MiB of memory");
  return p;
}

/** The block's last byte lies before a page without access. */
void* mapBeforeGuard(size_t bytes) {
  const size_t usable = roundToPages(bytes);
  char* const base = static_cast<char*>(map(usable + kPage));
  if (mprotect(base + usable, kPage, PROT_NONE) != 0) {
    munmap(base, usable + kPage);
    throw std::runtime_error("cannot protect a guard page");
  }
  return base + usable - bytes;
}

void unmapWithGuard(void* data, size_t bytes) {
  const size_t usable = roundToPages(bytes);
  munmap(static_cast<char*>(data) + bytes - usable, usable + kPage);
}

}  // namespace

bool guardPages() {
  static const bool on = [] {
    const char* wanted = std::getenv("PETREL_GUARD_PAGES");
    return wanted != nullptr && std::string(wanted) == "1";
  }();
  return on;
}

Mapping::Mapping(size_t bytes) {
  if (bytes > (size_t(1) << 62))
    throw std::runtime_error("cannot map " + std::to_string(bytes >> 20) + " MiB of memory");
  if (guardPages()) {
    data_ = mapBeforeGuard(bytes);
    bytes_ = bytes;
    return;
  }
  bytes_ = roundToPages(bytes);
  data_ = map(bytes_);
  if (bytes_ >= (size_t(4) << 20)) madvise(data_, bytes_, MADV_HUGEPAGE);  // A hint; a refusal costs only speed.
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    release();
    data_ = other.data_;
    bytes_ = other.bytes_;
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  return *this;
}

void Mapping::release() {
  if (data_ != nullptr && guardPages()) unmapWithGuard(data_, bytes_);
  else if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

void* takeKernelMemory(size_t bytes) { return guardPages() ? mapBeforeGuard(bytes) : ::operator new(bytes); }

void giveKernelMemory(void* data, size_t bytes) noexcept {
  if (guardPages()) unmapWithGuard(data, bytes);
  else ::operator delete(data);
}

void* Arena::take(size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const size_t most = guardPages() ? bytes : 2 * bytes + 65536;
    if (block.used || block.memory.bytes() < bytes || block.memory.bytes() > most) continue;
    if (best == nullptr || block.memory.bytes() < best->memory.bytes()) best = &block;
  }
  if (best == nullptr) {
    blocks_.push_back({Mapping(bytes), false});
    best = &blocks_.back();
  }
  best->used = true;
  return best->memory.data();
}

void Arena::give(void* data) {
  for (Block& block : blocks_) {
    if (block.memory.data() == data) block.used = false;
  }
}

size_t Arena::bytes() const {
  size_t sum = 0;
  for (const Block& block : blocks_) sum += block.memory.bytes();
  return sum;
}

void Arena::release() { blocks_.clear(); }

}  // namespace petrel
