// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

namespace hstujit {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
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
