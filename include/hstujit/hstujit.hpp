// hstu-jit for C++17 and later: owners for the handles of hstujit.h, tensors, launches by argument name, a struct for
// the parameters of each operator, and exceptions instead of statuses.
//
// Everything here is a thin inline layer; hstujit.h is the reference, docs/cpp.md a tour. Contexts, configs and ops may
// be moved, not copied, and used from any thread. Every call that can fail throws Error (error.hpp).
#ifndef HSTUJIT_HSTUJIT_HPP
#define HSTUJIT_HSTUJIT_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hstujit/error.hpp"
#include "hstujit/hstujit.h"
#include "hstujit/operators.hpp"
#include "hstujit/tensor.hpp"

namespace hstujit::api {

// JSON text that the library gave.
class Text {
 public:
  Text() = default;
  Text(Text&& other) noexcept : text_(std::exchange(other.text_, {nullptr, 0})) {}
  Text& operator=(Text&& other) noexcept {
    std::swap(text_, other.text_);
    return *this;
  }
  ~Text() { hstujit_text_free(&text_); }

  hstujit_text* out() { return &text_; }
  std::string str() const { return text_.data == nullptr ? std::string() : std::string(text_.data, text_.size); }

 private:
  hstujit_text text_{nullptr, 0};
};

namespace detail {
template <typename T, void (*Destroy)(T*)>
struct Deleter {
  void operator()(T* handle) const { Destroy(handle); }
};
template <typename T, void (*Destroy)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, Destroy>>;
}  // namespace detail

class Context {
 public:
  Context() : Context(nullptr) {}
  explicit Context(const hstujit_context_options& options) : Context(&options) {}

  hstujit_context* get() const { return handle_.get(); }

  std::string doctor() const {
    Text text;
    check(hstujit_doctor(get(), text.out()));
    return text.str();
  }
  // `format`: "json" or "prometheus", see hstujit_stats.
  std::string stats(const char* format = "json") const {
    Text text;
    check(hstujit_stats(get(), format, text.out()));
    return text.str();
  }

 private:
  explicit Context(const hstujit_context_options* options) {
    hstujit_context* handle = nullptr;
    check(hstujit_context_create(options, &handle));
    handle_.reset(handle);
  }
  detail::Handle<hstujit_context, hstujit_context_destroy> handle_;
};

class Config {
 public:
  static Config load(const std::string& path) {
    hstujit_config* handle = nullptr;
    check(hstujit_config_load(path.c_str(), &handle));
    return Config(handle);
  }
  static Config parse(const std::string& json, const std::string& origin = "config") {
    hstujit_config* handle = nullptr;
    check(hstujit_config_parse(json.c_str(), origin.c_str(), &handle));
    return Config(handle);
  }
  static Config load_recording(const std::string& path) {
    hstujit_config* handle = nullptr;
    check(hstujit_config_load_recording(path.c_str(), &handle));
    return Config(handle);
  }

  hstujit_config* get() const { return handle_.get(); }

 private:
  explicit Config(hstujit_config* handle) : handle_(handle) {}
  detail::Handle<hstujit_config, hstujit_config_destroy> handle_;
};

// Device memory that a launch borrows.
struct Workspace {
  void* address = nullptr;
  std::size_t bytes = 0;
};

// An argument of an op: its place among the values of a launch, and the kind of its value.
struct Argument {
  int position = 0;
  std::string name;
  hstujit_kind kind = HSTUJIT_TENSOR;
  bool output = false;
};

class Op {
 public:
  // A struct of operators.hpp: HstuAttention and its like.
  template <typename Spec, typename = decltype(std::declval<const Spec&>().json())>
  Op(const Context& context, const Spec& spec, hstujit_direction direction = HSTUJIT_FORWARD,
     hstujit_backend backend = HSTUJIT_BACKEND_CUDA)
      : Op(context, spec.json(), direction, backend) {}
  // `json` is one instance: {"op": "hstu_attention", "heads": 4, ...}.
  Op(const Context& context, const std::string& json, hstujit_direction direction = HSTUJIT_FORWARD,
     hstujit_backend backend = HSTUJIT_BACKEND_CUDA) {
    hstujit_op* handle = nullptr;
    check(hstujit_op_create(context.get(), json.c_str(), direction, backend, &handle));
    handle_.reset(handle);
  }
  Op(const Context& context, const Config& config, const std::string& name,
     hstujit_direction direction = HSTUJIT_FORWARD, hstujit_backend backend = HSTUJIT_BACKEND_CUDA) {
    hstujit_op* handle = nullptr;
    check(hstujit_op_from_config(context.get(), config.get(), name.c_str(), direction, backend, &handle));
    handle_.reset(handle);
  }

