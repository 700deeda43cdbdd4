// What plans ask of the library for PyTorch, without PyTorch.
#include <stdexcept>

#include "python/native/arguments.h"
#include "python/native/context.h"

namespace hstujit::torch {
namespace {

std::int32_t no_type() { return 0; }

}  // namespace

const Functions& functions() {
  static const Functions fake = [] {
    Functions made;
#define HSTUJIT_SET(name, ...) made.name = no_type;
    HSTUJIT_TORCH_CONSTANTS(HSTUJIT_SET)
#undef HSTUJIT_SET
    return made;
  }();
  return fake;
}

Determinism determinism() { return Determinism::kAny; }

void throw_failure(std::int32_t, std::string sentence) { throw std::runtime_error(sentence); }

void check_status(std::string_view, hstujit_status status) {
  if (status != HSTUJIT_OK) throw_failure(status, hstujit_last_error());
}

}  // namespace hstujit::torch
