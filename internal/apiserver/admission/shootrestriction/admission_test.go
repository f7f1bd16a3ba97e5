package shootrestriction_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootrestriction"
	"gardener.cloud/gardener/test/builder"
)

func TestValidate(t *testing.T) {
	bucket := func(shoot string) *corev1beta1.BackupBucket {
		return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "1"}, Spec: corev1beta1.BackupBucketSpec{
			ShootRef: &corev1.ObjectReference{Namespace: "garden-dev", Name: shoot},
		}}
	}
	gardenlet := func(name string) *seedmanagementv1alpha1.Gardenlet {
		return &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}}
	}
	const management = "seedmanagement.gardener.cloud"
	for name, tc := range map[string]struct {
		user     string
		group    string
		resource string
		object   client.Object
		stored   []client.Object
		want     metav1.StatusReason
	}{
		"own":                            {user: "shoot:garden-dev:mine", resource: "backupbuckets", object: bucket("mine")},
		"of another shoot":               {user: "shoot:garden-dev:mine", resource: "backupbuckets", object: bucket("other"), want: metav1.StatusReasonForbidden},
		"of another shoot, which exists": {user: "shoot:garden-dev:mine", resource: "backupbuckets", object: bucket("other"), stored: []client.Object{bucket("other")}, want: metav1.StatusReasonForbidden},
		"a name that is not self-hosted": {user: "shoot:garden-dev:mine", group: management, resource: "gardenlets", object: gardenlet("mine"), want: metav1.StatusReasonBadRequest},
		"the Gardenlet":                  {user: "shoot:garden-dev:mine", group: management, resource: "gardenlets", object: gardenlet("self-hosted-shoot-mine")},
	} {
		t.Run(name, func(t *testing.T) {
			p := shootrestriction.New(testclock.NewFakePassiveClock(time.Unix(0, 0)))
			mine := builder.Shoot("mine")
			mine.Namespace, mine.UID, mine.Spec.Provider.Workers = "garden-dev", "1", []corev1beta1.Worker{{Name: "control-plane", ControlPlane: &corev1beta1.WorkerControlPlane{}}}
			p.GardenCache, p.KubeAPI = admissiontest.Reader(t, append(tc.stored, mine)...), admissiontest.Reader(t)
			p.SetAuthorizer(admissiontest.Denying("get secrets"))
			request := admissiontest.Request{
				Group: tc.group, Resource: tc.resource, Object: tc.object, User: "gardener.cloud:system:" + tc.user, Groups: []string{"gardener.cloud:system:shoots"},
			}
			if err := p.Validate(t.Context(), request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
