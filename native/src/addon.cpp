#include "addon.h"

#include <vector>

#include "isa.h"

namespace petrel {
namespace {

std::vector<RegisterFunction>& registered() {
  static std::vector<RegisterFunction> functions;
  return functions;
}

}  // namespace

Register::Register(RegisterFunction function) { registered().push_back(function); }

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  try {
    isa();  // Refuses a processor that the kernels cannot run on.
  } catch (const std::exception& error) {
    throw Napi::Error::New(env, error.what());
  }
  for (RegisterFunction function : registered()) function(env, exports);
  return exports;
}

}  // namespace petrel

static Napi::Object initialiseAddon(Napi::Env env, Napi::Object exports) { return petrel::initialise(env, exports); }
NODE_API_MODULE(petrel, initialiseAddon)
