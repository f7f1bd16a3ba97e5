package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// The admission plugins read from the stores of the API server and from the kube-apiserver, and know the user of a request.
func testAdmission(t *testing.T, e *env.Env) {
	ctx, admin := t.Context(), e.Client
	create := func(t *testing.T, c client.Client, objs ...client.Object) {
		t.Helper()
		for _, obj := range objs {
			if err := c.Create(ctx, obj); err != nil {
				t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
			}
		}
	}
	const namespace = "garden-admission"
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})

	t.Run("references", func(t *testing.T) {
		// alice may do everything with bindings, but read one Secret only.
		create(t, admin,
			&corev1.Secret{ObjectMeta: meta("hers")}, &corev1.Secret{ObjectMeta: meta("other")},
			&rbacv1.Role{ObjectMeta: meta("alice"), Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{"security.gardener.cloud"}, Resources: []string{"*"}, Verbs: []string{"*"}},
				{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"hers"}, Verbs: []string{"get"}},
			}},
			&rbacv1.RoleBinding{
				ObjectMeta: meta("alice"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "alice"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
			},
		)
		alice := as(t, e, "alice")
		binding := func(secret string) *securityv1alpha1.CredentialsBinding {
			return &securityv1alpha1.CredentialsBinding{
				ObjectMeta: meta(secret), Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
				CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: secret},
			}
		}
		hers := binding("hers")
		// The kube-apiserver may not know her role at once.
		eventually(ctx, t, func() error { return alice.Create(ctx, hers) }, func(err error) bool { return err == nil })
		if hers.Labels["provider.extensions.gardener.cloud/local"] != "true" {
			t.Errorf("labels are %v, want that of the provider", hers.Labels)
		}
		for _, secret := range []string{"other", "missing"} {
			if err := alice.Create(ctx, binding(secret)); !apierrors.IsForbidden(err) {
				t.Errorf("create a binding to the Secret %q: %v, want it forbidden", secret, err)
			}
		}
		if err := admin.Create(ctx, binding("missing")); !apierrors.IsForbidden(err) {
			t.Errorf("create a binding to a missing Secret as administrator: %v, want it forbidden", err)
		}
	})

	t.Run("a Project belongs to the user who creates it, and is deleted when that is confirmed", func(t *testing.T) {
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "confirm"}}
		create(t, admin, project)
		if owner := project.Spec.Owner; owner == nil || owner.Name != "admin" || len(project.Spec.Members) != 1 {
			t.Errorf("owner is %v and members are %v, want the creator", owner, project.Spec.Members)
		}
		if err := admin.Delete(ctx, project); !apierrors.IsForbidden(err) {
			t.Errorf("delete without confirmation: %v, want it forbidden", err)
		}
		if err := admin.DeleteAllOf(ctx, &corev1beta1.Project{}); !apierrors.IsForbidden(err) {
			t.Errorf("delete all without confirmation: %v, want it forbidden", err)
		}
		confirm(ctx, t, admin, project)
		if err := admin.Delete(ctx, project); err != nil {
			t.Errorf("delete with confirmation: %v", err)
		}
	})

	t.Run("ResourceQuota counts", func(t *testing.T) {
		// No controller finds out what is used, so the quota says itself that it is nothing.
		hard := corev1.ResourceList{"count/internalsecrets.core.gardener.cloud": resource.MustParse("1")}
		quota := &corev1.ResourceQuota{ObjectMeta: meta("quota"), Spec: corev1.ResourceQuotaSpec{Hard: hard}}
		create(t, admin, quota)
		quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"count/internalsecrets.core.gardener.cloud": resource.MustParse("0")}}
		if err := admin.Status().Update(ctx, quota); err != nil {
			t.Fatal(err)
		}
		secret := func(name string) *corev1beta1.InternalSecret {
			return &corev1beta1.InternalSecret{ObjectMeta: meta(name)}
		}
		// Those that come before the server knows the quota are not counted.
		created := 0
		eventually(ctx, t, func() error {
			created++
			return admin.Create(ctx, secret(fmt.Sprintf("secret-%d", created)))
		}, apierrors.IsForbidden)
		if err := admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			t.Fatal(err)
		}
		if used := quota.Status.Used["count/internalsecrets.core.gardener.cloud"]; used.Value() != 1 {
			t.Errorf("the quota counts %s, want 1", used.String())
		}
	})

	t.Run("a Shoot is on a Seed, and is deleted when two users want it", func(t *testing.T) {
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "admission"}, Spec: corev1beta1.ProjectSpec{
			Namespace: new(namespace), DualApprovalForDeletion: []corev1beta1.DualApprovalForDeletion{{Resource: "shoots"}},
		}}
		on := builder.Seed("confirmed")
		shoot := builder.Shoot("shoot", builder.In(namespace), builder.On(on.Name), func(s *corev1beta1.Shoot) {
			s.Spec.Networking = &corev1beta1.Networking{Services: new("10.3.0.0/16")}
		})

		create(t, admin, project, on, shoot)

		if err := admin.Delete(ctx, on); !apierrors.IsForbidden(err) {
			t.Errorf("delete the Seed of the Shoot: %v, want it forbidden", err)
		}
		removal := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"kubernetes":{"versions":[{"version":"1.34.1"}]}}}`))
		profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
		if err := admin.Patch(ctx, profile, removal); !apierrors.IsForbidden(err) {
			t.Errorf("remove the version of the Shoot: %v, want it forbidden", err)
		}
		confirm(ctx, t, admin, shoot)
		if by := shoot.Annotations["deletion.gardener.cloud/confirmed-by"]; by != "admin" {
			t.Errorf("confirmed by %q, want admin", by)
		}
		if err := admin.Delete(ctx, shoot); !apierrors.IsForbidden(err) {
			t.Errorf("delete by the user who confirmed: %v, want it forbidden", err)
		}
		if err := as(t, e, "bob", "system:masters").Delete(ctx, shoot); err != nil {
			t.Errorf("delete by another: %v", err)
		}
		if err := admin.Delete(ctx, on); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the Seed when the Shoot is gone: %v", err)
		}
	})

	t.Run("a Plant has its creator, and is created only if its Project is not being deleted", func(t *testing.T) {
		project := &corev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "plants", Finalizers: []string{"example.com/test"}}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-plants")},
		}
		plant := func(name string) *corev1beta1.Plant {
			return &corev1beta1.Plant{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden-plants", Name: name},
				Spec:       corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "kubeconfig"}},
			}
		}
		first := plant("first")
		create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-plants"}}, project, first)
		if by := first.Annotations["gardener.cloud/created-by"]; by != "admin" {
			t.Errorf("created by %q, want admin", by)
		}
		confirm(ctx, t, admin, project)
		if err := admin.Delete(ctx, project); err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(ctx, plant("second")); !apierrors.IsForbidden(err) {
			t.Errorf("create a Plant in a Project that is being deleted: %v, want it forbidden", err)
		}
		env.Edit(t, admin, project, func(p *corev1beta1.Project) { p.Finalizers = nil })
	})
}

// confirm confirms the deletion of an object.
func confirm(ctx context.Context, t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))
	if err := c.Patch(ctx, obj, patch); err != nil {
		t.Fatal(err)
	}
}
