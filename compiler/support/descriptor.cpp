#include "compiler/support/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hstujit {

int above_standard(int number) {
  if (number < 0 || number > STDERR_FILENO) return number;
  const int moved = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(number);
  errno = error;
  return moved;
}

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
