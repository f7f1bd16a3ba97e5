package clusterautoscaler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// failingOnce is a sink that responds to the first attempt with an error.
type failingOnce struct {
	record.EventSink
	err      error
	attempts []string
}

func (f *failingOnce) Create(event *corev1.Event) (*corev1.Event, error) {
	f.attempts = append(f.attempts, event.Reason)
	if len(f.attempts) == 1 {
		return nil, f.err
	}
	return event, nil
}

// The API server cannot write an event at the moment, as its etcd restarts: it is written some seconds later. One that it refuses is not tried again.
func TestEventsAreWrittenLater(t *testing.T) {
	events := schema.GroupResource{Resource: "events"}
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"the request took too long": {apierrors.NewTimeoutError("request timed out", 0), 2},
		"etcd has no leader":        {apierrors.NewInternalError(errors.New("etcdserver: no leader")), 2},
		"too many requests":         {apierrors.NewTooManyRequestsError("busy"), 2},
		"it is not available":       {apierrors.NewServiceUnavailable("shutting down"), 2},
		"the connection broke":      {errors.New("EOF"), 2},
		"the event is refused":      {apierrors.NewForbidden(events, "e", errors.New("no")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
				to := &failingOnce{err: tc.err}
				broadcaster.StartRecordingToSink(&sink{EventSink: to})
				recorder := broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: Name})
				recorder.Event(pendingPod(time.Now()), corev1.EventTypeNormal, "TriggeredScaleUp", "a node comes")
				time.Sleep(time.Minute) //nolint:forbidigo // time is not real here
				broadcaster.Shutdown()
				synctest.Wait()
				if len(to.attempts) != tc.want {
					t.Errorf("attempts to write events: %q, want %d", to.attempts, tc.want)
				}
			})
		})
	}
}

// eventsOf is an API server that accepts events after some time, and names their messages. It responds with an error to those in failing, and not at all to
// those in hanging.
func eventsOf(took time.Duration, failing, hanging string, written *[]string) *rest.Config {
	return &rest.Config{Host: "https://shoot.example.com", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		event := &corev1.Event{}
		if err := errors.Join(err, json.Unmarshal(body, event)); err != nil {
			return nil, err
		}
		response := func(code int) *http.Response {
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
		}
		switch event.Message {
		case hanging:
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(time.Minute):
				return response(http.StatusGatewayTimeout), nil
			}
		case failing:
			return response(http.StatusInternalServerError), nil
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(took):
		}
		*written = append(*written, event.Message)
		return response(http.StatusCreated), nil
	})}
}

// The process is stopped: events that are queued are written, as far as that does not take long.
func TestEventsAreFlushed(t *testing.T) {
	for name, tc := range map[string]struct {
		took, within time.Duration
		want         int
	}{
		"they are written":  {50 * time.Millisecond, 500 * time.Millisecond, 3},
		"it takes too long": {time.Hour, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var written []string
				ctx, cancel := context.WithCancel(t.Context())
				recorder, flush, err := newEvents(ctx, eventsOf(tc.took, "", "", &written))
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					recorder.Event(pendingPod(time.Now()), corev1.EventTypeNormal, fmt.Sprint("Reason", i), fmt.Sprint(i))
				}
				cancel()
				began := time.Now()
				flush()
				if took := time.Since(began); took > tc.within {
					t.Errorf("it took %s, want %s at most", took, tc.within)
				}
				if len(written) != tc.want {
					t.Errorf("written are %q, want %d", written, tc.want)
				}
				time.Sleep(time.Minute) //nolint:forbidigo // time is not real here: the request ends
			})
		})
	}
}

// The API server fails to write one event, or does not respond: others wait for a minute at most.
func TestEventThatIsNotWritten(t *testing.T) {
	for name, tc := range map[string]struct{ failing, hanging string }{
		"it fails":           {failing: "first"},
		"it has no response": {hanging: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var written []string
				recorder, flush, err := newEvents(t.Context(), eventsOf(0, tc.failing, tc.hanging, &written))
				if err != nil {
					t.Fatal(err)
				}
				for _, message := range []string{"first", "second"} {
					recorder.Event(pendingPod(time.Now()), corev1.EventTypeNormal, message, message)
				}
				time.Sleep(time.Minute + time.Second) //nolint:forbidigo // time is not real here
				flush()
				if len(written) != 1 || written[0] != "second" {
					t.Errorf("written are %q, want the second one", written)
				}
			})
		})
	}
}
