/* The public header is C99 and needs nothing but itself. */
#include "hstujit/hstujit.h"

int main(void) {
  hstujit_problem problem = HSTUJIT_INIT(hstujit_problem);
  return problem.size == sizeof(hstujit_problem) && sizeof(DLTensor) == 48 ? 0 : 1;
}
