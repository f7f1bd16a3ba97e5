package installation

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/chart/charttest"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "e"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithStatusSubresource(e).Build()
	behind.Case[*operatorv1alpha1.Extension]{
		API: api, Object: e,
		Status: func(e *operatorv1alpha1.Extension) any { return e.Status.Conditions[0].Status },
		Other:  func(e *operatorv1alpha1.Extension) { e.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			clk, read := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), &operatorv1alpha1.Extension{}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(e), read); err != nil {
				t.Fatal(err)
			}
			r := &reconciler{Values: Values{Clock: clk}, runtimeCache: cache, runtimeAPI: api}
			if _, err := r.Reconcile(t.Context(), read); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// The registry of a chart may be down for a while, which changes nothing of what is installed.
func TestRegistryIsDown(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusForbidden) }))
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		observed int64
		before   func(*operatorv1alpha1.Extension)
		// values are those of the chart.
		values string
		// missing is whether the part was never installed.
		missing bool
		want    corev1beta1.ConditionStatus
		events  int
	}{
		"nothing has changed": {observed: 2, before: was(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonReconcileSuccess), want: corev1beta1.ConditionTrue, events: 1},
		"a part is needed only now": {
			observed: 2, before: was(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonReconcileSuccess), missing: true, want: corev1beta1.ConditionFalse,
		},
		"the spec has changed":    {observed: 1, before: was(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonReconcileSuccess), want: corev1beta1.ConditionFalse},
		"it was not installed":    {observed: 2, before: was(corev1beta1.ConditionFalse, operatorv1alpha1.ReasonReconcileFailed), want: corev1beta1.ConditionFalse},
		"it was never reconciled": {before: func(*operatorv1alpha1.Extension) {}, want: corev1beta1.ConditionFalse},
		"it is no matter of the registry": {
			observed: 2, before: was(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonReconcileSuccess), values: `"x"`, want: corev1beta1.ConditionFalse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "e", Generation: 2}, Status: operatorv1alpha1.ExtensionStatus{ObservedGeneration: tc.observed}}
			admission := &operatorv1alpha1.AdmissionDeploymentSpec{VirtualCluster: &operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{
				OCIRepository: &gardencorev1.OCIRepository{Ref: new(strings.TrimPrefix(server.URL, "http://") + "/charts/a:v1")},
			}}}
			if tc.values != "" {
				admission.Values = &apiextensionsv1.JSON{Raw: []byte(tc.values)}
			}
			e.Spec.Deployment = &operatorv1alpha1.Deployment{Admission: admission}
			tc.before(e)
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			garden.Spec.VirtualCluster.Kubernetes.Version = "1.36.3"
			garden.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, garden).WithStatusSubresource(e)
			if !tc.missing {
				builder = builder.WithObjects(&resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
					Namespace: "garden", Name: extension.AdmissionVirtualManagedResource(e.Name),
				}})
			}
			c := builder.Build()
			recorder := events.NewFakeRecorder(10)
			r := &reconciler{
				Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, runtimeCache: c, runtimeAPI: c, kinds: scheme, charts: &chart.Puller{}, recorder: recorder,
			}
			for range 2 { // the second pass writes nothing more
				if _, err := r.Reconcile(t.Context(), e); err == nil {
					t.Fatal("there is no error, which would cause a retry")
				}
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
				t.Fatal(err)
			}
			got := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled)
			if got == nil || got.Status != tc.want || tc.values == "" && !strings.Contains(got.Message, "/charts/a:v1") {
				t.Errorf("the condition is %+v, want %s with the chart", got, tc.want)
			}
			if len(recorder.Events) != tc.events {
				t.Errorf("there are %d events, want %d", len(recorder.Events), tc.events)
			}
		})
	}
}

// What is applied to a namespace that is being deleted is lost, so an extension that is needed again waits for its namespace.
func TestNamespaceThatIsBeingDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	e := full(requires(corev1beta1.ConditionFalse))
	ns := runtimeNamespace(e, nil)
	ns.Finalizers = []string{"example.com/hold"} // keeps the namespace, in place of kube-controller-manager
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: runtimePriorityClass}}
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, garden, ns, class).WithStatusSubresource(e).Build()
	r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, runtimeCache: c, runtimeAPI: c, kinds: scheme}
	check := func(want string, required corev1beta1.ConditionStatus) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			t.Fatal(err)
		}
		e.Status.Conditions = full(requires(required)).Status.Conditions
		if err := c.Status().Update(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if got := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled); got == nil || got.Reason != want {
			t.Errorf("the condition is %+v, want reason %s", got, want)
		}
	}
	check("Deleting", corev1beta1.ConditionFalse)
	check("Deleting", corev1beta1.ConditionTrue)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		t.Fatal(err)
	}
	if ns.DeletionTimestamp == nil {
		t.Error("the namespace is not deleted")
	}
	ns.Finalizers = nil
	if err := c.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	check("GardenNotReconciled", corev1beta1.ConditionFalse)
}

