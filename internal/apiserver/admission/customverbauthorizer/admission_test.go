package customverbauthorizer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/customverbauthorizer"
)

func person(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// project has an owner and members with the role viewer, given as kind and name.
func project(owner string, members ...rbacv1.Subject) *corev1beta1.Project {
	p := &corev1beta1.Project{Spec: corev1beta1.ProjectSpec{Owner: new(person(owner))}}
	for _, member := range members {
		p.Spec.Members = append(p.Spec.Members, corev1beta1.ProjectMember{Subject: member, Role: "viewer"})
	}
	return p
}

func TestValidate(t *testing.T) {
	whitelisting := project("alice")
	whitelisting.Spec.Tolerations = &corev1beta1.ProjectTolerations{Whitelist: []corev1beta1.Toleration{{Key: "key"}}}
	promoted := project("carol", person("bob"))
	promoted.Spec.Members[0].Roles = []string{"admin"}
	withRole := func(member rbacv1.Subject, role string) *corev1beta1.Project {
		p := project("carol", member)
		p.Spec.Members[0].Roles = []string{role}
		return p
	}
	profile := func(change func(*corev1beta1.NamespacedCloudProfileSpec)) *corev1beta1.NamespacedCloudProfile {
		p := &corev1beta1.NamespacedCloudProfile{}
		change(&p.Spec)
		return p
	}
	shoot := func(controlPlane *corev1beta1.WorkerControlPlane) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{ControlPlane: controlPlane}}}}}
	}
	robot := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "n", Name: "robot"}
	images := profile(func(s *corev1beta1.NamespacedCloudProfileSpec) {
		s.MachineImages = []corev1beta1.MachineImage{{Name: "os"}}
	})
	selfHosted := shoot(&corev1beta1.WorkerControlPlane{})
	for name, tc := range map[string]struct {
		obj, old client.Object
		verb     string // that it takes, if any
	}{
		"a new Project of one's own":            {obj: project("alice", person("alice"), person("bob"))},
		"a new Project of another":              {obj: project("bob", person("bob"))},
		"a new Project of another with members": {obj: project("bob", person("bob"), person("carol")), verb: "manage-members projects"},
		"a new whitelist":                       {obj: whitelisting, verb: "modify-spec-tolerations-whitelist projects"},
		"a whitelist that is added":             {obj: whitelisting, old: project("alice"), verb: "modify-spec-tolerations-whitelist projects"},
		"a whitelist that stays":                {obj: whitelisting, old: whitelisting},
		"the owner adds a user":                 {obj: project("alice", person("bob")), old: project("alice")},
		"another user adds a user":              {obj: project("carol", person("bob")), old: project("carol"), verb: "manage-members projects"},
		"another user removes a user":           {obj: project("carol"), old: project("carol", person("bob")), verb: "manage-members projects"},
		"another user gives a role":             {obj: promoted, old: project("carol", person("bob")), verb: "manage-members projects"},
		"another user adds a group":             {obj: project("carol", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "g"}), old: project("carol"), verb: "manage-members projects"},
		"another user adds a ServiceAccount":    {obj: project("carol", robot), old: project("carol")},
		"another user adds one as a user":       {obj: project("carol", person("system:serviceaccount:n:robot")), old: project("carol")},
		"another user makes one a uam":          {obj: withRole(robot, "uam"), old: project("carol", robot), verb: "manage-members projects"},
		"another user makes one the owner":      {obj: withRole(person("system:serviceaccount:n:robot"), "owner"), old: project("carol"), verb: "manage-members projects"},
		"another user lets one manage others":   {obj: withRole(robot, "serviceaccountmanager"), old: project("carol"), verb: "manage-members projects"},
		"another user makes one an admin":       {obj: withRole(robot, "admin"), old: project("carol", robot)},
		"a user becomes the owner":              {obj: project("alice", person("bob")), old: project("carol", person("bob")), verb: "manage-members projects"},
		"members in another order":              {obj: project("carol", person("a"), person("b")), old: project("carol", person("b"), person("a"))},
		"a profile with machine types": {obj: profile(func(s *corev1beta1.NamespacedCloudProfileSpec) {
			s.MachineTypes = []corev1beta1.MachineType{{Name: "m"}}
		})},
		"a profile with versions":     {obj: profile(func(s *corev1beta1.NamespacedCloudProfileSpec) { s.Kubernetes = &corev1beta1.KubernetesSettings{} }), verb: "modify-spec-kubernetes namespacedcloudprofiles"},
		"a profile with images":       {obj: images, verb: "modify-spec-machineimages namespacedcloudprofiles"},
		"a profile whose images stay": {obj: images, old: images},
		"a profile with a configuration": {obj: profile(func(s *corev1beta1.NamespacedCloudProfileSpec) {
			s.ProviderConfig = &runtime.RawExtension{Raw: []byte("{}")}
		}), verb: "modify-spec-providerconfig namespacedcloudprofiles"},
		"a Shoot":                                {obj: shoot(nil)},
		"a self-hosted Shoot":                    {obj: selfHosted, verb: "mark-self-hosted shoots"},
		"a self-hosted Shoot that is so already": {obj: shoot(&corev1beta1.WorkerControlPlane{Backup: &corev1beta1.Backup{}}), old: selfHosted},
	} {
		t.Run(name, func(t *testing.T) {
			resource := map[string]string{"*v1beta1.Project": "projects", "*v1beta1.Shoot": "shoots", "*v1beta1.NamespacedCloudProfile": "namespacedcloudprofiles"}
			request := admissiontest.Request{Resource: resource[fmt.Sprintf("%T", tc.obj)], Object: tc.obj}
			if tc.old != nil {
				request.Old = tc.old
			}
			var verbs []string
			p := customverbauthorizer.New()
			p.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				verbs = append(verbs, a.GetVerb()+" "+a.GetResource())
				return authorizer.DecisionAllow, "", nil
			}))
			if err := p.Validate(t.Context(), request.Attributes(), nil); err != nil {
				t.Errorf("with all verbs: %v", err)
			}
			if tc.verb == "" && len(verbs) > 0 || tc.verb != "" && (len(verbs) != 1 || verbs[0] != tc.verb) {
				t.Errorf("authorized %q, want %q", verbs, tc.verb)
			}
			p.SetAuthorizer(admissiontest.Denying(tc.verb))
			want := metav1.StatusReasonForbidden
			if tc.verb == "" {
				want = ""
			}
			if err := p.Validate(t.Context(), request.Attributes(), nil); admissiontest.Reason(err) != want {
				t.Errorf("without the verb: %v, want reason %q", err, want)
			}
		})
	}
	t.Run("the authorizer fails", func(t *testing.T) {
		p := customverbauthorizer.New()
		p.SetAuthorizer(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionNoOpinion, "", errors.New("no answer")
		}))
		err := p.Validate(t.Context(), admissiontest.Request{Resource: "shoots", Object: selfHosted}.Attributes(), nil)
		if admissiontest.Reason(err) != metav1.StatusReasonInternalError {
			t.Errorf("Validate() = %v, want an internal error", err)
		}
	})
}
