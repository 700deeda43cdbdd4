// Integers that never change once they are there, so that copies share them: a list may have millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace hstujit {

class SharedIntegers {
 public:
  SharedIntegers() = default;
  SharedIntegers(std::vector<int64_t> values)  // NOLINT(google-explicit-constructor): it is one
      : values_(std::make_shared<const std::vector<int64_t>>(std::move(values))) {}
  SharedIntegers(std::initializer_list<int64_t> values) : SharedIntegers(std::vector<int64_t>(values)) {}

  const std::vector<int64_t>& values() const {
    static const auto& none = *new std::vector<int64_t>;
    return values_ == nullptr ? none : *values_;
  }
  operator const std::vector<int64_t>&() const { return values(); }  // NOLINT(google-explicit-constructor)

  bool empty() const { return values().empty(); }
  size_t size() const { return values().size(); }
  int64_t operator[](size_t index) const { return values()[index]; }
  auto begin() const { return values().begin(); }
  auto end() const { return values().end(); }

  bool operator==(const SharedIntegers& other) const { return values() == other.values(); }

 private:
  std::shared_ptr<const std::vector<int64_t>> values_;
};

}  // namespace hstujit
