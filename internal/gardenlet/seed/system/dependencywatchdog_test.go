package system

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/test/builder"
)

// Each part is there if its setting says so, and its health counts then.
func TestDependencyWatchdog(t *testing.T) {
	seedAPI := watchdogSeed(t)
	for _, tc := range []struct {
		prober, weeder bool
		want           []string
	}{
		{true, true, []string{"dependency-watchdog-prober", "dependency-watchdog-weeder"}},
		{true, false, []string{"dependency-watchdog-prober"}},
		{false, true, []string{"dependency-watchdog-weeder"}},
		{false, false, nil},
	} {
		seed := seedWithWatchdog(tc.prober, tc.weeder)
		if err := (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(seed).deployDependencyWatchdog(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, exist, checked := &appsv1.DeploymentList{}, []string(nil), []string(nil)
		if err := seedAPI.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			exist = append(exist, d.Name)
		}
		without := Components(&corev1beta1.Seed{}, nil)
		for _, object := range Components(seed, nil)[len(without):] {
			checked = append(checked, object.GetName())
		}
		slices.Sort(checked)
		if !slices.Equal(exist, tc.want) || !slices.Equal(checked, tc.want) {
			t.Errorf("prober %t, weeder %t: there are %q, and %q are checked", tc.prober, tc.weeder, exist, checked)
		}
	}
}

// Shoots whose controllers are scaled down when the prober is disabled get them back.
func TestDisabledProberLeavesNoProtection(t *testing.T) {
	protected := map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": "", "dependency-watchdog.gardener.cloud/replicas": "2", "a": "b"}
	deployment := func(namespace, name string, replicas int32, annotations map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: maps.Clone(annotations)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	ignored := maps.Clone(protected)
	ignored["dependency-watchdog.gardener.cloud/ignore-scaling"] = "true"
	refuse := true
	seedAPI := interceptor.NewClient(watchdogSeed(t,
		clusterOf(t, "shoot--a", corev1beta1.LastOperationTypeReconcile), clusterOf(t, "shoot--moves", corev1beta1.LastOperationTypeMigrate),
		deployment("shoot--a", "kube-controller-manager", 0, protected), deployment("shoot--a", "machine-controller-manager", 1, protected),
		deployment("shoot--a", "cluster-autoscaler", 0, ignored), deployment("shoot--a", "kube-scheduler", 0, protected),
		deployment("shoot--moves", "machine-controller-manager", 0, protected), deployment("shoot--moves", "cluster-autoscaler", 0, nil),
		deployment("of-no-shoot", "cluster-autoscaler", 0, protected),
	), interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if refuse && object.GetNamespace() == "shoot--a" {
			return errors.New("refused")
		}
		return c.Patch(ctx, object, patch, options...)
	}})
	deploy := func(prober bool) error {
		return (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(seedWithWatchdog(prober, false)).deployDependencyWatchdog(t.Context())
	}
	type state struct {
		Replicas    int32
		Annotations []string
	}
	check := func(step string, want map[string]state) {
		t.Helper()
		list, got := &appsv1.DeploymentList{}, map[string]state{}
		if err := seedAPI.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			if d.Namespace != "garden" {
				keys := slices.Sorted(maps.Keys(d.Annotations))
				got[d.Namespace+"/"+d.Name] = state{*d.Spec.Replicas, keys}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	all := slices.Sorted(maps.Keys(protected))
	before := map[string]state{
		"shoot--a/kube-controller-manager": {0, all}, "shoot--a/machine-controller-manager": {1, all},
		"shoot--a/cluster-autoscaler": {0, slices.Sorted(maps.Keys(ignored))}, "shoot--a/kube-scheduler": {0, all},
		"shoot--moves/machine-controller-manager": {0, all}, "shoot--moves/cluster-autoscaler": {},
		"of-no-shoot/cluster-autoscaler": {0, all},
	}
	if err := deploy(true); err != nil {
		t.Fatal(err)
	}
	check("enabled", before)

	if err := deploy(false); err == nil {
		t.Error("it is not an error that controllers stay scaled down")
	}
	key := client.ObjectKey{Namespace: "garden", Name: "dependency-watchdog-prober"}
	if err := seedAPI.Get(t.Context(), key, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the prober may scale down again: %v", err)
	}
	if err := seedAPI.Get(t.Context(), key, &corev1.ServiceAccount{}); err != nil {
		t.Errorf("the other objects of the prober are deleted before controllers are scaled up: %v", err)
	}

	refuse = false
	if err := deploy(false); err != nil {
		t.Fatal(err)
	}
	after := maps.Clone(before)
	after["shoot--a/kube-controller-manager"] = state{2, []string{"a"}}
	after["shoot--a/machine-controller-manager"] = state{1, []string{"a"}} // the flow of the shoot has scaled it up
	after["shoot--a/cluster-autoscaler"] = state{0, []string{"a", "dependency-watchdog.gardener.cloud/ignore-scaling"}}
	after["shoot--moves/machine-controller-manager"] = state{0, []string{"a"}}
	check("disabled", after)
}

func seedWithWatchdog(prober, weeder bool) *corev1beta1.Seed {
	return &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{DependencyWatchdog: &corev1beta1.SeedSettingDependencyWatchdog{
		Prober: &corev1beta1.SeedSettingDependencyWatchdogProber{Enabled: prober}, Weeder: &corev1beta1.SeedSettingDependencyWatchdogWeeder{Enabled: weeder},
	}}}}
}

func watchdogSeed(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&appsv1.Deployment{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
}

func clusterOf(t *testing.T, namespace string, operation corev1beta1.LastOperationType) *extensionsv1alpha1.Cluster {
	t.Helper()
	shoot := builder.Shoot("a", builder.Workers(1))
	shoot.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: operation}
	raw, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	return &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}}}
}
