// The digest of everything that decides the source generated for a kernel: templates, spec, plan, IR, passes, emitter,
// and the version of MLIR.
//
// It is part of every cache key, so that a library whose generator differs never takes another's cubin for its own. The
// runtime, which makes the keys, and the compiler library, which generates, compare theirs when the second is opened.
// Computed from the sources at build time (compiler/generator/generator_digest.cmake).
#pragma once

#include <string_view>

namespace hstujit {

std::string_view generator_digest();  // 64 hexadecimal digits
std::string_view library_version();   // "0.1.0"

}  // namespace hstujit
