#include "compiler/spec/signature.h"

namespace hstujit {

int find_argument(const Signature& signature, std::string_view name) {
  for (size_t index = 0; index < signature.size(); ++index) {
    if (signature[index].name == name) return static_cast<int>(index);
  }
  return -1;
}

}  // namespace hstujit
