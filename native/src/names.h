// The parameters of a decoder under their Hugging Face names, ascending by code unit, and where each lies in a flat buffer.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model.h"

namespace petrel {

class Names {
 public:
  explicit Names(const DecoderConfig& config);
  int64_t size() const { return size_; }
  std::vector<Parameter> parameters() const;
  int64_t offset(const std::string& name) const;        // throws when unknown
  int64_t offsetOrNone(const std::string& name) const;  // −1 when unknown

 private:
  std::map<std::string, Parameter> byName_;
  int64_t size_ = 0;
};

}  // namespace petrel
