package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// journalInterval is the time between two writes, journalTimeout how long one may take.
	journalInterval, journalTimeout = 500 * time.Millisecond, 3 * time.Second
)

// connector returns a client of a shoot, whose address may have changed.
type connector func(context.Context) (client.WithWatch, error)

// entry is an object of a journal, and when its creation was acknowledged.
type entry struct {
	name string
	at   time.Time
}

// journal are objects that are written into a shoot, one after the other.
type journal struct {
	mu       sync.Mutex
	client   client.Client
	written  []entry
	last     time.Time // write
	longest  time.Duration
	attempts int
}

// run writes until the context ends. After a failure it asks for the address again.
func (j *journal) run(ctx context.Context, connect connector) {
	ticker := time.NewTicker(journalInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = j.write(ctx, connect) // counted by the longest time without a write
		}
	}
}

// write writes an object.
func (j *journal) write(ctx context.Context, connect connector) error {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	if j.client == nil {
		c, err := connect(ctx)
		if err != nil {
			return err
		}
		j.client = c
	}
	j.attempts++
	name := fmt.Sprintf("journal-%d", j.attempts)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{runLabel: "journal"}}}
	if err := j.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		j.client = nil
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if !j.last.IsZero() {
		j.longest = max(j.longest, now.Sub(j.last))
	}
	j.written, j.last = append(j.written, entry{name, now}), now
	return nil
}

// reset begins a period for outage.
func (j *journal) reset(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.longest, j.last = 0, now
}

// outage is the longest time without a write in this period.
func (j *journal) outage(now time.Time) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(j.longest, now.Sub(j.last))
}

// lost returns the objects that were acknowledged and are not there.
func (j *journal) lost(ctx context.Context, c client.Client) ([]entry, error) {
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{runLabel: "journal"}); err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for i := range list.Items {
		present[list.Items[i].Name] = true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.written), func(e entry) bool { return present[e.name] }), nil
}
