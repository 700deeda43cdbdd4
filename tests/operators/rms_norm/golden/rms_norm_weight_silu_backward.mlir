module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}) -> (f32 {hstu.name = "sum0"}) {
    %0 = arith.mulf %arg0, %arg0 : f32
    return %0 : f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "eps"}) -> (f32 {hstu.name = "rstd"}, f32 {hstu.name = "statistic"}) {
    %cst = arith.constant -5.000000e-01 : f32
    %cst_0 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_0 : f32
    %1 = arith.addf %0, %arg1 : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.mulf %2, %cst : f32
    %5 = arith.mulf %3, %4 : f32
    return %2, %5 : f32, f32
  }
  func.func @row_summands1(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "weight"}, %arg2: f32 {hstu.name = "dout"}, %arg3: f32 {hstu.name = "rstd"}) -> (f32 {hstu.name = "sum0"}) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg0, %arg3 : f32
    %1 = arith.mulf %arg1, %cst_0 : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = math.tanh %2 : f32
    %4 = arith.negf %3 : f32
    %5 = math.fma %4, %3, %cst : f32
    %6 = math.fma %2, %5, %3 : f32
    %7 = arith.mulf %6, %arg2 : f32
    %8 = arith.addf %arg2, %7 : f32
    %9 = arith.mulf %8, %cst_0 : f32
    %10 = arith.mulf %arg1, %9 : f32
    %11 = arith.mulf %arg0, %10 : f32
    return %11 : f32
  }
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "statistic"}) -> (f32 {hstu.name = "statistic2"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %0 = arith.mulf %arg0, %cst : f32
    %1 = arith.mulf %arg1, %0 : f32
    return %1 : f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "weight"}, %arg2: f32 {hstu.name = "dout"}, %arg3: f32 {hstu.name = "rstd"}, %arg4: f32 {hstu.name = "statistic2"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "dweight"}) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg0, %arg3 : f32
    %1 = arith.mulf %arg1, %cst_0 : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = math.tanh %2 : f32
    %4 = arith.negf %3 : f32
    %5 = math.fma %4, %3, %cst : f32
    %6 = math.fma %2, %5, %3 : f32
    %7 = arith.mulf %6, %arg2 : f32
    %8 = arith.addf %arg2, %7 : f32
    %9 = arith.mulf %8, %cst_0 : f32
    %10 = arith.mulf %arg1, %9 : f32
    %11 = arith.mulf %arg3, %10 : f32
    %12 = arith.mulf %arg0, %arg4 : f32
    %13 = arith.addf %11, %12 : f32
    %14 = arith.mulf %0, %9 : f32
    return %13, %14 : f32, f32
  }
}
