package flow

import (
	"context"
	"errors"
	"sync"
)

// Parallel runs functions at once and returns all their errors when the last one is done. A panic becomes an error.
func Parallel(ctx context.Context, functions ...func(ctx context.Context) error) error {
	errs := make([]error, len(functions))
	var group sync.WaitGroup
	for i, run := range functions {
		group.Go(func() { errs[i] = caught(func() error { return run(ctx) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Latest makes a slow function fit where calls must return quickly: it runs in the background, one call after another, and
// of the values that come while it is busy, only the latest is kept. Offer from one goroutine at a time; the
// returned stop waits until the last value was handled. Use it for a status that is written to an API server while a flow runs.
func Latest[T any](handle func(T)) (offer func(T), stop func()) {
	values := make(chan T, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for value := range values {
			handle(value)
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
		close(values)
		<-done
	})
}
