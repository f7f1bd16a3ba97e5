package references

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

func TestOf(t *testing.T) {
	in := metav1.ObjectMeta{Namespace: "garden-dev", Name: "a"}
	deleted := func(finalizers ...string) metav1.ObjectMeta {
		meta := in
		meta.DeletionTimestamp, meta.Finalizers = new(metav1.Now()), finalizers
		return meta
	}
	resources := []corev1beta1.NamedResourceReference{
		{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}},
		{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}},
		{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}},
		{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}},
	}
	shoot := corev1beta1.ShootSpec{
		SeedName: new("new"), ExposureClassName: new("class"), CredentialsBindingName: new("binding"), Resources: resources,
		CloudProfile: &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "profile"},
	}
	shootRefs := []string{
		"CredentialsBinding/garden-dev/binding", "ExposureClass//class", "NamespacedCloudProfile/garden-dev/profile", "Seed//new", "Seed//old",
	}
	quotas := []corev1.ObjectReference{{Name: "own"}, {Namespace: "other", Name: "quota"}}
	shootRef := &corev1.ObjectReference{Namespace: "garden", Name: "self"}
	for name, tc := range map[string]struct {
		obj   client.Object
		kinds []string
		want  []string
	}{
		"Shoot that is migrated": {
			obj:  &corev1beta1.Shoot{ObjectMeta: in, Spec: shoot, Status: corev1beta1.ShootStatus{SeedName: new("old")}},
			want: append([]string{"ConfigMap/garden-dev/c"}, append(shootRefs[:3:3], "Secret/garden-dev/s", "Seed//new", "Seed//old")...),
		},
		"Shoot that the gardenlet deletes": {
			obj: &corev1beta1.Shoot{ObjectMeta: deleted("gardener"), Spec: shoot}, kinds: []string{Secret, ConfigMap},
			want: []string{"ConfigMap/garden-dev/c", "Secret/garden-dev/s"},
		},
		"Shoot that the gardenlet has deleted": {
			obj:  &corev1beta1.Shoot{ObjectMeta: deleted("other"), Spec: shoot, Status: corev1beta1.ShootStatus{SeedName: new("old")}},
			want: shootRefs,
		},
		"Shoot with the old fields": {
			obj:  &corev1beta1.Shoot{ObjectMeta: in, Spec: corev1beta1.ShootSpec{CloudProfileName: new("p"), SecretBindingName: new("b")}},
			want: []string{"CloudProfile//p", "SecretBinding/garden-dev/b"},
		},
		"Seed": {
			obj: &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{
				Resources: resources[:1],
				Backup:    &corev1beta1.Backup{CredentialsRef: &corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "backup"}},
				DNS: corev1beta1.SeedDNS{
					Provider: &corev1beta1.SeedDNSProvider{CredentialsRef: &corev1.ObjectReference{Kind: "WorkloadIdentity", Namespace: "garden", Name: "dns"}},
				},
			}},
			want: []string{"Secret/garden/backup", "Secret/garden/s"},
		},
		"Seed with only its own finalizer": {
			obj: &corev1beta1.Seed{ObjectMeta: deleted("gardener.cloud/reference-protection"), Spec: corev1beta1.SeedSpec{Resources: resources}},
		},
		"ControllerDeployment": {
			obj: &gardencorev1.ControllerDeployment{Helm: &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
				PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "ca"},
			}}},
			want: []string{"Secret/garden/ca", "Secret/garden/pull"},
		},
		"ControllerRegistration": {
			obj: &corev1beta1.ControllerRegistration{Spec: corev1beta1.ControllerRegistrationSpec{
				Deployment: &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "d"}}},
			}},
			want: []string{"ControllerDeployment//d"},
		},
		"ControllerInstallation in a seed": {
			obj: &corev1beta1.ControllerInstallation{Spec: corev1beta1.ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: "r"}, SeedRef: &corev1.ObjectReference{Name: "s"},
			}},
			want: []string{"ControllerRegistration//r", "Seed//s"},
		},
		"ControllerInstallation in a self-hosted shoot": {
			obj: &corev1beta1.ControllerInstallation{Spec: corev1beta1.ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: "r"}, ShootRef: shootRef,
			}},
			kinds: []string{Shoot}, want: []string{"Shoot/garden/self"},
		},
		"BackupBucket":           {obj: &corev1beta1.BackupBucket{Spec: corev1beta1.BackupBucketSpec{SeedName: new("s")}}, want: []string{"Seed//s"}},
		"BackupEntry":            {obj: &corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{ShootRef: shootRef}}, want: []string{"Shoot/garden/self"}},
		"NamespacedCloudProfile": {obj: &corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Name: "p"}}}, want: []string{"CloudProfile//p"}},
		"Plant": {
			obj:  &corev1beta1.Plant{ObjectMeta: in, Spec: corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "k"}}},
			want: []string{"Secret/garden-dev/k"},
		},
		"Plant that is being deleted": {
			obj: &corev1beta1.Plant{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", DeletionTimestamp: &metav1.Time{}}, Spec: corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "k"}},
			},
		},
		"SecretBinding": {
			obj:  &corev1beta1.SecretBinding{ObjectMeta: in, SecretRef: corev1.SecretReference{Name: "s"}, Quotas: quotas},
			want: []string{"Quota/garden-dev/own", "Quota/other/quota", "Secret/garden-dev/s"},
		},
		"CredentialsBinding": {
			obj:  &securityv1alpha1.CredentialsBinding{ObjectMeta: in, CredentialsRef: corev1.ObjectReference{Kind: "WorkloadIdentity", Namespace: "other", Name: "w"}, Quotas: quotas},
			want: []string{"Quota/garden-dev/own", "Quota/other/quota", "WorkloadIdentity/other/w"},
		},
		"Project":     {obj: &corev1beta1.Project{Spec: corev1beta1.ProjectSpec{Namespace: new("garden-dev")}}, want: []string{"Namespace//garden-dev"}},
		"ManagedSeed": {obj: &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: in, Spec: seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "s"}}}, want: []string{"Shoot/garden-dev/s"}},
		"Bastion":     {obj: &operationsv1alpha1.Bastion{ObjectMeta: in, Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "s"}}}, want: []string{"Shoot/garden-dev/s"}},
		"ClusterRole of a project": {
			obj:  &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"gardener.cloud/role": "extension-project-role", "project.gardener.cloud/name": "dev"}}},
			want: []string{"Project//dev"},
		},
		"another ClusterRole": {obj: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"project.gardener.cloud/name": "dev"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, ref := range Of(tc.obj, tc.kinds...) {
				got = append(got, ref.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Of() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReferrers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := func(namespace, name, binding string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1beta1.ShootSpec{CredentialsBindingName: &binding}}
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1beta1.Shoot{}, index, keys).WithObjects(
		shoot("garden-dev", "a", "cloud"), shoot("garden-dev", "b", "cloud"), shoot("garden-dev", "c", "other"), shoot("garden-other", "d", "cloud"),
	).Build()
	got, err := Referrers(t.Context(), garden, &corev1beta1.Shoot{}, Ref{CredentialsBinding, "garden-dev", "cloud"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]client.ObjectKey{{Namespace: "garden-dev", Name: "a"}, {Namespace: "garden-dev", Name: "b"}}, got); diff != "" {
		t.Errorf("Referrers() (-want +got):\n%s", diff)
	}
}
