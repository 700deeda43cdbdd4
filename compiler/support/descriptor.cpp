#include "compiler/support/descriptor.h"

#include <unistd.h>

#include <cerrno>

namespace hstujit {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    static_cast<void>(close());
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

int Descriptor::close() {
  if (!valid()) return 0;
  return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno;
}

}  // namespace hstujit
