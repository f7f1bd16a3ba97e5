package hibernation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// The owner of a Shoot learns why it is not hibernated.
func TestRefusedTrigger(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resource := corev1beta1.SchemeGroupVersion.WithResource("shoots").GroupResource()
	for name, tc := range map[string]struct {
		refusal error
		want    string
	}{
		"a webhook may block the wake-up": {
			apierrors.NewForbidden(resource, "s", errors.New("the shoot cannot be hibernated: webhooks\n"+strings.Repeat("x", 2000))),
			`Warning HibernationScheduleFailed Hibernating cluster due to schedule failed: shoots.core.gardener.cloud "s" is forbidden: the shoot cannot be hibernated: webhooks`,
		},
		"a conflict is retried": {refusal: apierrors.NewConflict(resource, "s", errors.New("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s"}}
			shoot.Spec.Hibernation = &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{Start: new("* * * * *")}}}
			recorder := events.NewFakeRecorder(10)
			r := &reconciler{
				Values: Values{TriggerDeadline: time.Hour, Clock: clocktesting.NewFakePassiveClock(time.Unix(3600, 0))}, recorder: recorder,
				gardenCache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot).WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
						return tc.refusal
					},
				}).Build(),
			}
			result, err := r.Reconcile(t.Context(), shoot)
			if err == nil && result.RequeueAfter == 0 {
				t.Error("it is not retried")
			}
			got := ""
			if len(recorder.Events) > 0 {
				got = <-recorder.Events
			}
			if first, _, _ := strings.Cut(got, "\n"); first != tc.want || len(got) > kube.MaxNote+100 {
				t.Errorf("event is %q with %d bytes, want %q", first, len(got), tc.want)
			}
		})
	}
}
