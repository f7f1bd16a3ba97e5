package main

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// latencies are the durations of requests, by verb and resource. Watches are left out.
type latencies struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

// latency is a summary of the requests with one verb for one resource in a step.
type latency struct {
	Requests int     `json:"requests"`
	P50      float64 `json:"p50Milliseconds"`
	P99      float64 `json:"p99Milliseconds"`
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// measured returns a configuration of clients whose requests are measured.
func (l *latencies) measured(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			start := time.Now()
			response, err := next.RoundTrip(r)
			if info, infoErr := requestInfo.NewRequestInfo(r); infoErr == nil && err == nil && info.Verb != "watch" {
				l.add(key(info), time.Since(start))
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// key is such as "patch shoots/status".
func key(info *request.RequestInfo) string {
	if info.Subresource != "" {
		return info.Verb + " " + info.Resource + "/" + info.Subresource
	}
	return info.Verb + " " + info.Resource
}

func (l *latencies) add(key string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.took == nil {
		l.took = map[string][]time.Duration{}
	}
	l.took[key] = append(l.took[key], took)
}

// cut returns the requests since the last call.
func (l *latencies) cut() map[string]latency {
	l.mu.Lock()
	took := l.took
	l.took = nil
	l.mu.Unlock()
	out := map[string]latency{}
	for key, durations := range took {
		slices.Sort(durations)
		quantile := func(q float64) float64 { return durations[int(q*float64(len(durations)-1))].Seconds() * 1000 }
		out[key] = latency{Requests: len(durations), P50: quantile(.5), P99: quantile(.99)}
	}
	return out
}
