package contract

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// RunContainerRuntime runs the suite for ContainerRuntimes. A shoot has one of a type for each pool, and they share what is for the whole shoot, such as a
// RuntimeClass: it has to exist until the last of them is deleted. New returns a ContainerRuntime of another pool each time, Fulfilled checks what is for the
// pool and for the shoot, and Gone what is for the pool only.
func RunContainerRuntime(t *testing.T, suite Suite) {
	t.Helper()
	Run(t, suite)
	t.Run("delete one of two pools", newRun(suite).pools)
}

func (s *run) pools(t *testing.T) {
	one, two := s.create(t, constants.GardenerOperationReconcile, nil), s.create(t, constants.GardenerOperationReconcile, nil)
	s.await(t, one, done(corev1beta1.LastOperationTypeCreate))
	s.await(t, two, done(corev1beta1.LastOperationTypeCreate))
	s.fulfilled(t, one)
	s.fulfilled(t, two)
	s.delete(t, one)
	s.gone(t, one)
	s.fulfilled(t, two)
	s.delete(t, two)
	s.gone(t, two)
}
