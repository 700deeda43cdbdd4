#include "autotune_cache/bundle/bundle_decoder.h"

#include "autotune_cache/bundle/library/bundle_api.h"
#include "compiler/support/c_boundary.h"
#include "compiler/support/installed_library.h"

namespace hstujit {
namespace {

constexpr const char* kBundleLibrary = "the bundle library";
constexpr const char* kBundleFile = "libhstujit_bundle.so";

Result<std::string> decode(const DynamicLibrary& library, std::string_view frame) {
  HSTUJIT_ASSIGN_OR_RETURN(auto* const abi, library.function<decltype(hstujit_bundle_abi)>("hstujit_bundle_abi"));
  HSTUJIT_RETURN_IF_ERROR(check_abi(kBundleLibrary, library, abi(), HSTUJIT_BUNDLE_ABI));
  HSTUJIT_ASSIGN_OR_RETURN(auto* const size_of, library.function<decltype(hstujit_bundle_size)>("hstujit_bundle_size"));
  HSTUJIT_ASSIGN_OR_RETURN(auto* const decompress,
                           library.function<decltype(hstujit_bundle_decompress)>("hstujit_bundle_decompress"));
  char error[kBoundaryErrorBytes] = {};
  size_t size = 0;
  if (const Code code = code_from(size_of(frame.data(), frame.size(), &size, error, sizeof(error))); code != Code::kOk)
    return Status(code, error);
  std::string bytes(size, '\0');
  const Code code = code_from(decompress(frame.data(), frame.size(), bytes.data(), size, error, sizeof(error)));
  if (code != Code::kOk) return Status(code, error);
  return bytes;
}

}  // namespace

BundleDecoder bundle_decoder(const Environment& environment) {
  return [environment](std::string_view frame) -> Result<std::string> {
    HSTUJIT_ASSIGN_OR_RETURN(const DynamicLibrary library,
                             open_installed_library(kBundleLibrary, environment, Env::kBundleLibrary, kBundleFile));
    return decode(library, frame);
  };
}

}  // namespace hstujit
