// How a matrix product is cut into the chunks that threads claim: a run of weight panels times a stretch of rows.
#pragma once

#include "pack.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

struct LinearTask {
  int32_t first_panel, end_panel;
  int32_t first_row, end_row;
};

// Few rows: runs of panels, so that each thread reads long streams. Many rows: one panel, and the rows are cut into
// stretches that stay in a second-level cache while all panels go by, and further until every thread has several tasks,
// but no shorter than four tiles of `tile_rows`. The stretches are worth 95 -> 137 GFLOP/s at 512 rows of 2048 x 512 on one
// Ice Lake core, nothing at k = 576.
class LinearTasks {
 public:
  LinearTasks(const LinearArgs& args, int32_t num_threads, int32_t tile_rows)
      : rows_(args.rows), panels_((args.n + kPanel - 1) / kPanel) {
    const int32_t wanted = 8 * num_threads;
    const int32_t share = panels_ / wanted;
    run_ = args.rows > tile_rows || share < 1 ? 1 : share < 8 ? share : 8;
    column_parts_ = (panels_ + run_ - 1) / run_;
    constexpr int32_t kStretch = 96 << 10;  // float32 elements of x: 384 KiB
    const int32_t shortest = 4 * tile_rows, longest = kStretch / args.k > shortest ? kStretch / args.k : shortest;
    row_parts_ = (args.rows + longest - 1) / longest;
    while (column_parts_ * row_parts_ < wanted && args.rows / (row_parts_ + 1) >= shortest) ++row_parts_;
  }

  int32_t count() const { return rows_ > 0 ? column_parts_ * row_parts_ : 0; }

  LinearTask task(int32_t chunk) const {
    const int64_t part = chunk / column_parts_;
    const int32_t first = chunk % column_parts_ * run_;
    return {first, first + run_ < panels_ ? first + run_ : panels_, static_cast<int32_t>(rows_ * part / row_parts_),
            static_cast<int32_t>(rows_ * (part + 1) / row_parts_)};
  }

 private:
  int64_t rows_;
  int32_t panels_;
  int32_t run_ = 1;
  int32_t row_parts_ = 1;
  int32_t column_parts_ = 1;
};

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
