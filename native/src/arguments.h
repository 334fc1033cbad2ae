// What comes from JavaScript, read with checks. Each function throws a JavaScript error that names the addon's function
// and the argument, and says what was expected and what came. native/*.ts refuses the same values earlier, in the
// user's words; these checks make sure that no caller at all can let the engine read or write outside its memory.
#pragma once
#include <napi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace petrel {

/** A value under the name that errors show, such as `trainerForward: tokens`. */
struct Argument {
  Napi::Value value;
  std::string name;

  Argument(Napi::Value v, std::string n) : value(v), name(std::move(n)) {}
  /** Argument `index` of a function that was added with `expose`. */
  Argument(const Napi::CallbackInfo& info, size_t index, const char* name);
  /** A property of an object. */
  Argument(const Argument& object, const char* key);

  bool isMissing() const { return value.IsUndefined() || value.IsNull(); }
};

/** Throws a TypeError or RangeError: `<name> must be <expected>, got <what came>`. */
[[noreturn]] void refuseType(const Argument& argument, const std::string& expected);
[[noreturn]] void refuseRange(const Argument& argument, const std::string& expected, const std::string& came);

constexpr int64_t kLargestInt = 0x7fffffff;

double numberOf(const Argument& argument);
double finiteOf(const Argument& argument);
int64_t integerOf(const Argument& argument, int64_t least, int64_t most);
bool booleanOf(const Argument& argument);
std::string textOf(const Argument& argument);

/** The memory of a typed array. Valid until JavaScript runs again. */
template <class T>
struct View {
  T* data;
  size_t length;
  std::vector<T> copy() const { return {data, data + length}; }
};

View<float> floatsOf(const Argument& argument);
View<double> doublesOf(const Argument& argument);
View<int32_t> integersOf(const Argument& argument);
View<uint32_t> wordsOf(const Argument& argument);
View<uint8_t> bytesOf(const Argument& argument);

/** Throws a RangeError unless the array holds exactly `length` values. */
template <class T>
View<T> ofLength(const Argument& argument, View<T> view, size_t length) {
  if (view.length != length)
    refuseRange(argument, "of " + std::to_string(length) + " values", std::to_string(view.length));
  return view;
}

/** Throws a RangeError that names the first value outside [least, most]. */
void checkWithin(const Argument& argument, const std::vector<int32_t>& values, int64_t least, int64_t most);

/** A JavaScript array of finite numbers. */
std::vector<double> numbersOf(const Argument& argument);

}  // namespace petrel
