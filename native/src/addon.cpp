#include "addon.h"

#include <new>
#include <stdexcept>
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

std::string textOfException(const char* function) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return std::string(function) + ": out of memory";
  } catch (const std::length_error&) {
    return std::string(function) + ": out of memory: more elements than any memory holds";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return std::string(function) + ": failed for an unknown reason";
  }
}

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
