"""The public packages, the versions that are tested, their test files, and which tests are left out and why."""

import dataclasses
import re

OWN_KERNELS = "calls kernels of the package by their own names, which nothing replaces"
PYTORCH_ONLY = "asks for the package's PyTorch kernels alone"


@dataclasses.dataclass(frozen=True)
class Package:
    """``left_out`` says by a regular expression of a test's name why it does not run. Paths are those of a checkout."""

    name: str
    url: str
    commit: str
    files: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    not_run: tuple[tuple[str, str], ...]  # files, which are not even imported
    flags: str  # the module that says whether there is a GPU
    absent: tuple[str, ...]  # modules that a stand-in without contents takes the place of, where they are not there

    def reason_to_leave_out(self, test: str) -> str:
        return next((reason for pattern, reason in self.left_out if re.search(pattern, test)), "")


PACKAGES = {
    package.name: package
    for package in (
        Package(
            "generative_recommenders",
            "https://github.com/meta-recsys/generative-recommenders",
            "db1bf8f2e8f6a92a738dafd52a245eafb25a222b",
            files=(
                "generative_recommenders/ops/tests/hstu_attention_test.py",
                "generative_recommenders/ops/tests/hstu_attention_tma_test.py",
                "generative_recommenders/ops/tests/hstu_compute_test.py",
                "generative_recommenders/ops/tests/jagged_tensors_test.py",
                "generative_recommenders/ops/tests/layer_norm_test.py",
                "generative_recommenders/ops/tests/mm_test.py",
                "generative_recommenders/ops/tests/position_test.py",
                "generative_recommenders/ops/tests/rms_norm_test.py",
                "generative_recommenders/modules/tests/stu_test.py",
                "generative_recommenders/modules/tests/dynamic_stu_test.py",
            ),
            left_out=(
                ("triton_cc", "needs kernels of `hammer`, a package that is not public"),
                ("test_sd_stu", PYTORCH_ONLY),
            ),
            not_run=(
                ("generative_recommenders/ops/tests/fake_signature_test.py", OWN_KERNELS),
                ("generative_recommenders/ops/tests/jagged_multirow_test.py", OWN_KERNELS),
                ("generative_recommenders/ops/cpp/tests/", "tests of the package's C++ extension"),
                ("generative_recommenders/modules/tests/ (the others)", "no tests of operators"),
            ),
            flags="generative_recommenders.common",
            absent=("torchrec.modules.sorted_index_select", "hammer.ops.triton.cc.utils"),
        ),
        Package(
            "tzrec",
            "https://github.com/alibaba/TorchEasyRec",
            "54cac3165a2adece9a932616463a5b6a2095b0ce",
            files=(
                "tzrec/ops/hstu_attention_test.py",
                "tzrec/ops/hstu_compute_test.py",
                "tzrec/ops/jagged_tensors_test.py",
                "tzrec/ops/layer_norm_test.py",
                "tzrec/ops/mm_test.py",
                "tzrec/ops/position_test.py",
                "tzrec/modules/gr/stu_test.py",
            ),
            left_out=(
                ("cutlass", "needs the package's CUTLASS kernels, a wheel of its own"),
                ("test_sla_|4way_remat|STUStackTruncation|_sig_", PYTORCH_ONLY),
            ),
            not_run=(
                ("tzrec/ops/hstu_attention_utils_test.py", PYTORCH_ONLY),
                ("tzrec/ops/utils_test.py", "no operators"),
                ("tzrec/modules/gr/ (the others)", "no tests of operators"),
            ),
            flags="tzrec.utils.test_util",
            absent=(
                "pandas",
                "torchrec.fx",
                "tzrec.acc.aot_utils",
                "tzrec.models.model",
                "tzrec.protos.module_pb2",
                "tzrec.utils.config_util",
                "tzrec.utils.export_util",
            ),
        ),
    )
}
