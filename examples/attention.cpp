// Attention through the C++ interface, on the host backend: no GPU is needed.
//
//   c++ -std=c++17 examples/attention.cpp -lhstujit -o attention && ./attention
//
// The README shows everything from the first #include on; `make bench-table` puts it there.
#include <cstdio>
#include <hstujit/hstujit.hpp>
#include <vector>

int main() try {
  // Two sequences, of 3 and 4 rows, one after the other; 2 heads of 64 columns.
  std::vector<float> q(7 * 2 * 64, 0.5f), k = q, v = q, out(q.size());
  std::vector<std::int64_t> offsets = {0, 3, 7}, shape = {7, 2, 64}, offsets_shape = {3};
  const auto tensor = [](auto& data, std::uint8_t type, auto& shape) {
    const DLDataType element = {type, static_cast<std::uint8_t>(8 * sizeof(data[0])), 1};
    return DLTensor{
        data.data(), {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), element, shape.data(), nullptr, 0};
  };
  DLTensor tensors[] = {tensor(q, kDLFloat, shape), tensor(k, kDLFloat, shape), tensor(v, kDLFloat, shape),
                        tensor(out, kDLFloat, shape), tensor(offsets, kDLInt, offsets_shape)};

  hstujit::api::Context context;
  hstujit::api::Op op(context, R"({"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64,
                                   "dtype": "fp32", "causal": true})",
                      HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
  op.prepare(16);  // no sequence is longer; a kernel for a GPU is looked up, or compiled, here

  std::vector<hstujit_value> values(8);  // docs/ops.md lists the arguments
  const char* names[] = {"q", "k", "v", "out", "seq_offsets"};
  for (int i = 0; i < 5; ++i) values[op.argument(names[i])].tensor = &tensors[i];
  values[op.argument("max_seq_len")].integer = 16;
  values[op.argument("alpha")].real = 1.0 / 64;
  op.launch(values.data(), values.size());
  std::printf("last row, first column: %.6f\n", out[6 * 2 * 64]);
} catch (const hstujit::api::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
