// Package ferry moves passengers over a river.
package ferry

import (
	"context"
	"fmt"

	river "example.org/water/river"
)

const Capacity = 40

const (
	North, South = iota, iota + 1
	Middle
)

var ErrFull = fmt.Errorf("the ferry is full")

var (
	departures int
	lastSeen   = map[string]river.Bank{}
)

// Boarder lets passengers on.
type Boarder interface {
	fmt.Stringer
	Board(ctx context.Context, p *Passenger) error
}

type (
	// Passenger waits for the ferry.
	Passenger struct {
		Name string
		Bank river.Bank
	}
	Fare = float64
)

type Queue[T any] struct {
	*river.Gauge
	waiting []T
}

type Visit func(p *Passenger) bool

// Push adds one to the queue.
func (q *Queue[T]) Push(item T) {
	q.waiting = append(q.waiting, item)
	q.Gauge.Note(len(q.waiting))
}

func (Passenger) String() string { return "passenger" }

func NewQueue[T any](size int) *Queue[T] {
	const spare = 2
	return &Queue[T]{waiting: make([]T, 0, size+spare)}
}

func cross(ctx context.Context, b Boarder) (err error) {
	defer func() { departures++ }()
	return b.Board(ctx, &Passenger{Name: convert[string]("x")})
}
