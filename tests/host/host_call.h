// One call of the host backend through its C boundary, on tensors that the tests can reach into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/host/host_api.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"
#include "compiler/support/kept_files.h"

namespace hstujit {

// Machine code of this kernel and others, kept between runs.
KeptFiles kept_objects(const OpSpec& spec, Direction direction);

// A kernel of libhstujit_host; `error` says why there is none.
class HostHandle {
 public:
  HostHandle(const OpSpec& spec, int threads, Direction direction = Direction::kForward);
  HostHandle(const HostHandle&) = delete;
  HostHandle& operator=(const HostHandle&) = delete;
  ~HostHandle() { hstujit_host_destroy(handle_); }

  void* get() const { return handle_; }
  const std::string& error() const { return error_; }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

// The arguments of one launch. Tensors of rank 2 and more may have room after each row, as column slices of a wider
// matrix have; of rank 4, at least as much as the alignment of rows takes.
class HostCall {
 public:
  HostCall(OpSpecPtr spec, const Lengths& lengths, uint64_t seed, int64_t row_padding = 0,
           Direction direction = Direction::kForward);

  // Returns the code; the sentence is in error().
  int launch(const HostHandle& handle);
  const std::string& error() const { return error_; }

  std::vector<HostValue>& inputs() { return inputs_; }  // takes effect at the next launch
  // Dense values of an argument after a launch, rounded as stored.
  HostTensor read(std::string_view name) const;
  const std::vector<std::byte>& bytes(std::string_view name) const;
  // Mistakes that compiler/spec/closeness.h finds in the outputs after a launch, a sentence each; empty when they are
  // near the reference.
  std::string mistakes() const;
  // Which of those belong to elements of sequences.
  std::vector<bool> used_bytes(std::string_view name) const;
  // Names the first byte of an output that a launch changed, and that belongs to no element of a sequence; empty where
  // there is none.
  std::string written_elsewhere() const;
  HstujitHostValue& value(std::string_view name);
  const std::vector<HstujitHostValue>& values() const { return values_; }
  // Rows along jagged axes beyond those that the sequences cover; of outputs, set to kUntouched before a launch.
  void add_rows(int64_t rows) { extra_rows_ = rows; }
  void pack_inputs();

  static constexpr std::byte kUntouched{0x5a};

 private:
  struct Storage {
    std::vector<std::byte> bytes;
    std::vector<int64_t> shape, strides;
  };
  size_t index(std::string_view name) const;
  int64_t size_of_axis(const Dimension& dimension) const;
  std::vector<int64_t> dense_shape(size_t index) const;  // of what is stored, without added rows
  std::vector<int64_t> output_shape(const Argument& argument) const;
  std::vector<int64_t> strides_of(const Argument& argument, const std::vector<int64_t>& shape) const;

  OpSpecPtr spec_;
  Direction direction_;
  Signature signature_;
  std::vector<HostValue> inputs_;
  Lengths lengths_;
  int64_t extra_rows_ = 0, row_padding_ = 0;
  std::vector<Storage> storage_;
  std::vector<HstujitHostValue> values_;
  std::string error_;
};

OpSpecPtr make_spec(const nlohmann::ordered_json& json);

}  // namespace hstujit
