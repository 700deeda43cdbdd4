"""Whether the ways that a peer script times compute the same: each is compared with a float64 reference before it is timed.

A time says nothing of a way that computes something else. So such a way has no time in the record, which has its distance in place
of that, and the script ends with 1.
"""

import math
import sys

# Largest distances over the norm of the reference, by type. They are three times the bounds of docs/numerics.md: a way rounds to its
# type after each of several steps where those bounds allow one rounding of the result.
LARGEST = {
    "forward": {"bf16": 1.8e-2, "fp16": 6e-3, "tf32": 3e-3, "fp32": 3e-5},
    "gradients": {"bf16": 3e-2, "fp16": 6e-3, "tf32": 3e-3, "fp32": 3e-5},
}


def distance(found, reference):
    """The largest distance of a tensor to the one of the same place in `reference`, over the norm of that one.

    Axes may be cut in another way, as columns into heads. inf where an element is not finite, or where there are others.
    """
    if len(found) != len(reference):
        return math.inf
    worst = 0.0
    for tensor, wanted in zip(found, reference):
        if tensor.numel() != wanted.numel():
            return math.inf
        wanted = wanted.detach().double()
        norm, apart = float(wanted.norm()), float((tensor.detach().double().reshape(wanted.shape) - wanted).norm())
        if not math.isfinite(apart):
            return math.inf
        worst = max(worst, apart / norm if norm > 0 else 0.0 if apart == 0 else math.inf)
    return worst


class Agreement:
    """The comparisons of one script."""

    def __init__(self):
        self.failures = []

    def check(self, result, way, dtype, found, reference):
        """Whether `way` may be timed for the cell `result`, where its distances, or why there are none, are noted.

        Args:
            dtype: a key of LARGEST: "tf32" of fp32 data that products round.
            found, reference: lists of tensors by "forward" and "gradients", either of them or both.
        """
        distances = {kind: distance(found[kind], reference[kind]) for kind in reference}
        too_far = [kind for kind, apart in distances.items() if not apart <= LARGEST[kind][dtype]]
        if not too_far:
            result.setdefault("difference", {})[way] = {kind: float(f"{apart:.3g}") for kind, apart in distances.items()}
            return True
        limits = ", ".join(f"{kind} {distances[kind]:.3g} (at most {LARGEST[kind][dtype]:g})" for kind in too_far)
        self.fail(result, way, f"its results differ from the float64 reference: {limits}")
        return False

    def fail(self, result, way, reason):
        """Notes that `way` cannot be compared, so that it has no time."""
        result.setdefault("not_compared", {})[way] = reason
        self.failures.append(f"{result['name']}, {way}: {reason}")
        print(self.failures[-1], file=sys.stderr)

    def exit_code(self):
        return 1 if self.failures else 0