// An extension that cannot delete the objects that it is responsible for can only be repaired if a change of its Extension still has an effect.
func TestRepairDuringDeletion(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	chartRef := charttest.Push(t, charttest.Pack(t, "Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"))
	managed := func(name string, finalizers ...string) *resourcesv1alpha1.ManagedResource {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Finalizers: finalizers}}
	}
	const hold = "example.com/hold"
	for name, tc := range map[string]struct {
		deleted    string // kind of what is being deleted
		finalizers []string
		// waits is whether the registration is still being deleted.
		waits  bool
		want   bool // whether it is installed
		reason string
	}{
		"the Garden is deleted":                         {deleted: "Garden", want: true, reason: "InstalledInRuntime"},
		"the Garden is deleted, the registration waits": {deleted: "Garden", waits: true, want: true, reason: "Deleting"},
		"the Extension is deleted":                      {deleted: "Extension", finalizers: []string{operatorv1alpha1.FinalizerName}, want: true, reason: "InstalledInRuntime"},
		"the Extension is deleted, and had no objects":  {deleted: "Extension", finalizers: []string{hold}},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(requires(corev1beta1.ConditionTrue), func(e *operatorv1alpha1.Extension) {
				e.Finalizers, e.Spec.Deployment.Extension.Helm.OCIRepository.Ref = tc.finalizers, &chartRef
			})
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g", Finalizers: []string{hold}}}
			class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: runtimePriorityClass}}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, garden, class).WithStatusSubresource(e)
			if tc.waits {
				builder = builder.WithObjects(managed(extension.RegistrationManagedResource(e.Name), hold))
			}
			c := builder.Build()
			deleted := client.Object(garden)
			if tc.deleted == "Extension" {
				deleted = e
			}
			if err := c.Delete(t.Context(), deleted); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
				t.Fatal(err)
			}
			r := &reconciler{
				Values:       Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), RuntimeVersion: runtimeVersion{}},
				runtimeCache: c, runtimeAPI: c, kinds: scheme, charts: &chart.Puller{},
			}
			if _, err := r.Reconcile(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
				t.Fatal(err)
			}
			runtimePart := managed(extension.RuntimeManagedResource(e.Name))
			if got := c.Get(t.Context(), client.ObjectKeyFromObject(runtimePart), runtimePart) == nil; got != tc.want {
				t.Errorf("it is installed: %v, want %v", got, tc.want)
			}
			if got := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled); tc.reason != "" && (got == nil || got.Reason != tc.reason) {
				t.Errorf("the condition is %+v, want reason %s", got, tc.reason)
			}
			if got := controllerutil.ContainsFinalizer(e, operatorv1alpha1.FinalizerName); got != tc.want {
				t.Errorf("it has the finalizer: %v, want %v", got, tc.want)
			}
		})
	}
}

// What only a change can fix is not tried again. That must not keep another part, or the status, from being tried again.
func TestRetries(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		missing bool // whether a Secret that the registration refers to is missing
		status  error
		want    bool
	}{
		"values that are not valid":                    {},
		"and another part that may work the next time": {missing: true, want: true},
		"and the status cannot be written":             {status: errors.New("no"), want: true},
		"and another client has changed the Extension": {status: apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(requires(corev1beta1.ConditionFalse), func(e *operatorv1alpha1.Extension) {
				e.Spec.Deployment.Admission.RuntimeCluster = nil
				e.Spec.Deployment.Admission.Values = &apiextensionsv1.JSON{Raw: []byte(`"x"`)}
				if tc.missing {
					e.Spec.Deployment.Extension.Helm.OCIRepository.PullSecretRef = &corev1.LocalObjectReference{Name: "missing"}
				}
			})
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			garden.Spec.VirtualCluster.Kubernetes.Version = "1.36.3"
			garden.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100}
			kinds := runtime.NewScheme()
			if err := errors.Join(clientgoscheme.AddToScheme(kinds), gardencorev1.AddToScheme(kinds), corev1beta1.AddToScheme(kinds)); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, garden).WithStatusSubresource(e).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if tc.status != nil {
						return tc.status
					}
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			}).Build()
			r := &reconciler{
				Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, runtimeCache: c, runtimeAPI: c, kinds: kinds, charts: &chart.Puller{},
			}
			_, err := r.Reconcile(t.Context(), e)
			if !errors.Is(err, chart.ErrInvalid) {
				t.Errorf("the error is %v, want that of the values", err)
			}
			if got := !errors.Is(err, reconcile.TerminalError(nil)); got != tc.want {
				t.Errorf("it is retried: %v, want %v: %v", got, tc.want, err)
			}
		})
	}
}

type runtimeVersion struct {
	discovery.ServerVersionInterface
}

func (runtimeVersion) ServerVersion() (*version.Info, error) {
	return &version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.1"}, nil
}
