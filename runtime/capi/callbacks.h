// Calls of functions that callers of the C API gave.
#pragma once

namespace hstujit::capi {

// Around the call of such a function, which is left out where is_open() is false: hstujit_callbacks_stop was called.
class Callback {
 public:
  Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback();

  bool is_open() const { return is_open_; }

 private:
  const bool is_open_;
};

}  // namespace hstujit::capi
