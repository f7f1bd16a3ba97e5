package lifecycle

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestSetGateways(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	class := func(name, handler string) client.Object {
		return &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class("public", "internet"), class("private", "dmz")).Build()
	namespace := observedtest.State().Namespace
	key := func(namespace string) client.ObjectKey {
		return client.ObjectKey{Namespace: namespace, Name: "gateway"}
	}
	ofSeed, ofZone, ofHandler := key("gateway"), key("gateway--zone--a"), key("istio-ingress-handler-internet")
	at := func(key client.ObjectKey, address string) client.Object {
		return &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Status:     gatewayv1.GatewayStatus{Addresses: []gatewayv1.GatewayStatusAddress{{Value: address}}},
		}
	}
	without := func(key client.ObjectKey) client.Object {
		return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	route := func(first client.ObjectKey, others ...client.ObjectKey) client.Object {
		return exposure.Objects(exposure.Values{Namespace: namespace, Service: "kube-apiserver", Gateway: first, Others: others})[0]
	}
	record := func(name, address string) client.Object {
		return &extensionsv1alpha1.DNSRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: extensionsv1alpha1.DNSRecordSpec{Values: []string{address}},
		}
	}
	for name, tc := range map[string]struct {
		class       *string
		zones       []string // of the control plane
		onlyOneZone bool     // of the seed
		disabled    bool
		seed        []client.Object
		want        client.ObjectKey
		others      []client.ObjectKey
		fails       string
	}{
		"a class without its handler, of a shoot that is there": {
			class: new("private"), seed: []client.Object{route(ofSeed, ofZone)}, want: ofSeed, others: []client.ObjectKey{ofZone},
		},
		"no class":                    {},
		"a class":                     {class: new("public"), want: ofHandler},
		"a class without its handler": {class: new("private"), fails: `the gardenlet of seed "s" has no handler "dmz", which ExposureClass "private" needs`},
		"a class that does not exist": {class: new("other"), fails: `read ExposureClass "other"`},
		"in a zone": {
			zones: []string{"a"}, seed: []client.Object{at(ofZone, "192.0.2.2")}, want: ofZone, others: []client.ObjectKey{ofSeed},
		},
		"in a zone, with a class": {
			class: new("public"), zones: []string{"a"}, seed: []client.Object{at(key("istio-ingress-handler-internet--zone--a"), "192.0.2.2")},
			want: key("istio-ingress-handler-internet--zone--a"), others: []client.ObjectKey{ofHandler},
		},
		"in a zone whose gateway has no address": {zones: []string{"a"}, seed: []client.Object{without(ofZone)}},
		"in a zone without a gateway":            {zones: []string{"a"}},
		"in a zone that the seed has no more":    {zones: []string{"x"}, seed: []client.Object{at(key("gateway--zone--x"), "192.0.2.2")}},
		"in several zones":                       {zones: []string{"a", "b"}, seed: []client.Object{at(ofZone, "192.0.2.2")}},
		"in a seed with one zone":                {zones: []string{"a"}, onlyOneZone: true, seed: []client.Object{at(ofZone, "192.0.2.2")}},
		"without gateways for zones":             {zones: []string{"a"}, disabled: true, seed: []client.Object{at(ofZone, "192.0.2.2")}},
		"the record of the former one is there": {
			zones: []string{"a"}, disabled: true, others: []client.ObjectKey{ofZone},
			seed: []client.Object{at(ofSeed, "192.0.2.1"), route(ofZone, ofSeed), record("internal", "192.0.2.1"), record("external", "192.0.2.2")},
		},
		"the records are of the present one": {
			zones: []string{"a"}, disabled: true,
			seed: []client.Object{at(ofSeed, "192.0.2.1"), route(ofZone, ofSeed), record("internal", "192.0.2.1"), record("external", "192.0.2.1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Seed.Name, o.Shoot.Spec.ExposureClassName, o.Zones = "s", tc.class, tc.zones
			if o.Seed.Spec.Provider.Zones = []string{"a", "b"}; tc.onlyOneZone {
				o.Seed.Spec.Provider.Zones = []string{"a"}
			}
			o.Seed.Spec.Settings = &corev1beta1.SeedSettings{LoadBalancerServices: &corev1beta1.SeedSettingLoadBalancerServices{
				ZonalIngress: &corev1beta1.SeedSettingLoadBalancerServicesZonalIngress{Enabled: new(!tc.disabled)},
			}}
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.seed...).Build()
			err := observer{gardenAPI: garden, seedAPI: seed, gateways: map[string]client.ObjectKey{"internet": ofHandler}}.setGateways(t.Context(), o)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || len(errorcode.Of(err)) > 0 {
					t.Errorf("error is %v with codes %v, want %q without codes", err, errorcode.Of(err), tc.fails)
				}
				return
			}
			if err != nil || o.Gateway != tc.want || !cmp.Equal(o.OtherGateways, tc.others) {
				t.Errorf("gateways are %v and %v, %v, want %v and %v", o.Gateway, o.OtherGateways, err, tc.want, tc.others)
			}
		})
	}
}
