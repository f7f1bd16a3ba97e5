package gateway

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/test/behind"
)

func TestReportWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	class, gateway := &gatewayv1.GatewayClass{}, &gatewayv1.Gateway{}
	class.Name, class.Spec.ControllerName = "c", ControllerName
	gateway.Namespace, gateway.Name, gateway.Spec.GatewayClassName = "n", "g", "c"
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class, gateway).WithStatusSubresource(class, gateway).Build()
	behind.Case[*gatewayv1.Gateway]{
		API: api, Object: gateway, Changed: reportedChanged(),
		Status: func(g *gatewayv1.Gateway) any { return g.Status.Conditions[0].Reason },
		Other:  func(g *gatewayv1.Gateway) { g.Status.Conditions[0].Reason = "OfThePassBefore" },
		Pass: func(cache client.WithWatch) {
			r := &reporter{observer{client: cache, gateway: client.ObjectKeyFromObject(gateway), front: types.NamespacedName{Namespace: "n", Name: "front"}}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
