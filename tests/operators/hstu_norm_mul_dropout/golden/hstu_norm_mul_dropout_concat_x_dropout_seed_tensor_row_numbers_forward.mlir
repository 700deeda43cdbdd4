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
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "eps"}, %arg3: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "mean"}, f32 {hstu.name = "rstd"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_0 : f32
    %1 = arith.addf %arg3, %0 : f32
    %2 = arith.mulf %0, %arg0 : f32
    %3 = arith.subf %arg1, %2 : f32
    %4 = arith.maximumf %3, %cst : f32
    %5 = arith.mulf %4, %cst_0 : f32
    %6 = arith.addf %5, %arg2 : f32
    %7 = math.rsqrt %6 : f32
    return %1, %7 : f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "bias"}, %arg4: f32 {hstu.name = "dropout_ratio"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 0 : i64, offset = "offset", seed = "seed"}}, %arg6: f32 {hstu.name = "random2", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}, %arg7: f32 {hstu.name = "mean"}, %arg8: f32 {hstu.name = "rstd"}) -> (f32 {hstu.name = "out_x"}, f32 {hstu.name = "out_y"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %0 = arith.addf %arg4, %cst_1 : f32
    %1 = arith.cmpf oge, %arg5, %0 : f32
    %2 = arith.subf %0, %cst_1 : f32
    %3 = arith.subf %cst_0, %2 : f32
    %4 = arith.divf %cst_0, %3 : f32
    %5 = arith.select %1, %4, %cst : f32
    %6 = arith.mulf %arg0, %5 : f32
    %7 = arith.subf %arg0, %arg7 : f32
    %8 = arith.mulf %7, %arg8 : f32
    %9 = arith.mulf %8, %arg2 : f32
    %10 = arith.addf %9, %arg3 : f32
    %11 = arith.mulf %arg1, %10 : f32
    %12 = arith.cmpf oge, %arg6, %0 : f32
    %13 = arith.select %12, %4, %cst : f32
    %14 = arith.mulf %11, %13 : f32
    return %6, %14 : f32, f32
  }
}
