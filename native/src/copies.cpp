#include "copies.h"

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "kernels_bf16.h"
#include "team.h"

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

void pairPanel(const Model& model, const Linear& linear, int64_t panel, uint32_t* dst) {
  const int64_t row = panel * kPanel, rows = std::min<int64_t>(kPanel, linear.out - row);
  const float* from[kPanel];
  for (int64_t r = 0; r < rows; ++r) from[r] = masterRow(model, linear, row + r);
  bf16Kernels().panelFromColumns(from, rows, linear.in, dst);
}

}  // namespace

void allocateCopies(const EngineOptions& options, Linear& l) {
  if (options.compute == ComputeType::fp32) {
    l.packed = Mapping(panels(l.out) * l.in * kPanel * sizeof(float));
  } else {
    l.pairs = Mapping(panels(l.out) * ((l.in + 1) / 2) * kPanel * sizeof(uint32_t));
  }
}

void refreshCopies(const Model& model, Linear& l) {
  const int64_t count = static_cast<int64_t>(panels(l.out));
  const bool fp32 = model.options.compute == ComputeType::fp32;
  forEachRow(count, [&](int64_t p) {
    if (fp32) packPanel(model, l, p, l.packed.as<float>() + p * l.in * kPanel);
    else pairPanel(model, l, p, l.pairs.as<uint32_t>() + p * ((l.in + 1) / 2) * kPanel);
  });
}

}  // namespace petrel
