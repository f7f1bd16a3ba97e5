package seedrestriction_test

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
	"gardener.cloud/gardener/internal/apiserver/admission/seedrestriction"
)

func bucket(name, seed, secret string) *corev1beta1.BackupBucket {
	return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.BackupBucketSpec{
		SeedName: &seed, CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: secret},
	}}
}

// The decisions are tested where they are made; this is about what they are asked, and the answers.
func TestValidate(t *testing.T) {
	const gardenlet, group = "gardener.cloud:system:seed:foo", "gardener.cloud:system:seeds"
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "1"}}
	seed.Spec.Backup = &corev1beta1.Backup{CredentialsRef: bucket("", "", "own").Spec.CredentialsRef}
	generated := bucket("1", "foo", "own")
	generated.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "stolen"}
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e"}, Spec: corev1beta1.BackupEntrySpec{BucketName: "gone", SeedName: new("foo")}}
	request := func(resource string, object, old client.Object) admissiontest.Request {
		return admissiontest.Request{Resource: resource, Object: object, Old: old, User: gardenlet, Groups: []string{group}}
	}
	others := request("backupbuckets", bucket("1", "bar", "stolen"), nil)
	others.User, others.Groups = "alice", nil
	status := request("backupbuckets", generated, bucket("1", "foo", "own"))
	status.Subresource = "status"
	own := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "foo"}}
	forced := own.DeepCopy()
	forced.Annotations = map[string]string{"gardener.cloud/operation": "force-redeploy"}
	withOperation := request("gardenlets", forced, own)
	withOperation.Group, withOperation.Subresource = "seedmanagement.gardener.cloud", "status"
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	for name, tc := range map[string]struct {
		request admissiontest.Request
		stored  []client.Object
		want    metav1.StatusReason
	}{
		"own":                                   {request: request("backupbuckets", bucket("1", "foo", "own"), nil)},
		"of another seed":                       {request: request("backupbuckets", bucket("1", "bar", "own"), nil), want: metav1.StatusReasonForbidden},
		"of another seed, by another user":      {request: others},
		"exists already":                        {request: request("backupbuckets", bucket("1", "bar", "own"), nil), stored: []client.Object{bucket("1", "foo", "own")}, want: metav1.StatusReasonAlreadyExists},
		"with credentials of others":            {request: request("backupbuckets", bucket("1", "foo", "stolen"), nil), want: metav1.StatusReasonForbidden},
		"with credentials of others, in status": {request: status, want: metav1.StatusReasonForbidden},
		"an operation, with the status":         {request: withOperation, want: metav1.StatusReasonForbidden},
		"in a bucket that does not exist":       {request: request("backupentries", entry, nil), want: metav1.StatusReasonInternalError},
		"an update that no rule is for":         {request: request("shoots", shoot, shoot)},
		"a deletion":                            {request: request("backupbuckets", nil, bucket("1", "foo", "own"))},
		"a deletion of another seed":            {request: request("backupbuckets", nil, bucket("2", "foo", "own")), want: metav1.StatusReasonForbidden},
		"a deletion that no rule is for":        {request: request("backupentries", nil, entry)},
	} {
		t.Run(name, func(t *testing.T) {
			p := seedrestriction.New(testclock.NewFakePassiveClock(time.Unix(0, 0)))
			p.GardenCache = admissiontest.Reader(t, append(tc.stored, seed)...)
			p.KubeAPI = admissiontest.Reader(t)
			p.SetAuthorizer(admissiontest.Denying("get secrets"))
			if err := p.Validate(t.Context(), tc.request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}

// The plugin marks what gardenlets create, before it decides on it.
func TestAdmit(t *testing.T) {
	created := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "foo"}}
	request := admissiontest.Request{
		Group: "seedmanagement.gardener.cloud", Resource: "gardenlets", Object: created,
		User: "gardener.cloud:system:seed:foo", Groups: []string{"gardener.cloud:system:seeds"},
	}
	p := seedrestriction.New(testclock.NewFakePassiveClock(time.Unix(0, 0)))
	p.GardenCache, p.KubeAPI = admissiontest.Reader(t), admissiontest.Reader(t)
	p.SetAuthorizer(admissiontest.Denying("get secrets"))
	if err := p.Admit(t.Context(), request.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	if created.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] != "true" {
		t.Errorf("the Gardenlet has the annotations %v", created.Annotations)
	}
	if err := p.Validate(t.Context(), request.Attributes(), nil); err != nil {
		t.Errorf("Validate() = %v", err)
	}
}
