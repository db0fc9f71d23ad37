package engine

import "pelt/model"

// Histogram gathers durations in fixed memory. Record may be called
// concurrently for different parts, never for the same one.
type Histogram interface {
	// Record adds n values of the given nanoseconds to one part.
	Record(part int, nanos, n int64)
	// Percentiles and Buckets sum up all parts. They must not run beside
	// Record, and return nil while nothing was recorded.
	Percentiles() *model.Percentiles
	Buckets() []model.Bucket
}

// NewHistogram makes a histogram with the given number of parts, usually one a stream.
type NewHistogram func(parts int) Histogram
