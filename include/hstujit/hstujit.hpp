// hstu-jit for C++17 and later: owners for the handles of hstujit.h, and exceptions instead of statuses.
//
// Everything here is a thin inline layer; hstujit.h is the reference. Objects may be moved, not copied, and used from
// any thread. launch() costs what hstujit_launch costs.
#ifndef HSTUJIT_HSTUJIT_HPP
#define HSTUJIT_HSTUJIT_HPP

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hstujit/hstujit.h"

namespace hstujit::api {

// what() is hstujit_last_error() as it was when the call failed.
class Error : public std::runtime_error {
 public:
  explicit Error(hstujit_status status) : std::runtime_error(hstujit_last_error()), status_(status) {}
  hstujit_status status() const noexcept { return status_; }

 private:
  hstujit_status status_;
};

inline void check(hstujit_status status) {
  if (status != HSTUJIT_OK) throw Error(status);
}

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

class Op {
 public:
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
  // The position of that argument; -1: there is none.
  int argument(const std::string& name) const { return hstujit_op_argument(get(), name.c_str()); }

  // device < 0: that of the current context.
  void prepare(std::int64_t max_seq_len, int device = -1) {
    hstujit_problem problem = HSTUJIT_INIT(hstujit_problem);
    problem.max_seq_len = max_seq_len;
    problem.device = device;
    check(hstujit_prepare(get(), &problem));
  }

  // Of device memory, for a launch of these values after prepare; 0: launch needs no workspace.
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

}  // namespace hstujit::api

#endif
