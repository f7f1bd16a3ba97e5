package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// load is what the clients do, and the requests since the last cut.
type load struct {
	objects int
	data    []byte

	mu  sync.Mutex
	cur requests
}

// requests are how long requests took that got a response, how many of them the kube-apiserver rejected as too many, and how many failed otherwise.
type requests struct {
	took             []time.Duration
	rejected, failed int
}

// client returns a client with a connection of its own, whose requests are not limited, and counted until ctx is done.
func (l *load) client(ctx context.Context, config *rest.Config) (corev1client.CoreV1Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Timeout = time.Minute
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // connections are shared by those with the same function
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			start := time.Now()
			response, err := next.RoundTrip(r)
			status := 0
			if err == nil {
				status = response.StatusCode
			} else if ctx.Err() != nil { // the load has ended
				return response, err
			}
			l.add(status, time.Since(start))
			return response, err
		})
	})
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clients.CoreV1(), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// add counts a request by the status of its response, which is 0 without one.
func (l *load) add(status int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status == http.StatusTooManyRequests:
		l.cur.rejected++
	case status == 0 || status >= http.StatusInternalServerError:
		l.cur.failed++
	}
	if status != 0 {
		l.cur.took = append(l.cur.took, took)
	}
}

// cut returns the requests since the last call.
func (l *load) cut() requests {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.cur
	l.cur = requests{}
	return out
}

// run creates, reads, changes, lists and deletes objects as one client until ctx is done. What fails is counted, and the next is done.
func (l *load) run(ctx context.Context, c corev1client.CoreV1Interface, number int) {
	labels := map[string]string{"client": fmt.Sprint(number)}
	maps, secrets := c.ConfigMaps(metav1.NamespaceDefault), c.Secrets(metav1.NamespaceDefault)
	list := metav1.ListOptions{LabelSelector: fmt.Sprintf("client=%d", number)}
	for i := 0; ctx.Err() == nil; i++ {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("load-%d-%d", number, i), Labels: labels}
		oldest := fmt.Sprintf("load-%d-%d", number, i-2*l.objects)
		if i%2 == 0 {
			object := &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{"data": l.data}}
			_, _ = maps.Create(ctx, object, metav1.CreateOptions{})
			if current, err := maps.Get(ctx, meta.Name, metav1.GetOptions{}); err == nil {
				current.Data = map[string]string{"changed": "true"}
				_, _ = maps.Update(ctx, current, metav1.UpdateOptions{})
			}
			_, _ = maps.List(ctx, list)
			if i >= 2*l.objects {
				_ = maps.Delete(ctx, oldest, metav1.DeleteOptions{})
			}
		} else {
			object := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"data": l.data}}
			_, _ = secrets.Create(ctx, object, metav1.CreateOptions{})
			if current, err := secrets.Get(ctx, meta.Name, metav1.GetOptions{}); err == nil {
				current.Data["changed"] = []byte("true")
				_, _ = secrets.Update(ctx, current, metav1.UpdateOptions{})
			}
			_, _ = secrets.List(ctx, list)
			if i >= 2*l.objects {
				_ = secrets.Delete(ctx, oldest, metav1.DeleteOptions{})
			}
		}
	}
}
