// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

namespace hstujit {

// The same open file with a number above 2, closed on exec; `number` itself where it is that already, or is none. In a
// process that has closed standard input, output or error the system gives their numbers to the next file, which would
// then take what is printed.
int above_standard(int number);

class Descriptor {
 public:
  Descriptor() = default;
  // Owns the file from now on, with a number above 2.
  explicit Descriptor(int number) : number_(above_standard(number)) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { static_cast<void>(close()); }

  int number() const { return number_; }
  bool valid() const { return number_ >= 0; }
  // Closes now: network file systems report a failed write here. Returns 0, also when it is closed already, or the
  // error number.
  int close();

 private:
  int number_ = -1;
};

}  // namespace hstujit
