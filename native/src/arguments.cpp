#include "arguments.h"

#include <cmath>

namespace petrel {
namespace {

const char* const kTypedArrays[] = {"an Int8Array",   "a Uint8Array",    "a Uint8ClampedArray", "an Int16Array",
                                    "a Uint16Array",  "an Int32Array",   "a Uint32Array",       "a Float32Array",
                                    "a Float64Array", "a BigInt64Array", "a BigUint64Array"};

std::string typedArrayName(napi_typedarray_type type) {
  const size_t index = static_cast<size_t>(type);
  return index < sizeof kTypedArrays / sizeof *kTypedArrays ? kTypedArrays[index] : "another typed array";
}

struct Typed {
  napi_typedarray_type type;
  size_t length;
  void* data;
};

Typed typedOf(const Napi::Value& value) {
  Typed t{};
  const napi_status status =
      napi_get_typedarray_info(value.Env(), value, &t.type, &t.length, &t.data, nullptr, nullptr);
  if (status != napi_ok) throw Napi::Error::New(value.Env());
  return t;
}

std::string shownNumber(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-Infinity" : "Infinity";
  if (x == std::trunc(x) && std::fabs(x) < 1e15) return std::to_string(static_cast<int64_t>(x));
  return std::to_string(x);
}

/** What came, in words. Long texts are not repeated. */
std::string described(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined: return "undefined";
    case napi_null: return "null";
    case napi_boolean: return value.As<Napi::Boolean>().Value() ? "true" : "false";
    case napi_number: return shownNumber(value.As<Napi::Number>().DoubleValue());
    case napi_string: return "a string";
    case napi_symbol: return "a symbol";
    case napi_function: return "a function";
    case napi_bigint: return "a bigint";
    case napi_external: return "a handle";
    default: break;
  }
  if (value.IsTypedArray()) return typedArrayName(typedOf(value).type);
  return value.IsArray() ? "an array" : "an object";
}

template <class T>
View<T> viewOf(const Argument& a, napi_typedarray_type wanted) {
  if (!a.value.IsTypedArray()) refuseType(a, typedArrayName(wanted));
  const Typed t = typedOf(a.value);
  if (t.type != wanted) refuseType(a, typedArrayName(wanted));
  return {static_cast<T*>(t.data), t.data == nullptr ? 0 : t.length};
}

}  // namespace

Argument::Argument(const Napi::CallbackInfo& info, size_t index, const char* argumentName)
    : value(info[index]), name(std::string(static_cast<const char*>(info.Data())) + ": " + argumentName) {}

Argument::Argument(const Argument& object, const char* key) : value(object.value), name(object.name + "." + key) {
  if (!object.value.IsObject()) refuseType(object, "an object");
  value = object.value.As<Napi::Object>().Get(key);
}

void refuseType(const Argument& a, const std::string& expected) {
  throw Napi::TypeError::New(a.value.Env(), a.name + " must be " + expected + ", got " + described(a.value));
}

void refuseRange(const Argument& a, const std::string& expected, const std::string& came) {
  throw Napi::RangeError::New(a.value.Env(), a.name + " must be " + expected + ", got " + came);
}

double numberOf(const Argument& a) {
  if (!a.value.IsNumber()) refuseType(a, "a number");
  return a.value.As<Napi::Number>().DoubleValue();
}

double finiteOf(const Argument& a) {
  const double x = numberOf(a);
  if (!std::isfinite(x)) refuseRange(a, "finite", shownNumber(x));
  return x;
}

int64_t integerOf(const Argument& a, int64_t least, int64_t most) {
  const double x = numberOf(a);
  if (!(x >= static_cast<double>(least) && x <= static_cast<double>(most)) || x != std::trunc(x)) {
    refuseRange(a, "an integer from " + std::to_string(least) + " to " + std::to_string(most), shownNumber(x));
  }
  return static_cast<int64_t>(x);
}

bool booleanOf(const Argument& a) {
  if (!a.value.IsBoolean()) refuseType(a, "true or false");
  return a.value.As<Napi::Boolean>().Value();
}

std::string textOf(const Argument& a) {
  if (!a.value.IsString()) refuseType(a, "a string");
  return a.value.As<Napi::String>().Utf8Value();
}

View<float> floatsOf(const Argument& a) { return viewOf<float>(a, napi_float32_array); }
View<double> doublesOf(const Argument& a) { return viewOf<double>(a, napi_float64_array); }
View<int32_t> integersOf(const Argument& a) { return viewOf<int32_t>(a, napi_int32_array); }
View<uint32_t> wordsOf(const Argument& a) { return viewOf<uint32_t>(a, napi_uint32_array); }
View<uint8_t> bytesOf(const Argument& a) { return viewOf<uint8_t>(a, napi_uint8_array); }

void checkWithin(const Argument& a, const std::vector<int32_t>& values, int64_t least, int64_t most) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= least && values[i] <= most) continue;
    refuseRange(a, "integers from " + std::to_string(least) + " to " + std::to_string(most),
                std::to_string(values[i]) + " at index " + std::to_string(i));
  }
}

std::vector<double> numbersOf(const Argument& a) {
  if (!a.value.IsArray()) refuseType(a, "an array of numbers");
  const Napi::Array array = a.value.As<Napi::Array>();
  std::vector<double> values;
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Argument element(array.Get(i), a.name + "[" + std::to_string(i) + "]");
    values.push_back(finiteOf(element));
  }
  return values;
}

}  // namespace petrel
