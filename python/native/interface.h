// What Python and this library tell each other: C structs, which python/hstujit/torch/_native_structs.py repeats for
// ctypes. Pointers are read during the call only.
#pragma once

#include <cstdint>

#include "hstujit/dlpack.h"

extern "C" {

enum hstujit_torch_kind : std::int32_t {
  HSTUJIT_TORCH_REQUIRED = -2,  // in the place of a default
  HSTUJIT_TORCH_NONE = -1,
  HSTUJIT_TORCH_TENSOR = 0,
  HSTUJIT_TORCH_REAL = 1,
  HSTUJIT_TORCH_INTEGER = 2,
  HSTUJIT_TORCH_BOOLEAN = 3,
  HSTUJIT_TORCH_TEXT = 4,
};

enum hstujit_torch_group : std::int32_t {
  HSTUJIT_TORCH_INPUT = 0,
  HSTUJIT_TORCH_PARAMETER = 1,
  HSTUJIT_TORCH_ROWS = 2,  // keywords that say how many rows an output has
};

// One argument of a schema, in its order.
struct hstujit_torch_slot {
  std::int32_t kind;
  std::int32_t optional;
  std::int32_t group;
  std::int32_t index;  // in its group
};

struct hstujit_torch_axis {
  std::int32_t input;
  std::int32_t axis;
};

// One direction of an operator.
struct hstujit_torch_operator {
  std::int32_t slot_count;
  const hstujit_torch_slot* slots;
  std::int32_t input_count, parameter_count, rows_count;
  std::int32_t output_count;  // of the schema
  std::int32_t first;         // the tensor whose device counts
  std::int32_t axis_count;    // sizes that an instance is made for
  const hstujit_torch_axis* axes;
  std::int32_t form_count;  // tensors that may be one number
  const std::int32_t* forms;
};

struct hstujit_torch_tensor {
  const void* data;
  const std::int64_t* sizes;
  const std::int64_t* strides;
  std::int32_t rank;
  std::int32_t dtype;        // PyTorch's
  std::int32_t device_type;  // PyTorch's
  std::int32_t device;       // a CUDA ordinal, -1 on the CPU
};

struct hstujit_torch_value {
  std::int32_t kind;
  std::int32_t size;  // bytes of a text
  union {
    const hstujit_torch_tensor* tensor;
    double real;
    std::int64_t integer;
    const char* text;
  };
};

// The kernels that a call may get, by torch.use_deterministic_algorithms.
enum hstujit_torch_determinism : std::int32_t {
  HSTUJIT_TORCH_ANY = 0,
  HSTUJIT_TORCH_DETERMINISTIC = 1,
  HSTUJIT_TORCH_PREFERRED = 2,  // deterministic ones; with a warning others, where there are none
};

struct hstujit_torch_call {
  const hstujit_torch_value* inputs;
  const hstujit_torch_value* parameters;
  const hstujit_torch_value* rows;
  std::int32_t device;       // of the first tensor
  std::int32_t determinism;  // a hstujit_torch_determinism
};

// One argument of a launch, in its order.
struct hstujit_torch_argument {
  std::int32_t kind;    // a tensor, a real number or an integer
  std::int32_t source;  // an input, or -1 - n: the output n
  std::int32_t rank;
  std::int32_t type_code, type_bits;  // of DLPack
  std::int32_t dtype;                 // PyTorch's, of outputs
  std::int32_t row_elements;          // outputs: rows begin at multiples of so many elements
};

// Sizes of outputs are programs of a machine with a stack: a word for the operation, then its operands.
enum hstujit_torch_operation : std::int64_t {
  HSTUJIT_TORCH_END = 0,       // the size is what is on the stack
  HSTUJIT_TORCH_CONSTANT = 1,  // value
  HSTUJIT_TORCH_SIZE = 2,      // input, axis
  HSTUJIT_TORCH_NUMBER = 3,    // input
  HSTUJIT_TORCH_GIVEN = 4,     // rows
  HSTUJIT_TORCH_LAST = 5,      // input: the last element of offsets, 0 of none
  HSTUJIT_TORCH_ADD = 6,
  HSTUJIT_TORCH_SUBTRACT = 7,
  HSTUJIT_TORCH_MULTIPLY = 8,
  HSTUJIT_TORCH_DIVIDE = 9,    // rounded down
  HSTUJIT_TORCH_BOUNDED = 10,  // the first one, where it is from 0 to the second one
};

// What follows from the data types, sizes and parameters of a call.
struct hstujit_torch_plan {
  std::int64_t owner;  // given back by `release`
  std::int32_t argument_count;
  const hstujit_torch_argument* arguments;
  std::int32_t max_rows;               // the input that hstujit_prepare is for, -1: none
  const std::int32_t* schema_outputs;  // of each output of the schema the one of the launch, -1: without elements
  std::int32_t needs_handles;          // a size of an output is an element of a tensor
  std::int64_t program_length;
  const std::int64_t* program;  // the sizes of all outputs of the launch
};

// What calls without the dispatcher need of Python and PyTorch: borrowed, and there as long as the process.
struct hstujit_torch_python {
  void *none, *not_implemented, *true_, *false_;
  void *tensor, *parameter, *float_, *int_, *str;  // types
  void* runtime_error;
  std::int32_t guard_count, profiler_count;
  void* const* guards;         // callables; one that returns something true leaves the call to PyTorch. Profilers first
  void *level_of, *level;      // an object and the name of its attribute: at least 0 in forward-mode differentiation
  void* is_grad_enabled;       // callable
  void* requires_grad;         // the name of an attribute
  void* is_neg;                // callable, of a tensor
  void* kernels;               // a set of texts: the kernels that torch.library registered, "hstujit/silu/CPU"
  void* tensors_from_handles;  // callable: tensors of a list of capsules with an AtenTensorHandle each, which it takes
  int (*dltensor_from_py_object)(void* tensor, DLTensor* to);  // of PyTorch's DLPackExchangeAPI
};

// The arguments of an operator as Python has them.
struct hstujit_torch_names {
  void* const* names;                   // interned, of each slot
  const hstujit_torch_value* defaults;  // of each slot; HSTUJIT_TORCH_REQUIRED where there is none
  std::int32_t positional;              // slots that need no keyword
  // Members of `kernels` whose presence means that somebody has replaced the operator's kernels.
  std::int32_t override_count;
  void* const* overrides;
  // Callable: whether autograd is to record the call; why it failed, or None; the tuple of its arguments; the dict of
  // its keywords.
  void* otherwise;
};

// What is done in Python: seldom, and never with a lock of this library. All take the GIL. One that fails returns 1 and
// has called hstujit_torch_set_error.
struct hstujit_torch_callbacks {
  // Calls hstujit_torch_set_plan(plan, ...).
  std::int32_t (*plan)(std::int32_t op, const hstujit_torch_call* call, void* plan);
  // Calls hstujit_torch_add_op(plan, ...) for the ops of this instance, that of the largest alignment first, until one
  // can read the tensors: `bits` are addresses and strides in bytes of each tensor of the launch, or-ed. `owner` is the
  // plan's, and keeps these ops until `release`.
  std::int32_t (*align)(std::int32_t op, const hstujit_torch_call* call, void* plan, std::int64_t owner,
                        const std::uint64_t* bits);
  // The others say what is wrong: a size of an output that cannot be, a status of the library, memory that PyTorch has
  // not, a launch that a capture of a CUDA graph does not allow. `last` is the last element of the offsets `input`, the
  // ones that were read last; -1: none were.
  std::int32_t (*explain)(std::int32_t op, const hstujit_torch_call* call, std::int32_t input, std::int64_t last);
  std::int32_t (*failed)(std::int32_t op, std::int32_t status);
  std::int32_t (*allocate)(std::int32_t rank, const std::int64_t* sizes, std::int32_t dtype, std::int32_t device);
  std::int32_t (*capturing)(std::int64_t max_seq_len);
  // The first launch of a thread on this device, which is the current one.
  std::int32_t (*enter)(std::int32_t device);
  void (*release)(std::int64_t owner);
  // A hstujit_torch_determinism, where PyTorch has no function of C++ that tells it.
  std::int32_t (*determinism)();
};

}  // extern "C"
