package flow

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Parallel runs functions concurrently and returns all their errors when the last one has returned. A panic becomes an error.
func Parallel(ctx context.Context, functions ...func(ctx context.Context) error) error {
	errs := make([]error, len(functions))
	var group sync.WaitGroup
	for i, run := range functions {
		group.Go(func() { errs[i] = caught(func() error { return run(ctx) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Latest runs a slow function in the background, such as one that writes a status to an API server while a flow runs. Offer returns at once;
// of the values that are offered during a call, only the latest is kept. Offer must not be called concurrently; stop waits until the last value
// was handled.
func Latest[T any](handle func(T)) (offer func(T), stop func()) { return LatestEvery(0, handle) }

// LatestEvery does the same, with at least a period between two calls. The last value is handled at once when it stops.
func LatestEvery[T any](period time.Duration, handle func(T)) (offer func(T), stop func()) {
	stopped := make(chan struct{})
	values := make(chan T, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for value := range values {
			handle(value)
			if period > 0 {
				select {
				case <-time.After(period):
				case <-stopped:
				}
			}
		}
	}()
	offer = func(value T) {
		select {
		case <-values: // overtaken
		default:
		}
		values <- value
	}
	return offer, sync.OnceFunc(func() {
		close(stopped)
		close(values)
		<-done
	})
}
