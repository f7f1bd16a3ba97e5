package lifecycle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func advertisedIngress(namespace, name string, labels map[string]string, tls ...[]string) *networkingv1.Ingress {
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	ingress.Spec.Rules = []networkingv1.IngressRule{{Host: "plain.example.com"}}
	for _, hosts := range tls {
		ingress.Spec.TLS = append(ingress.Spec.TLS, networkingv1.IngressTLS{Hosts: hosts})
	}
	return ingress
}

// Names are those of the original, by which clients find an address.
func TestEndpoints(t *testing.T) {
	const namespace = "shoot--dev--crazy-botany"
	advertise, application := "endpoint.shoot.gardener.cloud/advertise", "endpoint.shoot.gardener.cloud/application"
	yes := map[string]string{advertise: "true"}
	route := func(labels map[string]string, hosts ...gatewayv1.Hostname) client.Object {
		return &gatewayv1.TLSRoute{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "logs", Labels: labels}, Spec: gatewayv1.TLSRouteSpec{Hostnames: hosts},
		}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    []corev1beta1.ShootAdvertisedAddress
	}{
		"nothing": {},
		"not to be advertised": {objects: []client.Object{
			advertisedIngress(namespace, "a", nil, []string{"a.example.com"}),
			advertisedIngress(namespace, "b", map[string]string{advertise: "false"}, []string{"b.example.com"}),
			advertisedIngress("shoot--dev--other", "c", yes, []string{"c.example.com"}),
			route(nil, "d.example.com"),
		}},
		"Ingresses": {
			objects: []client.Object{
				advertisedIngress(namespace, "prometheus", yes, []string{"p.example.com"}),
				advertisedIngress(namespace, "plutono", map[string]string{advertise: "true", application: "plutono"},
					[]string{"*.example.com", "g.example.com"}, []string{"h.example.com"}),
				advertisedIngress(namespace, "without-tls", yes),
			},
			want: []corev1beta1.ShootAdvertisedAddress{
				{Name: "ingress/plutono/0/1", URL: "https://g.example.com", Application: new("plutono")},
				{Name: "ingress/plutono/1/0", URL: "https://h.example.com", Application: new("plutono")},
				{Name: "ingress/prometheus/0/0", URL: "https://p.example.com"},
			},
		},
		"a TLSRoute": {
			objects: []client.Object{route(map[string]string{advertise: "true", application: "vali"}, "l.example.com", "*.l.example.com", "m.example.com")},
			want: []corev1beta1.ShootAdvertisedAddress{
				{Name: "tlsroute/logs/0", URL: "https://l.example.com", Application: new("vali")},
				{Name: "tlsroute/logs/2", URL: "https://m.example.com", Application: new("vali")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seed := stagetest.New(t).Seed
			for _, object := range tc.objects {
				if err := seed.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			got, err := observer{seedAPI: seed}.endpoints(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("endpoints() (-want +got):\n%s", diff)
			}
		})
	}
}

// What an extension exposes while the shoot is reconciled is advertised when that is done, and what was there before all the time.
func TestEndpointsAreAdvertised(t *testing.T) {
	l, f := newLandscape(t), reconciled()
	shoot, profile, yes := f.shoot, &corev1beta1.CloudProfile{}, map[string]string{constants.ShootEndpointAdvertise: "true"}
	namespace := "shoot--dev--" + shoot.Name
	shoot.Generation++
	shoot.Spec.CloudProfile, shoot.Spec.Kubernetes.Version = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, "1.36.3"
	f.seed.Name, profile.Name = "here", "local"
	if err := errors.Join(
		l.garden.Create(t.Context(), shoot), l.garden.Create(t.Context(), f.seed), l.garden.Create(t.Context(), profile),
		l.createProject(t.Context(), "dev", shoot.Namespace),
		l.seed.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, UID: "u", Annotations: map[string]string{constants.ShootUIDAnnotation: string(shoot.UID)},
		}}),
		l.seed.Create(t.Context(), advertisedIngress(namespace, "before", yes, []string{"b.example.com"})),
	); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		stored := &corev1beta1.Shoot{}
		if err := l.garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), stored); err != nil {
			t.Error(err)
		}
		var got []string
		for _, address := range stored.Status.AdvertisedAddresses {
			got = append(got, address.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("addresses %s (-want +got):\n%s", when, diff)
		}
	}
	var once sync.Once
	l.SeedAPI = interceptor.NewClient(l.seed, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			once.Do(func() {
				expect("when the operation has begun", "ingress/before/0/0")
				if err := l.seed.Create(ctx, advertisedIngress(namespace, "meanwhile", yes, []string{"m.example.com"})); err != nil {
					t.Error(err)
				}
			})
			return c.Apply(ctx, config, opts...)
		},
	})
	l.Clock, l.Config = clocktesting.NewFakePassiveClock(noon), f.config
	l.Config.RetryDuration = &metav1.Duration{Duration: time.Hour}
	if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); err != nil {
		t.Fatal(err)
	}
	expect("at the end", "ingress/before/0/0", "ingress/meanwhile/0/0")
}
