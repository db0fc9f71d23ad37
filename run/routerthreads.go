package run

import "time"

// threadTimes are the processor times so far of the receive threads of a lab's router, by
// interface; none of a real router.
func (r *router) threadTimes() map[string]time.Duration {
	if r.node == nil {
		return nil
	}
	list := map[string]time.Duration{}
	for _, i := range r.node.Interfaces() {
		if t, err := r.node.ThreadTime(i.Name); err == nil {
			list[i.Name] = t
		}
	}
	return list
}

// threadLoad returns what the busiest thread took of one core in a measured part of so many
// seconds, and all together in cores; 0 without threads. They do nothing once packets end,
// so that the second reading may be late.
func threadLoad(before, after map[string]time.Duration, seconds float64) (busiest, sum float64) {
	for iface, to := range after {
		if from, known := before[iface]; known && to > from && seconds > 0 {
			ratio := (to - from).Seconds() / seconds
			sum += ratio
			busiest = max(busiest, min(ratio, 1))
		}
	}
	return busiest, sum
}
