package lifecycle

import (
	"testing"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/test/constants"
)

// Extensions of the original find and change objects by names and values. TestForeignExtension in test/integration/gardenlet compares what is left of them
// after an extension has changed the objects.
func TestConstantsThatExtensionsRelyOn(t *testing.T) {
	logf.SetLogger(logr.Discard())
	l, o := newLandscape(t), complete(func(o *observed.State) {
		workers(o)
		elastic(o)
		o.Shoot.Spec.Provider.WorkersSettings.SSHAccess.Enabled = true
		o.Shoot.Spec.Provider.Workers[0].CABundle = new("CA bundle")
		o.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}}
		o.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}
		o.CloudProvider = &usercredential.Credential{Kind: usercredential.Secret}
	})
	l.run(t, (*reconciler).reconcileFlow, o, -1)

	objects := constants.Read(t, l.seed)
	constants.Compare(t, objects)
	const nodes = "--nodes=1:3:shoot--dev--crazy-botany.shoot--dev--crazy-botany-a"
	if got := objects.At("Deployment/cluster-autoscaler", "spec template spec containers [name=cluster-autoscaler] command [--nodes=]"); got != nodes {
		t.Errorf("%s, want %s", got, nodes)
	}
}
