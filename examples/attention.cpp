// Attention on the host backend, without a GPU: c++ -std=c++17 attention.cpp -lhstujit -o attention && ./attention
#include <cstdio>
#include <hstujit/hstujit.hpp>
#include <vector>
using namespace hstujit::api;
int main() {
  std::vector<float> q(7 * 2 * 64, 0.5f), k = q, v = q, out(q.size());  // 7 rows of 2 heads of 64 columns
  const auto rows = [](auto& data) { return Tensor(data.data(), {7, 2, 64}); };
  const std::int64_t offsets[] = {0, 3, 7};  // two sequences, of 3 and 4 rows
  HstuAttention attention;                   // hstujit/operators.hpp has a struct for each operator
  attention.heads = 2, attention.attn_dim = attention.hidden_dim = 64, attention.dtype = DataType::fp32;
  Op op(Context(), attention, HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
  op.prepare(16);  // no sequence is longer; a kernel for a GPU is looked up, or compiled, here
  Launch launch(op, {{"q", rows(q)},
                     {"k", rows(k)},
                     {"v", rows(v)},
                     {"out", rows(out)},
                     {"seq_offsets", Tensor(offsets, {3})},
                     {"max_seq_len", 16},
                     {"alpha", 1.0 / 64},
                     {"scaling_seqlen", 0}});
  launch.run();
  std::printf("last row, first column: %.6f\n", out[6 * 2 * 64]);
}
