package installation

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
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
