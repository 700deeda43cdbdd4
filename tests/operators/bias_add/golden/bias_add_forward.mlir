module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "bias"}, %arg2: f32 {hstu.name = "beta"}) -> (f32 {hstu.name = "out"}) {
    %0 = arith.mulf %arg1, %arg2 : f32
    %1 = arith.addf %arg0, %0 : f32
    return %1 : f32
  }
}
