package continuation

import (
	"math"
	"sync/atomic"
)

// Reserve keeps a share of the tokens that an answer may have for its end. It may be
// used by several goroutines.
type Reserve struct {
	// Share is between 0 and 1, such as 0.3; 0: nothing is kept.
	Share float64

	requests, cut, needed, kept, spent atomic.Int64
}

// ReserveCounts says how often a reserve was needed.
type ReserveCounts struct {
	Requests int64 `json:"requests"` // with a reserve
	Cut      int64 `json:"cut"`      // answers that broke off at the first limit
	Needed   int64 `json:"needed"`   // of these, those that were open and could go on
	Kept     int64 `json:"kept"`     // tokens kept
	Spent    int64 `json:"spent"`    // tokens of them that were used
}

// First is how many of limit tokens the first request may use: all but the share, at
// least 1.
func (r *Reserve) First(limit int) int {
	if !(r.Share > 0) || limit <= 1 {
		return limit
	}
	kept := min(int(math.Round(float64(limit)*min(r.Share, 1))), limit-1)
	r.requests.Add(1)
	r.kept.Add(int64(kept))
	return limit - kept
}

// Rest is how many of limit tokens are left to go on with: those that [Reserve.First]
// kept if the answer is open, else none.
func (r *Reserve) Rest(limit int, t Truncation) int {
	if !(r.Share > 0) || limit <= 1 || !t.Cut {
		return 0
	}
	r.cut.Add(1)
	if !t.IsOpen() {
		return 0
	}
	r.needed.Add(1)
	return min(int(math.Round(float64(limit)*min(r.Share, 1))), limit-1)
}

// Spend counts tokens that were used of the reserve.
func (r *Reserve) Spend(tokens int) { r.spent.Add(int64(tokens)) }

// Counts returns what was counted.
func (r *Reserve) Counts() ReserveCounts {
	return ReserveCounts{r.requests.Load(), r.cut.Load(), r.needed.Load(), r.kept.Load(), r.spent.Load()}
}
