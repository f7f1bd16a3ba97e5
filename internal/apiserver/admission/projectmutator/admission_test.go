package projectmutator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/projectmutator"
)

func TestAdmit(t *testing.T) {
	person := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	alice, bob := person("alice"), person("bob")
	added := func(subject rbacv1.Subject) corev1beta1.ProjectMember {
		return corev1beta1.ProjectMember{Subject: subject, Role: "admin", Roles: []string{"owner"}}
	}
	owning := corev1beta1.ProjectMember{Subject: bob, Role: "viewer", Roles: []string{"owner"}}
	viewing := corev1beta1.ProjectMember{Subject: bob, Role: "viewer"}
	for name, tc := range map[string]struct {
		spec   corev1beta1.ProjectSpec
		update bool
		want   corev1beta1.ProjectSpec
	}{
		"new": {
			want: corev1beta1.ProjectSpec{CreatedBy: &alice, Owner: &alice, Members: []corev1beta1.ProjectMember{added(alice)}},
		},
		"new, said to be created by another": {
			spec: corev1beta1.ProjectSpec{CreatedBy: &bob},
			want: corev1beta1.ProjectSpec{CreatedBy: &alice, Owner: &alice, Members: []corev1beta1.ProjectMember{added(alice)}},
		},
		"new, of another": {
			spec: corev1beta1.ProjectSpec{Owner: &bob},
			want: corev1beta1.ProjectSpec{CreatedBy: &alice, Owner: &bob, Members: []corev1beta1.ProjectMember{added(bob)}},
		},
		"new, a member owns it": {
			spec: corev1beta1.ProjectSpec{Members: []corev1beta1.ProjectMember{owning}},
			want: corev1beta1.ProjectSpec{CreatedBy: &alice, Owner: &bob, Members: []corev1beta1.ProjectMember{owning}},
		},
		"changed, the owner is a member": {
			spec: corev1beta1.ProjectSpec{Owner: &bob, Members: []corev1beta1.ProjectMember{viewing}}, update: true,
			want: corev1beta1.ProjectSpec{Owner: &bob, Members: []corev1beta1.ProjectMember{viewing}},
		},
		"changed, the owner is none": {
			spec: corev1beta1.ProjectSpec{Owner: &alice, Members: []corev1beta1.ProjectMember{viewing}}, update: true,
			want: corev1beta1.ProjectSpec{Owner: &alice, Members: []corev1beta1.ProjectMember{viewing, added(alice)}},
		},
		"changed, without an owner": {update: true},
	} {
		t.Run(name, func(t *testing.T) {
			project := &corev1beta1.Project{Spec: *tc.spec.DeepCopy()}
			request := admissiontest.Request{Resource: "projects", Object: project}
			if tc.update {
				request.Old = &corev1beta1.Project{}
			}
			if err := projectmutator.New().Admit(t.Context(), request.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, project.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
