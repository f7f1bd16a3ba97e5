package clusterautoscaler

import (
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
)

// sink writes events. A recorder gives up an event when an API server responds with any error, also if the event is as it should be: such as while its etcd
// restarts. With another type of error, as of a connection, it tries again some seconds later, for two minutes.
type sink struct{ record.EventSink }

// Create implements record.EventSink.
func (s sink) Create(event *corev1.Event) (*corev1.Event, error) {
	out, err := s.EventSink.Create(event)
	return out, unlessRefused(err)
}

// Patch implements record.EventSink.
func (s sink) Patch(before *corev1.Event, data []byte) (*corev1.Event, error) {
	out, err := s.EventSink.Patch(before, data)
	return out, unlessRefused(err)
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
