package lifecycle

import (
	"testing"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
)

func TestConcurrentSyncs(t *testing.T) {
	config := &operatorconfigv1alpha1.OperatorConfiguration{}
	operatorconfigv1alpha1.SetDefaults(config)
	if got := options(config).MaxConcurrentReconciles; got != 1 {
		t.Errorf("%d Gardens at once by default", got)
	}
	config.Controllers.Garden.ConcurrentSyncs = new(3)
	if got := options(config).MaxConcurrentReconciles; got != 3 {
		t.Errorf("%d Gardens at once, want what the configuration says", got)
	}
}
