package vpnseedserver

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/golden"
)

func TestLimitsFor(t *testing.T) {
	const MiB = 1 << 20
	for nodes, want := range map[int32]limits{
		0:             {proxies: 64, streams: 2048, memory: 520 * MiB},
		32:            {proxies: 64, streams: 2048, memory: 520 * MiB},
		33:            {proxies: 128, streams: 3072, memory: 656 * MiB},
		math.MaxInt32: {proxies: 16384, streams: 16384, memory: 4352 * MiB},
	} {
		if diff := cmp.Diff(want, limitsFor(nodes), cmp.AllowUnexported(limits{})); diff != "" {
			t.Errorf("limitsFor(%d) (-want +got):\n%s", nodes, diff)
		}
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "shoot--dev--first", Image: "registry.example/gardener:v1", Replicas: 2, Spread: []string{corev1.LabelHostname},
		ServerSecret: "vpn-seed-server-1", CASecret: "ca-vpn-bundle-1", Host: "tunnel.first.dev.internal.example.com",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects, gatewayv1.Install)
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			if err := tunnel.NewServerCommand().ParseFlags(deployment.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
				t.Error(err)
			}
		}
	}
}
