module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dout"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %0 = arith.mulf %arg1, %arg3 : f32
    %1 = arith.mulf %arg2, %0 : f32
    return %arg0, %1 : f32, f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}) -> (f32 {hstu.name = "mean"}, f32 {hstu.name = "statistic"}) {
    %cst = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst : f32
    return %0, %arg1 : f32, f32
  }
  func.func @row_summands1(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dout"}, %arg4: f32 {hstu.name = "mean"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %0 = arith.subf %arg0, %arg4 : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.mulf %arg1, %arg3 : f32
    %3 = arith.mulf %arg2, %2 : f32
    %4 = arith.mulf %0, %3 : f32
    return %1, %4 : f32, f32
  }
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "eps"}, %arg3: f32 {hstu.name = "statistic"}) -> (f32 {hstu.name = "rstd"}, f32 {hstu.name = "statistic2"}, f32 {hstu.name = "statistic3"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %cst_0 = arith.constant -5.000000e-01 : f32
    %cst_1 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_1 : f32
    %1 = arith.addf %0, %arg2 : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.mulf %2, %cst_0 : f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.mulf %arg1, %cst : f32
    %7 = arith.mulf %5, %6 : f32
    %8 = arith.mulf %arg3, %2 : f32
    %9 = arith.negf %8 : f32
    %10 = arith.mulf %9, %cst_1 : f32
    return %2, %7, %10 : f32, f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "bias"}, %arg4: f32 {hstu.name = "dout"}, %arg5: f32 {hstu.name = "mean"}, %arg6: f32 {hstu.name = "rstd"}, %arg7: f32 {hstu.name = "statistic2"}, %arg8: f32 {hstu.name = "statistic3"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "du"}, f32 {hstu.name = "dweight"}, f32 {hstu.name = "dbias"}) {
    %0 = arith.mulf %arg1, %arg4 : f32
    %1 = arith.mulf %arg2, %0 : f32
    %2 = arith.mulf %arg6, %1 : f32
    %3 = arith.subf %arg0, %arg5 : f32
    %4 = arith.mulf %3, %arg7 : f32
    %5 = arith.addf %2, %arg8 : f32
    %6 = arith.addf %4, %5 : f32
    %7 = arith.mulf %3, %arg6 : f32
    %8 = arith.mulf %7, %arg2 : f32
    %9 = arith.addf %8, %arg3 : f32
    %10 = arith.mulf %9, %arg4 : f32
    %11 = arith.mulf %7, %0 : f32
    return %6, %10, %11, %0 : f32, f32, f32, f32
  }
}
