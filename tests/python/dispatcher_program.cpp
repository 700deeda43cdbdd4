// A program without Python: it loads libhstujit_torch.so, calls operators through PyTorch's dispatcher, and runs a
// package of AOTInductor. tests/python/test_torch_program.py builds and runs it.
//
//   dispatcher_program LIBRARY PACKAGE INPUTS
//
// LIBRARY is libhstujit_torch.so. INPUTS holds tensors that Python wrote by torch.jit.save of a module's attributes:
// those of each call, and what it must give. Prints "NAME ERROR" for each output, the largest difference; "refused" and
// a sentence; then "stats" and what hstujit_stats says.
#include <dlfcn.h>
#include <hstujit/hstujit.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

// Calls an operator with a stack of all arguments of its schema: those that are given by name, else its defaults.
std::vector<at::Tensor> call(const std::string& name, const std::map<std::string, c10::IValue>& given) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("hstujit::" + name).c_str(), "");
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const auto found = given.find(argument.name());
    if (found != given.end()) {
      stack.push_back(found->second);
    } else {
      TORCH_CHECK(argument.default_value(), name, " needs ", argument.name());
      stack.push_back(*argument.default_value());
    }
  }
  op.callBoxed(&stack);
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& value : stack) outputs.push_back(value.toTensor());
  return outputs;
}

void print(const std::string& name, const at::Tensor& found, const at::Tensor& expected) {
  TORCH_CHECK(found.sizes() == expected.sizes(), name, " has sizes ", found.sizes(), ", not ", expected.sizes());
  std::cout << name << " " << (found - expected).abs().max().item<double>() << "\n";
}

}  // namespace

int main(int, char** arguments) {
  void* const library = dlopen(arguments[1], RTLD_NOW);
  TORCH_CHECK(library != nullptr, dlerror());
  TORCH_CHECK(dlsym(RTLD_DEFAULT, "Py_Initialize") == nullptr, "there is Python in the process");
  const torch::NoGradGuard no_grad;
  const torch::jit::Module inputs = torch::jit::load(arguments[3]);
  const auto tensor = [&](const std::string& name) { return inputs.attr(name).toTensor(); };
  for (const std::string name : {"hstu_attention", "stu_layer"}) {
    std::map<std::string, c10::IValue> given;
    for (const auto& attribute : inputs.named_attributes(false)) {
      if (attribute.name.rfind(name + "_in_", 0) == 0) given[attribute.name.substr(name.size() + 4)] = attribute.value;
    }
    print(name, call(name, given).front(), tensor(name + "_out"));
  }
  const at::Tensor strided = tensor("package_x").t();
  print("strided", call("silu", {{"x", strided}}).front(), call("silu", {{"x", strided.contiguous()}}).front());
  try {
    call("silu", {{"x", tensor("package_out").to(at::kDouble)}});
  } catch (const std::exception& error) {
    std::cout << "refused " << error.what() << "\n";
  }
  torch::inductor::AOTIModelPackageLoader package(arguments[2]);
  print("package", package.run({tensor("package_x"), tensor("package_lengths"), tensor("package_targets")}).front(),
        tensor("package_out"));
  const auto context = reinterpret_cast<hstujit_context* (*)()>(dlsym(library, "hstujit_torch_context"));
  const auto stats = reinterpret_cast<decltype(&hstujit_stats)>(dlsym(library, "hstujit_stats"));
  hstujit_text text = {};
  TORCH_CHECK(context != nullptr && stats != nullptr && stats(context(), "json", &text) == HSTUJIT_OK, "no stats");
  std::cout << "stats " << std::string(text.data, text.size) << "\n";
  return 0;
}
