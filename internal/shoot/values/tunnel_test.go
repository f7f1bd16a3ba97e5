package values

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// Nodes reach the tunnel through the gateway of the shoot's ExposureClass, like the kube-apiserver.
func TestTunnelHasTheGatewayOfTheShoot(t *testing.T) {
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(credentials.Values{SeedAPI: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	stagetest.Generate(t, set)
	o := observedtest.State()
	o.Gateway = client.ObjectKey{Namespace: "istio-ingress-handler-internet", Name: "gateway"}
	v, err := Source{State: o, Credentials: set, Images: images}.TunnelServer(1)
	if err != nil || v.Gateway != o.Gateway {
		t.Errorf("the Gateway is %v (%v), want %v", v.Gateway, err, o.Gateway)
	}
}