  hstujit_op* get() const { return handle_.get(); }
  // The arguments of a launch in their order, as JSON (hstujit_op_signature).
  std::string signature() const {
    Text text;
    check(hstujit_op_signature(get(), text.out()));
    return text.str();
  }
  // In launch order, as docs/ops-*.md list them.
  std::vector<Argument> arguments() const {
    std::vector<Argument> list(static_cast<std::size_t>(hstujit_op_argument_count(get())));
    for (std::size_t i = 0; i < list.size(); ++i) {
      hstujit_argument argument = HSTUJIT_INIT(hstujit_argument);
      check(hstujit_op_argument_at(get(), static_cast<int>(i), &argument));
      list[i] = {static_cast<int>(i), argument.name, argument.kind, argument.output != 0};
    }
    return list;
  }
  // Where its value is among those of a launch. A name that the op does not have is an Error that says which it has.
  int position(const std::string& name) const {
    int position = 0;
    check(hstujit_op_find_argument(get(), name.c_str(), &position));
    return position;
  }

  // For launches of up to so many rows a sequence, on the GPU of that ordinal; < 0: that of the current context. May
  // compile. Error, HSTUJIT_CACHE_MISS: no cache has the kernel, and the policy on a miss is "fail". The backward
  // direction's kernels begin to compile, too, where `derivative_follows`.
  void prepare(std::int64_t max_seq_len, int device = -1, bool derivative_follows = false) {
    hstujit_problem problem = HSTUJIT_INIT(hstujit_problem);
    problem.max_seq_len = max_seq_len;
    problem.device = device;
    problem.derivative_follows = derivative_follows ? 1 : 0;
    check(hstujit_prepare(get(), &problem));
  }

  // Bytes of device memory for a launch of these values after prepare; 0: launch needs no workspace.
  std::size_t workspace_size(const hstujit_value* values, std::size_t count) const {
    std::size_t bytes = 0;
    check(hstujit_workspace_size(get(), values, count, &bytes));
    return bytes;
  }

  void launch(const hstujit_value* values, std::size_t count, void* stream = nullptr,
              const Workspace& workspace = {}) const {
    check(hstujit_launch(get(), values, count, workspace.address, workspace.bytes, stream));
  }

 private:
  detail::Handle<hstujit_op, hstujit_op_destroy> handle_;
};

// The value of an argument: a tensor or a number.
class Value {
 public:
  Value(Tensor tensor) : kind_(HSTUJIT_TENSOR), tensor_(std::move(tensor)) {}
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Value(T number) : kind_(HSTUJIT_INT), integer_(static_cast<std::int64_t>(number)) {}
  template <typename T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  Value(T number) : kind_(HSTUJIT_FLOAT), real_(static_cast<double>(number)) {}

  hstujit_kind kind() const { return kind_; }
  const Tensor& tensor() const { return *tensor_; }
  std::int64_t integer() const { return integer_; }
  double real() const { return kind_ == HSTUJIT_INT ? static_cast<double>(integer_) : real_; }

 private:
  hstujit_kind kind_;
  std::optional<Tensor> tensor_;
  std::int64_t integer_ = 0;
  double real_ = 0;
};

// The values of a launch, by name. Names are looked up and checked once, here; run() and set() look up nothing.
//
// Every argument has a value from the beginning, so that none can be forgotten. Error, HSTUJIT_INVALID_ARGUMENT: a name
// that the op does not have, one given twice or left out, a tensor for a number and the like. Sizes, data types and
// addresses are checked by each launch.
// It refers to the op and to the data of its tensors, which must outlive it. One thread may use it at a time; give each
// a copy.
class Launch {
 public:
  using Named = std::pair<std::string, Value>;

