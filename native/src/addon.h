// How files add functions to the addon: a static `Register` object with a function that sets exports. Context-aware: the
// function runs once per environment (main thread, each worker_thread); no JavaScript state is global.
#pragma once
#include <napi.h>

#include <memory>

#include "model.h"

namespace petrel {

using RegisterFunction = void (*)(Napi::Env, Napi::Object exports);
struct Register {
  explicit Register(RegisterFunction function);
};

/** What a JavaScript handle of a model points to (see trainer.h). Throws a JavaScript error when closed or of another kind. */
struct Trainer;
std::shared_ptr<Trainer> trainerOf(const Napi::Value& handle);
/** The model behind a trainer's handle: what generation reads. It lives as long as the pointer. */
std::shared_ptr<Model> modelOf(const Napi::Value& handle);

}  // namespace petrel
