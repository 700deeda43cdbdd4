/* One call of an operator through the C API, on the host backend: no GPU is needed.
 *
 *   cc -std=c99 examples/attention.c -lhstujit -lm -o attention && ./attention
 *
 * For a GPU: HSTUJIT_BACKEND_CUDA, tensors with {kDLCUDA, ordinal} and device pointers, and the stream of the launch.
 * After hstujit_prepare a launch takes no lock, allocates nothing and may be captured in a CUDA graph.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hstujit/hstujit.h"

enum { kSequences = 2, kRows = 7, kHeads = 2, kWidth = 8, kMaxSeqLen = 16 };

static const char kInstance[] =
    "{\"op\": \"hstu_attention\", \"heads\": 2, \"attn_dim\": 8, \"hidden_dim\": 8, \"dtype\": \"fp32\","
    " \"precision\": \"ieee\", \"causal\": true}";

static void stop_at(hstujit_status status, const char* what) {
  if (status == HSTUJIT_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, hstujit_status_name(status), hstujit_last_error());
  exit(1);
}

static DLTensor tensor(void* data, uint8_t code, int rank, int64_t* shape) {
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = rank;
  tensor.dtype.code = code;
  tensor.dtype.bits = code == kDLFloat ? 32 : 64;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

/* Arguments are found by name, so that the order of the signature need not be known. */
static hstujit_value* value(hstujit_value* values, const hstujit_op* op, const char* name) {
  int position = 0;
  stop_at(hstujit_op_find_argument(op, name, &position), "argument");
  return &values[position];
}

/* The same in plain C: docs/ops-attention.md, "hstu_attention", for a causal mask. */
static double expected(const float* q, const float* k, const float* v, int first, int row, int head, int column,
                       double alpha) {
  double sum = 0;
  for (int j = first; j <= row; ++j) {
    double score = 0;
    for (int d = 0; d < kWidth; ++d) {
      score += (double)q[(row * kHeads + head) * kWidth + d] * k[(j * kHeads + head) * kWidth + d];
    }
    score *= alpha;
    sum += score / (1 + exp(-score)) / kMaxSeqLen * v[(j * kHeads + head) * kWidth + column];
  }
  return sum;
}

int main(void) {
  hstujit_context* context = NULL;
  hstujit_op* op = NULL;
  stop_at(hstujit_context_create(NULL, &context), "context");
  stop_at(hstujit_op_create(context, kInstance, HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST, &op), "op");

  /* Two sequences of 3 and 4 rows, one after the other. */
  static float q[kRows * kHeads * kWidth], k[kRows * kHeads * kWidth], v[kRows * kHeads * kWidth];
  static float out[kRows * kHeads * kWidth];
  int64_t offsets[kSequences + 1] = {0, 3, kRows};
  for (int i = 0; i < kRows * kHeads * kWidth; ++i) {
    q[i] = (float)sin(i + 1);
    k[i] = (float)cos(3 * i + 1);
    v[i] = (float)sin(5 * i + 2);
  }
  int64_t shape[3] = {kRows, kHeads, kWidth}, offsets_shape[1] = {kSequences + 1};
  const DLTensor tensors[] = {tensor(q, kDLFloat, 3, shape), tensor(k, kDLFloat, 3, shape),
                              tensor(v, kDLFloat, 3, shape), tensor(out, kDLFloat, 3, shape),
                              tensor(offsets, kDLInt, 1, offsets_shape)};

  enum { kArguments = 8 };
  const double alpha = 0.5;
  hstujit_value values[kArguments];
  value(values, op, "q")->tensor = &tensors[0];
  value(values, op, "k")->tensor = &tensors[1];
  value(values, op, "v")->tensor = &tensors[2];
  value(values, op, "out")->tensor = &tensors[3];
  value(values, op, "seq_offsets")->tensor = &tensors[4];
  value(values, op, "max_seq_len")->integer = kMaxSeqLen;
  value(values, op, "alpha")->real = alpha;
  value(values, op, "scaling_seqlen")->integer = 0; /* the divisor is max_seq_len */

  hstujit_problem problem = HSTUJIT_INIT(hstujit_problem);
  problem.max_seq_len = kMaxSeqLen;
  problem.device = -1;
  stop_at(hstujit_prepare(op, &problem), "prepare");
  /* No workspace and no stream, which the host backend does not need. On a GPU: hstujit_workspace_size bytes. */
  stop_at(hstujit_launch(op, values, kArguments, NULL, 0, NULL), "launch");

  double worst = 0, largest = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kHeads * kWidth; ++i) {
      const int first = row < offsets[1] ? 0 : (int)offsets[1];
      const double reference = expected(q, k, v, first, row, i / kWidth, i % kWidth, alpha);
      worst = fmax(worst, fabs(out[row * kHeads * kWidth + i] - reference));
      largest = fmax(largest, fabs(reference));
    }
  }
  printf("hstujit %s: out[0][0][0] = %.6f, largest number %.6f, largest difference from plain C: %.1e\n",
         hstujit_version(), out[0], largest, worst);
  hstujit_op_destroy(op);
  hstujit_context_destroy(context);
  return worst < 1e-5 * largest ? 0 : 1;
}
