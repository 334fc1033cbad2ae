// The kernels: single-threaded, no allocation, no standard library inside. Callers (ops/, generation) split the work
// over threads. Every sum below has one order that depends neither on how many rows are computed together nor on the
// instruction set; RULES.md states it. Legend: hd = headDim; a page = 16 positions of keys or values.
#pragma once
#include <stdint.h>

namespace petrel {

constexpr int kPanel = 16;          // columns of a packed panel, positions of a K/V page
constexpr int kAttentionRows = 12;  // most query rows of one attention tile

/**
 * C[m,n] = A·B, or C += A·B: per element one accumulator per block of 128 k, fma over k ascending, blocks added in
 * order. A(i,k) = a[i·aRow + k·aK]. B(k, 16p + j) = b[p·bPanel + k·bRow + j]: packed panels (bPanel = K·16, bRow = 16)
 * or plain rows (bPanel = 16, bRow = leading dimension). Never reads or writes past column n. With a null-terminated
 * choice of `panels` (pointers, one per panel) in place of b, panels may lie anywhere.
 */
struct GemmBlock {
  int64_t m, n, k;
  const float* a;
  int64_t aRow, aK;
  const float* b;
  int64_t bPanel, bRow;
  const float* const* panels;
  float* c;
  int64_t ldc;
  bool accumulate;
};

/**
 * Causal attention of up to 12 query rows that look at the same keys and values (heads of a group, or positions in
 * turn). Row r sees positions max(0, p − window + 1) … p with p = position[r] (window 0: from 0). Scores: fma over d
 * ascending; weights exp((s − max)·scale); their sum by lane position % 16, then the fixed tree; output: fma over
 * positions ascending, then one division. Per row the bits do not depend on the other rows. Memory of pages past a
 * row's position is read but without effect, so it must be initialised and finite.
 */
struct AttentionTile {
  int rows;
  int headDim;
  int window;
  float scale;
  float softcap;               // c > 0: scores are c·tanh(s·scale / c); 0: s·scale
  const float* const* q;       // per row: headDim floats, rope applied
  const int32_t* position;     // per row
  float* const* out;           // per row: headDim floats
  float* lse;                  // per row: log-sum-exp of the scaled scores; may be null
  const float* const* kPages;  // page i: positions 16i … 16i+15 as [hd][16]
  const float* const* vPages;  // page i: [16][hd]
  float* scratch;              // attentionScratch(...) floats
};
inline int64_t attentionScratch(int headDim, int64_t longest) {
  return kAttentionRows * ((longest + kPanel - 1) / kPanel * kPanel + headDim);
}

/**
 * What softmax(z·scale) needs: max of z·scale, Σ exp(z·scale − max), Σ exp(…)·(z·scale − max). Sums by lane i % 16,
 * then the tree.
 */
struct SoftmaxSums {
  float max, sum, weighted;
};

/** Scalars of one AdamW step; the caller has folded the bias corrections in. */
struct AdamScalars {
  float beta1, beta2, oneMinusBeta1, oneMinusBeta2 /* rounded from double */, eps, decay /* 1 − lr·wd */,
      stepSize /* lr / (1 − β1^t) */, rootCorrection /* 1 / sqrt(1 − β2^t) */, gradScale;
};

/** Gives bytes [from, from + bytes) of a message, in ascending order and at most 16 KiB at a time. */
struct MessageSource {
  void (*read)(const void* of, int64_t from, int64_t bytes, uint8_t* into);
  const void* of;
};

struct Kernels {
  void (*gemm)(const GemmBlock& block);
  void (*attention)(const AttentionTile& tile);

  /** dst panels [ceil(n/16)][k][16] from src[k][n] with leading dimension ld; missing columns become 0. */
  void (*packRows)(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);
  /**
   * dst panels [ceil(n/16)][k][16] from src[n][k] with leading dimension ld (a weight [out,in] gives the panels of
   * W^T).
   */
  void (*packColumns)(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);

