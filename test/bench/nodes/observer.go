package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

// state is what is in the shoot at a moment.
type state struct {
	at time.Time
	// pods are those of the benchmark, and running those of them that run.
	pods, running int
	// nodes are all, and ready those of them that are Ready.
	nodes, ready int
}

// mark is the begin of a step.
type mark struct {
	text string
	at   time.Time
}

// observer records pods and nodes of a shoot as they change.
type observer struct {
	cancel  context.CancelFunc
	watches sync.WaitGroup
	errs    []error

	lock    sync.Mutex
	states  []state
	marks   []mark
	changed chan struct{} // closed and replaced after each change
}

func observe(ctx context.Context, c client.WithWatch) *observer {
	ctx, cancel := context.WithCancel(ctx)
	o := &observer{cancel: cancel, changed: make(chan struct{})}
	o.watches.Go(func() {
		record(ctx, o, c, &corev1.PodList{}, func(s *state, pods []*corev1.Pod) {
			s.pods, s.running = len(pods), 0
			for _, pod := range pods {
				if pod.Status.Phase == corev1.PodRunning {
					s.running++
				}
			}
		}, client.InNamespace(metav1.NamespaceDefault))
	})
	o.watches.Go(func() {
		record(ctx, o, c, &corev1.NodeList{}, func(s *state, nodes []*corev1.Node) {
			s.nodes, s.ready = len(nodes), 0
			for _, node := range nodes {
				if kube.NodeReady(node) == nil {
					s.ready++
				}
			}
		})
	})
	return o
}

// errObserving keeps a watch open.
var errObserving = errors.New("the benchmark goes on")

// record adds a state after each change of the objects of a kind, until ctx is done.
func record[T client.Object](ctx context.Context, o *observer, c client.WithWatch, list client.ObjectList, count func(*state, []T), options ...client.ListOption) {
	err := kube.Await(ctx, c, list, func(objects []T) error {
		o.lock.Lock()
		defer o.lock.Unlock()
		now := state{}
		if len(o.states) > 0 {
			now = o.states[len(o.states)-1]
		}
		before := now
		count(&now, objects)
		if now == before {
			return errObserving
		}
		now.at = time.Now()
		o.states = append(o.states, now)
		close(o.changed)
		o.changed = make(chan struct{})
		return errObserving
	}, nil, options...)
	if !errors.Is(err, errObserving) && ctx.Err() == nil {
		o.lock.Lock()
		defer o.lock.Unlock()
		o.errs = append(o.errs, err)
	}
}

func (o *observer) mark(text string) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.marks = append(o.marks, mark{text, time.Now()})
}

// await waits until a state is as wanted that was seen after the call.
func (o *observer) await(ctx context.Context, done func(state) bool) error {
	begin := time.Now()
	for {
		o.lock.Lock()
		var last state
		if len(o.states) > 0 {
			last = o.states[len(o.states)-1]
		}
		changed := o.changed
		o.lock.Unlock()
		if last.at.After(begin) && done(last) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("there are %d pods, %d of them run, on %d nodes, %d of them ready", last.pods, last.running, last.nodes, last.ready)
		}
	}
}

// stop ends the observation.
func (o *observer) stop() error {
	o.cancel()
	o.watches.Wait()
	return errors.Join(o.errs...)
}
