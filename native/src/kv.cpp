#include "kv.h"

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace petrel {

namespace {

size_t bytesOf(size_t pageBytes, int pages) {
  size_t bytes;
  if (__builtin_mul_overflow(pageBytes, size_t(pages), &bytes))
    throw std::runtime_error(std::to_string(pages) + " KV pages of " + std::to_string(pageBytes) +
                             " bytes exceed any memory");
  return bytes;
}

}  // namespace

PagePool::PagePool(KvShape shape, int pages)
    : shape_(shape), pageBytes_(shape.pageBytes()), memory_(bytesOf(pageBytes_, pages)), references_(size_t(pages), 0) {
  free_.reserve(size_t(pages));
  releaseAll();
}

void PagePool::releaseAll() noexcept {
  free_.clear();
  for (int page = total() - 1; page >= 0; page--) {
    references_[size_t(page)] = 0;
    free_.push_back(page);  // within the reserved capacity
  }
}

int PagePool::take() {
  if (free_.empty()) throw std::logic_error("no free KV page: admission must look first");
  const int page = free_.back();
  free_.pop_back();
  references_[size_t(page)] = 1;
  return page;
}

void PagePool::retain(int page) { references_[size_t(page)]++; }

void PagePool::release(int page) {
  if (references_[size_t(page)] <= 0) throw std::logic_error("KV page released twice");
  if (--references_[size_t(page)] == 0) free_.push_back(page);
}

void PagePool::copy(int from, int to) { std::memcpy(keys(to, 0, 0), keys(from, 0, 0), pageBytes_); }

void PagePool::wipe() {
  if (madvise(memory_.data(), memory_.bytes(), MADV_DONTNEED) != 0) std::memset(memory_.data(), 0, memory_.bytes());
}

}  // namespace petrel
