package local

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
)

func TestAdoption(t *testing.T) {
	deployed := func(command string, more ...corev1.Container) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "machine-controller-manager", Labels: map[string]string{"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"},
		}}
		d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "machine-controller-manager", Command: []string{command}}}, more...)
		return d
	}
	for name, tc := range map[string]struct {
		existing []client.Object
		provider string
		webhook  bool
		patches  int
		want     string
	}{
		"without a driver":       {existing: []client.Object{deployed("./machine-controller-manager")}, webhook: true, patches: 1},
		"the webhook is missing": {existing: []client.Object{deployed("./machine-controller-manager")}, patches: 1, want: "has no container"},
		"with a driver":          {existing: []client.Object{deployed("./machine-controller-manager", corev1.Container{Name: driverName})}, webhook: true},
		"of an earlier version":  {existing: []client.Object{deployed("/usr/local/bin/gardener")}, webhook: true},
		"none yet":               {webhook: true},
		"of another provider":    {existing: []client.Object{deployed("./machine-controller-manager")}, provider: "other", webhook: true},
	} {
		t.Run(name, func(t *testing.T) {
			provider := "local"
			if tc.provider != "" {
				provider = tc.provider
			}
			patches := 0
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(tc.existing, &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"shoot.gardener.cloud/provider": provider}},
			})...).WithInterceptorFuncs(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
				patches++
				if d := o.(*appsv1.Deployment); tc.webhook { //nolint:forcetypeassert // nothing else is patched
					controlplane.SetContainer(&d.Spec.Template.Spec, corev1.Container{Name: driverName})
				}
				return nil
			}}).Build()
			got := ""
			if err := (&adoption{client: c, reader: c}).adopt(t.Context()); err != nil {
				got = err.Error()
			}
			if patches != tc.patches || tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%d patches, error %q; want %d, %q", patches, got, tc.patches, tc.want)
			}
		})
	}
}
