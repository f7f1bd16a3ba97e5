package contract

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// HealthSuite describes the health checks of a kind.
type HealthSuite struct {
	// Client is a client of the API server.
	Client client.WithWatch
	// New returns an object of the kind that the extension can reconcile.
	New func() extensionsv1alpha1.Object
	// Condition is the type of the condition that the checks count for. The gardenlet reads only those that Shoots have.
	Condition corev1beta1.ConditionType
	// Heal makes what is checked healthy, and Break makes it unhealthy.
	Heal, Break func(*testing.T, extensionsv1alpha1.Object)
	// Timeout limits each step. Zero means a minute.
	Timeout time.Duration
}

// RunHealth runs the suite for health checks.
func RunHealth(t *testing.T, suite HealthSuite) {
	t.Helper()
	switch suite.Condition {
	case corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootSystemComponentsHealthy, corev1beta1.ShootEveryNodeReady, corev1beta1.ShootObservabilityComponentsHealthy:
	default:
		t.Errorf("Shoots have no condition %s that extensions contribute to", suite.Condition)
	}
	s := newRun(Suite{Client: suite.Client, New: suite.New, Timeout: suite.Timeout})
	obj := s.create(t, constants.GardenerOperationReconcile, nil)
	s.await(t, obj, done(corev1beta1.LastOperationTypeCreate))
	steps := []struct {
		name   string
		do     func(*testing.T, extensionsv1alpha1.Object)
		status corev1beta1.ConditionStatus
		reason string
	}{
		{"healthy", suite.Heal, corev1beta1.ConditionTrue, extensionsv1alpha1.ReasonSuccessful},
		{"unhealthy", suite.Break, corev1beta1.ConditionFalse, extensionsv1alpha1.ReasonUnsuccessful},
		{"healthy again", suite.Heal, corev1beta1.ConditionTrue, extensionsv1alpha1.ReasonSuccessful},
	}
	for _, step := range steps {
		step.do(t, obj)
		s.await(t, obj, func(o extensionsv1alpha1.Object) error {
			for _, c := range o.GetExtensionStatus().GetConditions() {
				if c.Type != suite.Condition {
					continue
				}
				if c.Status != step.status || c.Reason != step.reason || c.Message == "" || c.LastTransitionTime.IsZero() || c.LastUpdateTime.IsZero() {
					return fmt.Errorf("what is checked is %s, the condition is %+v", step.name, c)
				}
				return nil
			}
			return fmt.Errorf("what is checked is %s, and there is no condition %s", step.name, suite.Condition)
		})
	}
	if last := obj.GetExtensionStatus().GetLastOperation(); last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
		t.Errorf("health checks have changed the last operation: %+v", last)
	}
	s.delete(t, obj)
}
