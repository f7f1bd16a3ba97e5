package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"gardener.cloud/gardener/internal/kube"
)

const (
	// proberApp is the label of the pods that probe the workload.
	proberApp = "prober"
	// logsInterval is how often logs are requested, logsTimeout how long that may take.
	logsInterval, logsTimeout = 500 * time.Millisecond, 5 * time.Second
	// silence is the time without lines after which a stream of logs counts as broken: a prober writes ten lines a second.
	silence = 5 * time.Second
)

// request is a request of a prober. It was answered unless it has a failure.
type request struct {
	at      time.Time
	failure string
}

// probes are the requests of probers in a shoot, and those for their logs, which go from the API server through the tunnel.
type probes struct {
	paused atomic.Bool // no answers are expected

	mu        sync.Mutex
	clientset kubernetes.Interface
	byProber  map[string]map[int64]request // by pod, and time in milliseconds
	logs      map[int64]request
	following map[string]bool
}

func newProbes(clientset kubernetes.Interface) *probes {
	return &probes{clientset: clientset, byProber: map[string]map[int64]request{}, logs: map[int64]request{}, following: map[string]bool{}}
}

// use switches to other credentials.
func (p *probes) use(clientset kubernetes.Interface) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clientset = clientset
}

func (p *probes) pods() corev1client.PodInterface {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clientset.CoreV1().Pods(metav1.NamespaceDefault)
}

// run collects until the context ends.
func (p *probes) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(logsInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		begin := time.Now()
		paused := p.paused.Load()
		pods, err := p.probers(ctx)
		for i := range pods {
			if p.isNew(pods[i].Name) {
				running.Go(func() { p.follow(ctx, pods[i].Name) })
			}
		}
		if err == nil {
			err = p.tail(ctx, pods)
		}
		if failure := ""; !paused && !p.paused.Load() && ctx.Err() == nil && !errors.Is(err, errNoProber) {
			if err != nil {
				failure = "logs: " + err.Error()
			}
			p.add(p.logs, request{begin, failure})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (p *probes) isNew(pod string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.following[pod]
	p.following[pod] = true
	return !known
}

func (p *probes) probers(ctx context.Context) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	list, err := p.pods().List(ctx, metav1.ListOptions{LabelSelector: "app=" + proberApp})
	if err != nil {
		return nil, err
	}
	ready := func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil && kube.PodReady(&pod) == nil }
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !ready(pod) }), nil
}

var errNoProber = errors.New("no prober runs")

// tail requests a line of logs of any prober.
func (p *probes) tail(ctx context.Context, pods []corev1.Pod) error {
	if len(pods) == 0 {
		return errNoProber
	}
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	options := &corev1.PodLogOptions{TailLines: new(int64(1))}
	_, err := p.pods().GetLogs(pods[0].Name, options).DoRaw(ctx)
	return err
}

// follow reads the logs of a prober until its pod is gone. Just after its start, a kubelet does not know its pods either, so the logs are
// followed again if the pod still exists.
func (p *probes) follow(ctx context.Context, pod string) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.following, pod)
	}()
	since := time.Now().Add(-time.Hour)
	for ctx.Err() == nil {
		err := p.read(ctx, pod, &since)
		if apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-time.After(logsInterval):
		case <-ctx.Done():
		}
	}
}

func (p *probes) read(ctx context.Context, pod string, since *time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	options := &corev1.PodLogOptions{Follow: true, SinceTime: new(metav1.NewTime(since.Add(-silence)))}
	stream, err := p.pods().GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		watchdog.Reset(silence)
		first, result, _ := strings.Cut(lines.Text(), " ")
		millis, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			continue
		}
		r := request{at: time.UnixMilli(millis)}
		if r.at.After(*since) {
			*since = r.at
		}
		if result != "ok" {
			r.failure = result
		}
		p.mu.Lock()
		if p.byProber[pod] == nil {
			p.byProber[pod] = map[int64]request{}
		}
		requests := p.byProber[pod]
		p.mu.Unlock()
		p.add(requests, r)
	}
	return nil
}

func (p *probes) add(to map[int64]request, r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to[r.at.UnixMilli()] = r
}

// known waits until all requests before a time are known: later ones of each prober have been read. A prober that is lost with its machine
// writes no more, and there are no requests before there were probers.
func (p *probes) known(ctx context.Context, until time.Time) error {
	return again(ctx, func() error {
		pods, err := p.probers(ctx)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range pods {
			if !slices.ContainsFunc(slices.Collect(maps.Values(p.byProber[pods[i].Name])), func(r request) bool { return r.at.After(until) }) {
				return fmt.Errorf("%s has not reported requests after %s", pods[i].Name, until.Format(time.TimeOnly))
			}
		}
		return nil
	})
}

// outcome is the result of requests.
type outcome struct {
	requests, failed int
	// gap is the longest time in which no request of the same prober succeeded.
	gap time.Duration
	// failures are the errors, with their number.
	failures map[string]int
}

// between returns the results of requests to the workload, and for logs, in a period.
func (p *probes) between(begin, end time.Time) (workload, logs outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, prober := range slices.Sorted(maps.Keys(p.byProber)) {
		workload.count(p.byProber[prober], begin, end)
	}
	logs.count(p.logs, begin, end)
	return workload, logs
}

func (o *outcome) count(requests map[int64]request, begin, end time.Time) {
	var last time.Time // zero until the first one in this period, as a prober may have started later
	for _, millis := range slices.Sorted(maps.Keys(requests)) {
		r := requests[millis]
		if r.at.Before(begin) || r.at.After(end) {
			continue
		}
		if last.IsZero() {
			last = r.at
		}
		o.requests++
		if r.failure == "" {
			o.gap, last = max(o.gap, r.at.Sub(last)), r.at
			continue
		}
		o.failed++
		if o.failures == nil {
			o.failures = map[string]int{}
		}
		o.failures[r.failure]++
		o.gap = max(o.gap, r.at.Sub(last))
	}
}
