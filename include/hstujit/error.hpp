// Exceptions of the C++ interface.
#ifndef HSTUJIT_ERROR_HPP
#define HSTUJIT_ERROR_HPP

#include <stdexcept>
#include <string>

#include "hstujit/hstujit.h"

namespace hstujit::api {

// what() is a sentence: hstujit_last_error() as it was when a call of the C API failed, or that of this layer.
class Error : public std::runtime_error {
 public:
  explicit Error(hstujit_status status) : Error(status, hstujit_last_error()) {}
  Error(hstujit_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  hstujit_status status() const noexcept { return status_; }

 private:
  hstujit_status status_;
};

inline void check(hstujit_status status) {
  if (status != HSTUJIT_OK) throw Error(status);
}

}  // namespace hstujit::api

#endif