  Launch(const Op& op, const std::vector<Named>& values) : op_(op.get()), arguments_(op.arguments()) {
    tensors_.resize(arguments_.size());
    values_.resize(arguments_.size());
    std::vector<bool> given(arguments_.size());
    for (const auto& [name, value] : values) {
      const auto position = static_cast<std::size_t>(op.position(name));
      if (given[position]) throw Error(HSTUJIT_INVALID_ARGUMENT, "argument " + name + " is given twice");
      given[position] = true;
      set(arguments_[position].position, value);
    }
    std::string missing;
    for (const Argument& argument : arguments_) {
      if (!given[static_cast<std::size_t>(argument.position)]) missing += (missing.empty() ? "" : ", ") + argument.name;
    }
    if (!missing.empty()) {
      throw Error(HSTUJIT_INVALID_ARGUMENT, "a launch has no value for " + missing + "; each argument needs one");
    }
  }
  Launch(const Launch& other)
      : op_(other.op_), arguments_(other.arguments_), tensors_(other.tensors_), values_(other.values_) {
    point();
  }
  Launch(Launch&&) noexcept = default;
  Launch& operator=(Launch other) noexcept {
    std::swap(op_, other.op_);
    arguments_.swap(other.arguments_);
    tensors_.swap(other.tensors_);
    values_.swap(other.values_);
    return *this;
  }

  // Another value for the argument at `position` (Op::position), for the launches to come. Error,
  // HSTUJIT_INVALID_ARGUMENT: the op has no argument there, or one of another kind.
  void set(int position, const Value& value) {
    if (position < 0 || static_cast<std::size_t>(position) >= arguments_.size()) {
      throw Error(HSTUJIT_INVALID_ARGUMENT, "position is " + std::to_string(position) +
                                                "; it must be Op::position of one of the " +
                                                std::to_string(arguments_.size()) + " arguments");
    }
    const Argument& argument = arguments_[static_cast<std::size_t>(position)];
    hstujit_value& slot = values_[static_cast<std::size_t>(position)];
    if (argument.kind == HSTUJIT_TENSOR && value.kind() == HSTUJIT_TENSOR) {
      std::optional<Tensor>& tensor = tensors_[static_cast<std::size_t>(position)];
      tensor = value.tensor();
      slot.tensor = tensor->dl();
    } else if (argument.kind == HSTUJIT_INT && value.kind() == HSTUJIT_INT) {
      slot.integer = value.integer();
    } else if (argument.kind == HSTUJIT_FLOAT && value.kind() != HSTUJIT_TENSOR) {
      slot.real = value.real();
    } else {
      throw Error(HSTUJIT_INVALID_ARGUMENT, "argument " + argument.name + " is given " + kind_text(value.kind()) +
                                                "; it must be " + kind_text(argument.kind));
    }
  }
  // Bytes of device memory, after Op::prepare for the max_seq_len that is set; 0: run needs no workspace.
  std::size_t workspace_size() const {
    std::size_t bytes = 0;
    check(hstujit_workspace_size(op_, values_.data(), values_.size(), &bytes));
    return bytes;
  }

  // hstujit_launch: enqueues the op on the stream; with the host backend the results are there on return.
  void run(void* stream = nullptr, const Workspace& workspace = {}) const {
    check(hstujit_launch(op_, values_.data(), values_.size(), workspace.address, workspace.bytes, stream));
  }

 private:
  static std::string kind_text(hstujit_kind kind) {
    return kind == HSTUJIT_TENSOR ? "a tensor" : kind == HSTUJIT_INT ? "an integer" : "a real number";
  }
  void point() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i]) values_[i].tensor = tensors_[i]->dl();
    }
  }

  const hstujit_op* op_;
  std::vector<Argument> arguments_;
  std::vector<std::optional<Tensor>> tensors_;  // of the arguments that are tensors
  std::vector<hstujit_value> values_;
};

}  // namespace hstujit::api

#endif
