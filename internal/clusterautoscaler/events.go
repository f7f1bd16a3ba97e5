package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

const (
	// eventRequestTimeout is how long the response to the write of an event may take.
	eventRequestTimeout = 5 * time.Second
	// eventTimeout is how long writing an event is tried. Others wait meanwhile.
	eventTimeout = 45 * time.Second
	// flushTimeout is how long events are still written when the process ends. Its pod has 5 s.
	flushTimeout = time.Second
	// flushReason is the reason of an event that is not written: those before it have been, or were given up, when it is its turn.
	flushReason = "Flush"
)

// newEvents returns a recorder of events in a shoot, and a function that writes those that are left, and ends it.
func newEvents(ctx context.Context, shoot *rest.Config) (record.EventRecorder, func(), error) {
	config := rest.CopyConfig(shoot)
	config.Timeout = eventRequestTimeout
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, Name))
	if err != nil {
		return nil, nil, fmt.Errorf("client for events of the shoot: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx))) // otherwise, it drops events when the process is stopped
	to := &sink{EventSink: &typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}, flushed: make(chan struct{})}
	broadcaster.StartRecordingToSink(to)
	recorder := broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: Name})
	return recorder, func() {
		recorder.Event(&corev1.ObjectReference{Namespace: metav1.NamespaceSystem, Name: Name}, corev1.EventTypeNormal, flushReason, "")
		select {
		case <-to.flushed:
		case <-time.After(flushTimeout):
		}
		broadcaster.Shutdown()
	}, nil
}

// sink writes events. A recorder gives up an event when an API server responds with any error, also if the event is as it should be: such as while its etcd
// restarts. With another type of error, as of a connection, it tries again some seconds later, for two minutes, or longer if responses are slow. A sink gives
// up an event after a shorter time, as there may be a reason that others do not have: such as a webhook. It is for one recorder, which writes one event after
// the other.
type sink struct {
	record.EventSink
	// event is the last one that was to be written, and since is when that was tried first.
	event *corev1.Event
	since time.Time
	// flushed is closed when events are flushed.
	flushed chan struct{}
}

// Create implements record.EventSink.
func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	if event.Reason == flushReason {
		close(s.flushed)
		return event, nil
	}
	s.begin(event)
	out, err := s.EventSink.Create(event)
	return out, s.limit(err)
}

// Patch implements record.EventSink.
func (s *sink) Patch(before *corev1.Event, data []byte) (*corev1.Event, error) {
	s.begin(before)
	out, err := s.EventSink.Patch(before, data)
	return out, s.limit(err)
}

// begin begins to write an event, or tries it again.
func (s *sink) begin(event *corev1.Event) {
	if s.event != event {
		s.event, s.since = event, time.Now()
	}
}

// limit makes an error of the last event one with which the recorder tries again if it may pass, unless that has taken too long.
func (s *sink) limit(err error) error {
	if err = unlessRefused(err); err != nil && time.Since(s.since) >= eventTimeout {
		return apierrors.NewTimeoutError(fmt.Sprintf("gave up after %s: %v", eventTimeout, err), 0) // recorders give up an event with any status error
	}
	return err
}

// passing is the error of an API server that may accept the same request later.
type passing struct{ error }

// unlessRefused hides the status in an error that may pass: recorders give up an event with any status error.
func unlessRefused(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && (status.Status().Code >= http.StatusInternalServerError || status.Status().Code == http.StatusTooManyRequests) {
		return passing{err}
	}
	return err
}
