// How files add functions to the addon: a static `Register` object with a function that sets exports. Context-aware:
// the function runs once per environment (main thread, each worker_thread); no JavaScript state is global.
#pragma once
#include <napi.h>

#include <memory>
#include <string>
#include <type_traits>

#include "arguments.h"
#include "model.h"
#include "rounding.h"

namespace petrel {

using RegisterFunction = void (*)(Napi::Env, Napi::Object exports);
struct Register {
  explicit Register(RegisterFunction function);
};

/** The text for the C++ exception that is being handled. Call it only in a catch block. */
std::string textOfException(const char* function);

/**
 * Runs f with the usual rounding. Any C++ exception becomes a JavaScript error: one that left an addon's function would
 * end the process.
 */
template <auto f>
Napi::Value guarded(const Napi::CallbackInfo& info) {
  const UsualRounding rounding;
  try {
    if constexpr (std::is_void_v<decltype(f(info))>) {
      f(info);
      return info.Env().Undefined();
    } else {
      return f(info);
    }
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    throw Napi::Error::New(info.Env(), textOfException(static_cast<const char*>(info.Data())));
  }
}

/** Adds f to the exports under this name, which its errors show. Every function of the addon is added this way. */
template <auto f>
void expose(Napi::Env env, Napi::Object exports, const char* name) {
  exports.Set(name, Napi::Function::New<guarded<f>>(env, name, const_cast<char*>(name)));
}

/**
 * What a JavaScript handle of a model points to (see trainer.h). Throws a JavaScript error when closed or of another
 * kind.
 */
struct Trainer;
std::shared_ptr<Trainer> trainerOf(const Argument& handle);
/** The model behind a trainer's handle: what generation reads. It lives as long as the pointer. */
std::shared_ptr<Model> modelOf(const Argument& handle);

}  // namespace petrel