  /** y = x·rstd·(w + offset) with rstd = 1/sqrt(mean(x²) + eps); returns rstd. y may be x. */
  float (*rmsNorm)(const float* x, const float* w, float offset, int64_t n, float eps, float* y);
  /** Backward pass with u = w + offset: dx += rstd·(dy·u − xhat·mean(dy·u·xhat)); dw += dy·xhat. `dw` may be null. */
  void (*rmsNormBackward)(const float* x, const float* w, float offset, float rstd, const float* dy, int64_t n,
                          float* dx, float* dw);

  /** Rotates one head in place: pairs (i, i + hd/2); cosine and sine have hd/2 values; sign −1 turns back. */
  void (*rope)(float* head, int64_t headDim, const float* cosine, const float* sine, float sign);

  /** y = silu(gate)·up. */
  void (*swiglu)(const float* gate, const float* up, int64_t n, float* y);
  /** dGate and dUp from dY; they may overwrite gate and up. Writes y too when it is not null. */
  void (*swigluBackward)(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp,
                         float* y);
  /** The same with gelu in its tanh form: x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2. */
  void (*geglu)(const float* gate, const float* up, int64_t n, float* y);
  void (*gegluBackward)(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp,
                        float* y);

  /** z = cap·tanh(z·scale / cap) in place. */
  void (*softcap)(float* z, int64_t n, float scale, float cap);
  /** dz ·= 1 − (capped / cap)². */
  void (*softcapBackward)(float* dz, const float* capped, int64_t n, float cap);

  void (*addInto)(float* y, const float* x, int64_t n);        // y += x
  void (*axpy)(float* y, float a, const float* x, int64_t n);  // y = fma(a, x, y)
  float (*dot)(const float* x, const float* y, int64_t n);     // by lane i % 16, then the tree
  void (*toBf16)(const float* src, int64_t n, uint16_t* dst);  // nearest even
  void (*fromBf16)(const uint16_t* src, int64_t n, float* dst);

  SoftmaxSums (*softmaxSums)(const float* z, int64_t n, float scale);
  /** Σ exp(z·scale − max)², by lane i % 16, then the tree. */
  float (*softmaxSquares)(const float* z, int64_t n, float scale, float max);
  /**
   * dz_i = (−c·p_i − e·p_i·(log p_i + entropy))·scale with p = softmax(z·scale), log p_i = z_i·scale − max − logSum;
   * overwrites z.
   */
  void (*softmaxBackward)(float* z, int64_t n, float scale, float max, float logSum, float entropy, float c, float e);

  /**
   * Computes in place p = exp(s·scale − lse), ds = p·(dp − delta)·scale for columns [from, to); both are 0 elsewhere up
   * to n. With a softcap c: p = exp(c·t − lse), ds = p·(dp − delta)·(1 − t²)·scale, t = tanh(s·scale / c).
   */
  void (*attentionGrad)(float* s, float* dp, int64_t n, int64_t from, int64_t to, float scale, float softcap, float lse,
                        float delta);

  /** Σ g² in double: lanes by i % 16 of double accumulators in order, then the tree. */
  double (*sumSquares)(const float* g, int64_t n);
  /** One AdamW update; sets g to 0. */
  void (*adamw)(float* p, float* g, float* m, float* v, int64_t n, const AdamScalars& s);

  /** digest[32]: BLAKE3 of a message. */
  void (*blake3)(const uint8_t* message, int64_t bytes, uint8_t* digest);
  /** The same of a message that is nowhere in memory as a whole. */
  void (*blake3Of)(const MessageSource& source, int64_t bytes, uint8_t* digest);
};

/** The table of the path in use. */
const Kernels& kernels();

/** Natural logarithm by double arithmetic in a fixed order: the same bits on every machine (a libm's may differ). */
float fixedLog(float x);

}  // namespace petrel
