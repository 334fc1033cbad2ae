#include "onednn.h"

#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <stdexcept>
#include <string>

#include "isa.h"
#include "team.h"

namespace petrel {
namespace {

using dnnl::memory;
using Shape = std::array<int64_t, 7>;  // m, n, k, aRow, aK, ldc, accumulate

struct Product {
  dnnl::matmul primitive;
  memory::desc a, b, c;
  bool usable;
};

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

Product make(const Shape& s) {
  const auto [m, n, k, aRow, aK, ldc, accumulate] = s;
  Product p;
  p.a = memory::desc({m, k}, memory::data_type::bf16, memory::dims{aRow, aK});
  p.b = memory::desc({k, n}, memory::data_type::bf16, memory::format_tag::BA16a16b2a);
  p.c = memory::desc({m, n}, memory::data_type::f32, memory::dims{ldc, 1});
  dnnl::primitive_attr attributes;
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description(engine(), p.a, p.b, p.c, attributes);
  p.usable = std::string(description.impl_info_str()).rfind("ref", 0) != 0;
  if (p.usable) p.primitive = dnnl::matmul(description);
  return p;
}

/** Per thread: primitives hold scratch memory and must not run twice at once. */
Product& cached(const Shape& shape) {
  constexpr size_t kMost = 1024;
  static thread_local std::map<Shape, Product> cache;
  const auto found = cache.find(shape);
  if (found != cache.end()) return found->second;
  if (cache.size() >= kMost) cache.clear();
  return cache.emplace(shape, make(shape)).first->second;
}

bool hasTiles() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx; }

bool choose() {
  const char* wanted = std::getenv("PETREL_MATMUL");
  const std::string name = wanted == nullptr ? "" : wanted;
  if (name == "onednn") return isa() == Isa::avx512_bf16;
  if (name == "own") return false;
  if (!name.empty()) throw std::runtime_error("PETREL_MATMUL=" + name + " is unknown; it may be onednn or own");
  return isa() == Isa::avx512_bf16 && hasTiles();
}

}  // namespace

bool oneDnnWanted() {
  static const bool wanted = choose();
  return wanted;
}

bool oneDnnUsesAmx() { return oneDnnWanted() && hasTiles(); }

bool oneDnnProduct(int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t aRow, int64_t aK, const uint32_t* b,
                   float* c, int64_t ldc, bool accumulate) {
  static thread_local dnnl::stream stream(engine());
  Product& p = cached({m, n, k, aRow, aK, ldc, accumulate});
  if (!p.usable) return false;
  p.primitive.execute(stream, {{DNNL_ARG_SRC, memory(p.a, engine(), const_cast<uint16_t*>(a))},
                               {DNNL_ARG_WEIGHTS, memory(p.b, engine(), const_cast<uint32_t*>(b))},
                               {DNNL_ARG_DST, memory(p.c, engine(), c)}});
  stream.wait();
  return true;
}

void pairsProduct(const GemmPairs& g) {
  GemmPairs rest = g;
  if (oneDnnWanted() && g.pairs % 16 == 0 && g.aK == 1) {
    for (int64_t rows = 4096; rows >= 64; rows /= 2) {
      while (rest.m >= rows && oneDnnProduct(rows, g.n, 2 * g.pairs, reinterpret_cast<const uint16_t*>(rest.a),
                                             2 * g.aRow, 1, g.b, rest.c, g.ldc, g.accumulate)) {
        rest.m -= rows;
        rest.a += rows * g.aRow;
        rest.c += rows * g.ldc;
      }
    }
  }
  if (rest.m > 0) gemmPairsOnTeam(rest);
}

}  // namespace petrel
