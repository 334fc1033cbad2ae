// engineInfo(): what this build is and what this machine gives it. ticks(): whether any engine of this process moves.
#include <sched.h>

#include "addon.h"
#include "build_hash.h"
#include "crew.h"
#include "isa.h"

namespace petrel {
namespace {

/** Number of processors that this process may use. */
int processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return CPU_COUNT(&allowed);
}

Napi::Value engineInfo(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("isa", isaName(isa()));
  result.Set("bf16", isa() >= Isa::avx512_bf16);
  result.Set("build", PETREL_BUILD);
  result.Set("addedFlags", PETREL_ADDED_FLAGS);
  result.Set("threads", processors());
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
