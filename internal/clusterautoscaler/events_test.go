package clusterautoscaler

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
				broadcaster.StartRecordingToSink(sink{to})
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
