// engineInfo(): what this build is and what this machine gives it. ticks(): whether any engine of this process moves.
#include <dnnl.h>
#include <omp.h>

#include "addon.h"
#include "build_hash.h"
#include "crew.h"
#include "isa.h"
#include "onednn.h"

namespace petrel {
namespace {

Napi::Value engineInfo(const Napi::CallbackInfo& info) {
  const dnnl_version_t* v = dnnl_version();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("isa", isaName(isa()));
  result.Set("bf16", isa() == Isa::avx512_bf16);
  result.Set("onednn", std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch));
  result.Set("matmul", oneDnnWanted() ? "onednn" : "own");
  result.Set("build", PETREL_BUILD);
  result.Set("threads", omp_get_num_procs());
  return result;
}

Napi::Value ticks(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(workTicks()));
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<engineInfo>(env, exports, "engineInfo");
  expose<ticks>(env, exports, "ticks");
});

}  // namespace
}  // namespace petrel
