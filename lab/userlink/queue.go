package userlink

// queue holds what leaves at a time, the next one first; of those that leave at
// one time, the first that came goes first. Its zero value is empty.
type queue[T any] struct {
	heap  []due // four children each: half the levels, and they lie side by side
	items []T
	free  []uint32 // places in items
	count uint64   // of all that ever came
}

type due struct {
	at    int64
	order uint64
	item  uint32
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.order < o.order }

func (q *queue[T]) len() int { return len(q.heap) }

// next is when the first one leaves; there must be one.
func (q *queue[T]) next() int64 { return q.heap[0].at }

func (q *queue[T]) push(at int64, item T) {
	q.count++
	d := due{at: at, order: q.count}
	if k := len(q.free); k > 0 {
		d.item, q.free = q.free[k-1], q.free[:k-1]
		q.items[d.item] = item
	} else {
		d.item, q.items = uint32(len(q.items)), append(q.items, item)
	}
	h := append(q.heap, d)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !d.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i], q.heap = d, h
}

// pop takes the first one out; there must be one.
func (q *queue[T]) pop() (at int64, item T) {
	h := q.heap
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	for i := 0; len(h) > 0; {
		least := 4*i + 1
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least >= len(h) || !h[least].before(last) {
			h[i] = last
			break
		}
		h[i] = h[least]
		i = least
	}
	var none T
	item, q.items[first.item] = q.items[first.item], none
	q.free = append(q.free, first.item)
	return first.at, item
}
