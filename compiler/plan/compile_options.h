// The compiler options that decide the bytes of a cubin, written down once: the compiler passes them to NVRTC, and the
// runtime hashes them into the cache key on machines that have no compiler.
//
// No path and no version may be among them. Never -Ofc (setmaxnreg is ignored, wgmma is serialised) and never
// fast-math: templates name the approximate instructions that they want.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

inline constexpr int kCppStandard = 17;

// `arch` with its suffix: "sm_90a". `lineinfo` adds line tables for profilers.
inline std::vector<std::string> compile_options(std::string_view arch, int cpp_standard = kCppStandard,
                                                bool lineinfo = false) {
  std::vector<std::string> options = {"--gpu-architecture=" + std::string(arch),
                                      "--std=c++" + std::to_string(cpp_standard), "-default-device"};
  if (lineinfo) options.emplace_back("-lineinfo");
  return options;
}

}  // namespace hstujit
