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
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "eps"}, %arg3: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "mean"}, f32 {hstu.name = "rstd"}, f32 {hstu.name = "statistic"}, f32 {hstu.name = "statistic2"}) {
    %cst = arith.constant -5.000000e-01 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_1 : f32
    %1 = arith.addf %arg3, %0 : f32
    %2 = arith.mulf %0, %arg0 : f32
    %3 = arith.subf %arg1, %2 : f32
    %4 = arith.maximumf %3, %cst_0 : f32
    %5 = arith.mulf %4, %cst_1 : f32
    %6 = arith.addf %5, %arg2 : f32
    %7 = math.rsqrt %6 : f32
    %8 = arith.mulf %7, %7 : f32
    %9 = arith.mulf %7, %cst : f32
    %10 = arith.mulf %8, %9 : f32
    %11 = arith.mulf %7, %cst_1 : f32
    return %1, %7, %10, %11 : f32, f32, f32, f32
  }
  func.func @row_summands2(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "weight"}, %arg2: f32 {hstu.name = "bias"}, %arg3: f32 {hstu.name = "dout"}, %arg4: f32 {hstu.name = "mean"}, %arg5: f32 {hstu.name = "rstd"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %cst = arith.constant 2.500000e-01 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 5.000000e-01 : f32
    %0 = arith.subf %arg0, %arg4 : f32
    %1 = arith.mulf %0, %arg5 : f32
    %2 = arith.mulf %1, %arg1 : f32
    %3 = arith.addf %2, %arg2 : f32
    %4 = arith.mulf %3, %cst_1 : f32
    %5 = math.tanh %4 : f32
    %6 = arith.negf %5 : f32
    %7 = math.fma %6, %5, %cst_0 : f32
    %8 = arith.mulf %arg3, %cst : f32
    %9 = arith.mulf %arg0, %8 : f32
    %10 = arith.mulf %7, %9 : f32
    %11 = arith.mulf %arg1, %10 : f32
    %12 = arith.mulf %0, %11 : f32
    return %12, %11 : f32, f32
  }
  func.func @row_statistics2(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "statistic"}, %arg3: f32 {hstu.name = "statistic2"}) -> (f32 {hstu.name = "statistic3"}, f32 {hstu.name = "statistic4"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %0 = arith.mulf %arg0, %cst : f32
    %1 = arith.mulf %arg2, %0 : f32
    %2 = arith.mulf %arg1, %arg3 : f32
    %3 = arith.negf %2 : f32
    return %1, %3 : f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "weight"}, %arg2: f32 {hstu.name = "bias"}, %arg3: f32 {hstu.name = "dout"}, %arg4: f32 {hstu.name = "mean"}, %arg5: f32 {hstu.name = "rstd"}, %arg6: f32 {hstu.name = "statistic3"}, %arg7: f32 {hstu.name = "statistic4"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "dweight"}, f32 {hstu.name = "dbias"}) {
    %cst = arith.constant 2.500000e-01 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 5.000000e-01 : f32
    %0 = arith.subf %arg0, %arg4 : f32
    %1 = arith.mulf %0, %arg5 : f32
    %2 = arith.mulf %1, %arg1 : f32
    %3 = arith.addf %2, %arg2 : f32
    %4 = arith.mulf %3, %cst_1 : f32
    %5 = math.tanh %4 : f32
    %6 = math.fma %cst_1, %5, %cst_1 : f32
    %7 = arith.mulf %6, %arg3 : f32
    %8 = arith.negf %5 : f32
    %9 = math.fma %8, %5, %cst_0 : f32
    %10 = arith.mulf %arg3, %cst : f32
    %11 = arith.mulf %arg0, %10 : f32
    %12 = arith.mulf %9, %11 : f32
    %13 = arith.mulf %arg1, %12 : f32
    %14 = arith.mulf %arg5, %13 : f32
    %15 = arith.mulf %0, %arg6 : f32
    %16 = arith.addf %7, %arg7 : f32
    %17 = arith.addf %14, %16 : f32
    %18 = arith.addf %15, %17 : f32
    %19 = arith.mulf %1, %12 : f32
    return %18, %19, %12 : f32, f32, f32
  }
}
