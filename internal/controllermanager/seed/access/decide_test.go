package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
)

func TestRules(t *testing.T) {
	ref := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name}
	}
	rule := func(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	backedUp := seed.DeepCopy()
	backedUp.Spec.Backup = &corev1beta1.Backup{CredentialsRef: ref("backup")}
	create, writes := []string{"create"}, []string{"delete", "get", "patch", "update"}
	ofSeed := []rbacv1.PolicyRule{
		rule("", "secrets", everything), rule("", "serviceaccounts/token", create),
	}
	ofSeed[0].Resources = []string{"secrets", "serviceaccounts"}
	const core = "core.gardener.cloud"

	for name, tc := range map[string]struct {
		observed observed
		want     map[string][]rbacv1.PolicyRule
	}{
		"an empty seed has its namespace": {observed: observed{seed: seed}, want: map[string][]rbacv1.PolicyRule{"seed-a": ofSeed}},
		"credentials of its backups get a finalizer; the generated ones are its own": {
			observed: observed{seed: backedUp, buckets: []corev1beta1.BackupBucket{
				{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1beta1.BackupBucketSpec{SeedName: new("a"), CredentialsRef: ref("backup")}},
				{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: corev1beta1.BackupBucketSpec{SeedName: new("b")}},
			}},
			want: map[string][]rbacv1.PolicyRule{"seed-a": ofSeed, "garden": {
				rule("", "secrets", create), rule("", "secrets", writes, "generated-bucket-b"), rule("", "secrets", read, "generated-bucket-elsewhere"),
				rule("", "secrets", finalize, "backup"),
			}},
		},
		"credentials for the charts of its extensions": {
			observed: observed{seed: seed, deployments: []gardencorev1.ControllerDeployment{{Helm: &gardencorev1.HelmControllerDeployment{
				OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}},
			}}}},
			want: map[string][]rbacv1.PolicyRule{"seed-a": ofSeed, "garden": {rule("", "secrets", read, "pull")}},
		},
		"shoots: credentials in any namespace, what is published, and the documents of the issuer": {
			observed: observed{
				seed: seed, projects: map[string]string{"garden-dev": "dev"},
				credentials: []references.Ref{
					{Kind: "Secret", Namespace: "garden-shared", Name: "infrastructure"},
					{Kind: "InternalSecret", Namespace: "garden-dev", Name: "internal"},
					{Kind: "WorkloadIdentity", Namespace: "garden-dev", Name: "identity"},
				},
				shoots: []corev1beta1.Shoot{
					{ObjectMeta: metav1.ObjectMeta{
						Namespace: "garden-dev", Name: "s", UID: "1", Annotations: map[string]string{"authentication.gardener.cloud/issuer": "managed"},
					}},
					{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "t"}, Spec: corev1beta1.ShootSpec{
						Resources: []corev1beta1.NamedResourceReference{{Name: "r", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "referenced"}}},
					}},
				},
			},
			want: map[string][]rbacv1.PolicyRule{
				"seed-a":        ofSeed,
				"garden-shared": {rule("", "secrets", read, "infrastructure")},
				"gardener-system-shoot-issuer": {
					rule("", "secrets", create), rule("", "secrets", writes, "dev--1"),
				},
				"garden-dev": {
					rule("", "secrets", create),
					rule("", "secrets", writes, "s.ca-cluster", "s.monitoring", "s.ssh-keypair", "s.ssh-keypair.old", "t.ca-cluster", "t.monitoring", "t.ssh-keypair", "t.ssh-keypair.old"),
					rule("", "secrets", read, "referenced"),
					rule(core, "internalsecrets", create),
					rule(core, "internalsecrets", writes, "s.ca-client", "t.ca-client"),
					rule(core, "internalsecrets", read, "internal"),
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.observed.rules()); diff != "" {
				t.Errorf("rules() (-want +got):\n%s", diff)
			}
		})
	}
}
