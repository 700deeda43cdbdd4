// The operators of the library as PyTorch's dispatcher calls them: names, schemas and the order of arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstujit/hstujit.h"

namespace hstujit::torch {

inline constexpr int kMaxArguments = 64;  // of a schema, and of a launch
inline constexpr int kMaxOutputs = 32;    // of a schema, and of a launch
inline constexpr int kMaxRank = 8;        // of an output

struct Tensor {
  const void* data;
  const std::int64_t* sizes;
  const std::int64_t* strides;
  std::int32_t rank;
  std::int32_t dtype;        // PyTorch's
  std::int32_t device_type;  // PyTorch's
  std::int32_t device;       // a CUDA ordinal, -1 on the CPU
};

enum class Kind : std::int32_t { kNone, kTensor, kReal, kInteger, kFlag, kText, kTensors };

struct Value {
  Kind kind = Kind::kNone;
  std::int32_t size = 0;  // bytes of a text
  union {
    const Tensor* tensor = nullptr;
    double real;
    std::int64_t integer;
    const char* text;
  };
};

// kRows: keywords for how many rows an output has; kDeclared: the tensors that a text declares
enum class Group { kInput, kParameter, kRows, kDeclared };

// One argument of a schema, in its order.
struct Slot {
  std::string name;
  Kind kind;
  bool optional;
  Group group;
  int index;  // in its group
};

struct Axis {
  int input, axis;
};

// One direction of an operator.
struct Operator {
  std::string op;
  hstujit_direction direction = HSTUJIT_FORWARD;
  std::string name, schema;
  std::vector<Slot> slots;
  std::vector<std::string> inputs;  // in launch order
  std::vector<bool> required;       // tensors that every call has, of the inputs
  std::vector<std::string> parameters, rows, outputs;
  std::string declares;  // the parameter whose text declares tensors, which follow the inputs; empty: there is none
  bool lists_outputs = false;  // the gradients of those tensors behind all others
  int first = 0;               // the tensor whose device counts
  std::vector<Axis> axes;      // sizes that an instance is made for
  std::vector<int> forms;      // tensors that may be one number

  Operator() = default;
  Operator(Operator&&) = default;
  Operator(const Operator&) = delete;
};

// Every operator and direction, as hstujit_operators describes them. Throws a std::exception where that fails.
std::vector<Operator> all_operators();

}  // namespace hstujit::torch
