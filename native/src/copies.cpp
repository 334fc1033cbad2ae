#include "copies.h"

#include <algorithm>
#include <vector>

#include "kernels.h"

namespace petrel {
namespace {

size_t panels(int64_t out) { return static_cast<size_t>((out + kPanel - 1) / kPanel); }

/** The master row behind output column `row`. */
const float* masterRow(const Model& model, const Linear& linear, int64_t row) {
  const LinearPart* owner = nullptr;
  for (const LinearPart& part : linear.parts) {
    if (row >= part.column && row < part.column + part.rows) owner = &part;
  }
  return model.at(owner->weight) + (row - owner->column) * linear.in;
}

bool insideOnePart(const Linear& linear, int64_t row, int64_t rows) {
  for (const LinearPart& part : linear.parts) {
    if (row >= part.column && row + rows <= part.column + part.rows) return true;
  }
  return false;
}

/** One panel [in][16]. A panel that straddles two parameters is gathered row by row. */
void packPanel(const Model& model, const Linear& linear, int64_t panel, float* dst) {
  const int64_t row = panel * kPanel, rows = std::min<int64_t>(kPanel, linear.out - row);
  if (insideOnePart(linear, row, rows)) {
    kernels().packColumns(masterRow(model, linear, row), linear.in, linear.in, rows, dst);
    return;
  }
  std::vector<float> gathered(static_cast<size_t>(rows * linear.in));
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(masterRow(model, linear, row + r), linear.in, gathered.data() + r * linear.in);
  }
  kernels().packColumns(gathered.data(), linear.in, linear.in, rows, dst);
}

}  // namespace

void allocateCopies(const EngineOptions& options, Linear& l) {
  if (options.compute == ComputeType::fp32) {
    l.packed = Mapping(panels(l.out) * l.in * kPanel * sizeof(float));
  } else {
    l.bf16 = Mapping(static_cast<size_t>(l.out * l.in) * sizeof(uint16_t));
  }
}

void refreshCopies(const Model& model, Linear& l) {
  if (model.options.compute == ComputeType::fp32) {
    const int64_t count = static_cast<int64_t>(panels(l.out));
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < count; ++p) packPanel(model, l, p, l.packed.as<float>() + p * l.in * kPanel);
  } else {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < l.out; ++r) kernels().toBf16(masterRow(model, l, r), l.in, l.bf16.as<uint16_t>() + r * l.in);
  }
}

}  // namespace petrel
