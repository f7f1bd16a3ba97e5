package care

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// CAs that nothing renews by itself would expire without a word: the Garden says it a year before, until they are rotated. Others do not count.
func TestExpiringCAs(t *testing.T) {
	const condition = operatorv1alpha1.CACertificateValiditiesAcceptable
	now := time.Date(2035, 12, 1, 3, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, corev1beta1.AddToScheme, druidv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	authority := func(object, name, identity string, until time.Time) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: object, Labels: map[string]string{
			"name": name, "managed-by": "secrets-manager", "manager-identity": identity, "valid-until-time": strconv.FormatInt(until.Unix(), 10),
		}}}
	}
	old := authority("ca-gardener-1", "ca-gardener", "gardener-operator", time.Date(2036, 11, 29, 0, 0, 0, 0, time.UTC))
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	garden.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateProcessing}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(garden).WithObjects(garden, old,
		authority("ca-1", "ca", "gardener-operator", now.AddDate(1, 0, 1)),
		authority("ca-garden-runtime-1", "ca-garden-runtime", "gardener-operator", now.AddDate(0, 0, 20)),
		authority("ca-of-gardenlet", "ca", "gardenlet", now.AddDate(0, 0, 20)),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "ca-client-bundle-1", Labels: map[string]string{
			"name": "ca-client-bundle", "managed-by": "secrets-manager", "manager-identity": "gardener-operator", "bundle-for": "ca-client",
		}}},
	).Build()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{runtimeCache: c, Values: Values{
		Healthz: func(context.Context) error { return nil }, RuntimeAPI: c, Clock: clocktesting.NewFakePassiveClock(now), Metrics: metrics,
		Config: operatorconfigv1alpha1.GardenCareControllerConfiguration{SyncPeriod: &metav1.Duration{Duration: time.Minute}},
	}}
	check := func() *corev1beta1.Condition {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(garden)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			t.Fatal(err)
		}
		return kube.Condition(garden.Status.Conditions, condition)
	}

	got := check()
	if got == nil {
		t.Fatalf("conditions %v", garden.Status.Conditions)
	}
	want := corev1beta1.Condition{
		Type: condition, Status: corev1beta1.ConditionFalse, Reason: "ExpiringCACertificates",
		Message: `Rotate the CAs of the garden with the operations rotate-ca-start and rotate-ca-complete. They expire within a year: "ca-gardener" until 2036-11-29`,
	}
	got.LastTransitionTime, got.LastUpdateTime = metav1.Time{}, metav1.Time{}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if value := testutil.ToFloat64(metrics.condition.WithLabelValues("garden", string(condition))); value != 0 {
		t.Errorf("the metric is %v", value)
	}

	if err := c.Create(t.Context(), authority("ca-gardener-2", "ca-gardener", "gardener-operator", now.AddDate(10, 0, 0))); err != nil {
		t.Fatal(err)
	}
	if got := check(); got == nil { // the old one is in use until the rotation is completed
		t.Error("it is forgotten when the rotation begins")
	}
	if err := c.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if got := check(); got != nil {
		t.Errorf("after the rotation: %v", got)
	}
	if err := testutil.CollectAndCompare(metrics.condition, strings.NewReader(`
# HELP gardener_operator_garden_condition The conditions of the Garden: 1 is True, 0 is False, -1 is anything else.
# TYPE gardener_operator_garden_condition gauge
gardener_operator_garden_condition{condition="ObservabilityComponentsHealthy",name="garden"} 1
gardener_operator_garden_condition{condition="RuntimeComponentsHealthy",name="garden"} -1
gardener_operator_garden_condition{condition="VirtualComponentsHealthy",name="garden"} -1
gardener_operator_garden_condition{condition="VirtualGardenAPIServerAvailable",name="garden"} 1
`)); err != nil {
		t.Error(err)
	}
}
