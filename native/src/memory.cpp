#include "memory.h"

#include <sys/mman.h>

#include <stdexcept>
#include <string>

namespace petrel {
namespace {

size_t roundToPages(size_t bytes) {
  constexpr size_t page = 4096;
  return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

}  // namespace

Mapping::Mapping(size_t bytes) : bytes_(roundToPages(bytes)) {
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("cannot map " + std::to_string(bytes_ >> 20) + " MiB of memory");
  if (bytes_ >= (size_t(4) << 20)) madvise(p, bytes_, MADV_HUGEPAGE);  // A hint; a refusal costs only speed.
  data_ = p;
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
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

void* Arena::take(size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.used || block.memory.bytes() < bytes || block.memory.bytes() > 2 * bytes + 65536) continue;
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
