module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}) -> (f32 {hstu.name = "sum0"}) {
    return %arg0 : f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}) -> (f32 {hstu.name = "estimate"}) {
    %cst = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst {hstu.unfused} : f32
    return %0 : f32
  }
  func.func @row_summands1(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %0 = arith.subf %arg0, %arg1 : f32
    %1 = arith.mulf %0, %0 : f32
    return %0, %1 : f32, f32
  }
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "eps"}, %arg3: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "mean"}, f32 {hstu.name = "rstd"}, f32 {hstu.name = "statistic"}, f32 {hstu.name = "statistic2"}, f32 {hstu.name = "statistic3"}) {
    %cst = arith.constant -5.000000e-01 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %cst_2 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_2 : f32
    %1 = arith.addf %arg3, %0 : f32
    %2 = arith.mulf %0, %arg0 : f32
    %3 = arith.subf %arg1, %2 : f32
    %4 = arith.maximumf %3, %cst_1 : f32
    %5 = arith.mulf %4, %cst_2 : f32
    %6 = arith.addf %5, %arg2 : f32
    %7 = math.rsqrt %6 : f32
    %8 = arith.mulf %7, %cst_0 : f32
    %9 = arith.mulf %7, %7 : f32
    %10 = arith.mulf %7, %cst : f32
    %11 = arith.mulf %9, %10 : f32
    %12 = arith.mulf %7, %cst_2 : f32
    return %1, %7, %8, %11, %12 : f32, f32, f32, f32, f32
  }
  func.func @row_summands2(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "bias"}, %arg2: f32 {hstu.name = "dout"}, %arg3: f32 {hstu.name = "mean"}, %arg4: f32 {hstu.name = "rstd"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.subf %arg0, %arg3 : f32
    %1 = arith.mulf %0, %arg4 : f32
    %2 = arith.addf %1, %arg1 : f32
    %3 = arith.mulf %2, %cst_0 : f32
    %4 = math.tanh %3 : f32
    %5 = arith.negf %4 : f32
    %6 = math.fma %5, %4, %cst : f32
    %7 = arith.mulf %arg2, %cst_0 : f32
    %8 = arith.mulf %arg0, %7 : f32
    %9 = arith.mulf %6, %8 : f32
    %10 = arith.mulf %9, %cst_0 : f32
    %11 = arith.mulf %0, %10 : f32
    return %11, %9 : f32, f32
  }
  func.func @row_statistics2(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "statistic2"}, %arg3: f32 {hstu.name = "statistic3"}) -> (f32 {hstu.name = "statistic4"}, f32 {hstu.name = "statistic5"}) {
    %cst = arith.constant 5.000000e-01 : f32
    %cst_0 = arith.constant 3.125000e-02 : f32
    %0 = arith.mulf %arg0, %cst_0 : f32
    %1 = arith.mulf %arg2, %0 : f32
    %2 = arith.mulf %arg1, %cst : f32
    %3 = arith.mulf %2, %arg3 : f32
    %4 = arith.negf %3 : f32
    return %1, %4 : f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "bias"}, %arg2: f32 {hstu.name = "dout"}, %arg3: f32 {hstu.name = "mean"}, %arg4: f32 {hstu.name = "rstd"}, %arg5: f32 {hstu.name = "statistic"}, %arg6: f32 {hstu.name = "statistic4"}, %arg7: f32 {hstu.name = "statistic5"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "dbias"}) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.subf %arg0, %arg3 : f32
    %1 = arith.mulf %0, %arg4 : f32
    %2 = arith.addf %1, %arg1 : f32
    %3 = arith.mulf %2, %cst_0 : f32
    %4 = math.tanh %3 : f32
    %5 = math.fma %cst_0, %4, %cst_0 : f32
    %6 = arith.mulf %5, %arg2 : f32
    %7 = arith.negf %4 : f32
    %8 = math.fma %7, %4, %cst : f32
    %9 = arith.mulf %arg2, %cst_0 : f32
    %10 = arith.mulf %arg0, %9 : f32
    %11 = arith.mulf %8, %10 : f32
    %12 = arith.mulf %11, %arg5 : f32
    %13 = arith.mulf %0, %arg6 : f32
    %14 = arith.addf %6, %arg7 : f32
    %15 = arith.addf %12, %14 : f32
    %16 = arith.addf %13, %15 : f32
    %17 = arith.mulf %11, %cst_0 : f32
    return %16, %17 : f32, f32
  }
}
