// Launches over memory that may be accessed exactly where the tensors lie.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <new>

#include "tests/host/host_call.h"

namespace hstujit {

// A copy of some bytes between two pages that may not be accessed, close to the first or to the second.
class GuardedBytes {
 public:
  GuardedBytes(const std::vector<std::byte>& bytes, bool at_end) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (bytes.size() + page - 1) / page * page;
    size_ = inner + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = base_ + page + (at_end ? inner - bytes.size() : 0);
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(base_, size_); }

  void* data() const { return data_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Launches with each of the tensors at the end, then at the begin of such memory. `launch` takes the call.
template <class Launch>
void expect_within_bounds(HostCall& call, const std::vector<std::string>& names, const Launch& launch) {
  for (const bool at_end : {true, false}) {
    call.pack_inputs();
    std::vector<std::unique_ptr<GuardedBytes>> guarded;
    for (const std::string& name : names) {
      guarded.push_back(std::make_unique<GuardedBytes>(call.bytes(name), at_end));
      call.value(name).data = guarded.back()->data();
    }
    launch(call);
  }
}

inline void expect_launch_within_bounds(HostCall& call, const HostHandle& handle,
                                        const std::vector<std::string>& names) {
  expect_within_bounds(call, names, [&](HostCall& ready) { EXPECT_EQ(ready.launch(handle), 0) << ready.error(); });
}

}  // namespace hstujit
