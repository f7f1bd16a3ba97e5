// Package customverbauthorizer guards single fields with custom verbs: users who change them need the verb on the object.
package customverbauthorizer

import (
	"context"
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "CustomVerbAuthorizer"

// The verbs, by what they guard.
const (
	// verbWhitelist guards spec.tolerations.whitelist of a Project.
	verbWhitelist = "modify-spec-tolerations-whitelist"
	// verbMembers guards the users and groups in spec.members of a Project, the roles by which ServiceAccounts manage members, and spec.owner.
	verbMembers = "manage-members"
	// verbKubernetes, verbMachineImages and verbProviderConfig guard fields in the spec of a NamespacedCloudProfile.
	verbKubernetes     = "modify-spec-kubernetes"
	verbMachineImages  = "modify-spec-machineimages"
	verbProviderConfig = "modify-spec-providerconfig"
	// verbSelfHosted guards controlPlane of the workers of a Shoot.
	verbSelfHosted = "mark-self-hosted"
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin authorizes changes of the fields. Reads nothing.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	for _, guarded := range changes(a) {
		refusal := fmt.Sprintf("user %q may not change %s", a.GetUserInfo().GetName(), guarded.field)
		if err := p.AuthorizeVerb(ctx, a, guarded.verb, refusal); err != nil {
			return err
		}
	}
	return nil
}

type change struct{ verb, field string }

// changes returns the guarded fields that a request changes.
func changes(a admission.Attributes) []change {
	var out []change
	guard := func(changed bool, verb, field string) {
		if changed {
			out = append(out, change{verb, field})
		}
	}
	switch obj := a.GetObject().(type) {
	case *corev1beta1.Project:
		old, update := a.GetOldObject().(*corev1beta1.Project)
		if !update {
			old = &corev1beta1.Project{}
		}
		guard(!apiequality.Semantic.DeepEqual(whitelist(obj), whitelist(old)), verbWhitelist, "spec.tolerations.whitelist")
		guard(membersChange(obj, old, update, a.GetUserInfo()), verbMembers, "users and groups in spec.members, roles of ServiceAccounts that manage members, and spec.owner")
	case *corev1beta1.NamespacedCloudProfile:
		old, ok := a.GetOldObject().(*corev1beta1.NamespacedCloudProfile)
		if !ok {
			old = &corev1beta1.NamespacedCloudProfile{}
		}
		guard(!apiequality.Semantic.DeepEqual(obj.Spec.Kubernetes, old.Spec.Kubernetes), verbKubernetes, "spec.kubernetes")
		guard(!apiequality.Semantic.DeepEqual(obj.Spec.MachineImages, old.Spec.MachineImages), verbMachineImages, "spec.machineImages")
		guard(!apiequality.Semantic.DeepEqual(obj.Spec.ProviderConfig, old.Spec.ProviderConfig), verbProviderConfig, "spec.providerConfig")
	case *corev1beta1.Shoot:
		old, ok := a.GetOldObject().(*corev1beta1.Shoot)
		if !ok {
			old = &corev1beta1.Shoot{}
		}
		// A Shoot stays self-hosted, so later changes need no verb.
		guard(obj.SelfHosted() && !old.SelfHosted(), verbSelfHosted, "spec.provider.workers[].controlPlane")
	}
	return out
}

func whitelist(project *corev1beta1.Project) []corev1beta1.Toleration {
	if project.Spec.Tolerations == nil {
		return nil
	}
	return project.Spec.Tolerations.Whitelist
}

// membersChange reports whether a user who does not own a Project changes its owner, or the users and groups among its members or their
// roles. The owner is the one before the change, so that users cannot become the owner in the same request; the user who creates a
// Project chooses its owner.
func membersChange(project, old *corev1beta1.Project, update bool, requester user.Info) bool {
	if !update {
		members := managed(project.Spec.Members)
		if project.Spec.Owner != nil {
			delete(members, *project.Spec.Owner)
		}
		return len(members) > 0 && !is(project.Spec.Owner, requester)
	}
	if is(old.Spec.Owner, requester) {
		return false
	}
	return !apiequality.Semantic.DeepEqual(managed(project.Spec.Members), managed(old.Spec.Members)) ||
		!apiequality.Semantic.DeepEqual(project.Spec.Owner, old.Spec.Owner)
}

// managingRoles lead to the verb: their members have it, or create tokens of ServiceAccounts that have it.
var managingRoles = sets.New(constants.ProjectMemberOwner, constants.ProjectMemberUserAccessManager, constants.ProjectMemberServiceAccountManager)

// managed are the members that only users with the verb may change, with their roles: users, groups, and ServiceAccounts with one of
// managingRoles.
func managed(members []corev1beta1.ProjectMember) map[rbacv1.Subject]sets.Set[string] {
	out := map[rbacv1.Subject]sets.Set[string]{}
	for _, member := range members {
		roles := sets.New(member.Roles...)
		if member.Role != "" {
			roles.Insert(member.Role)
		}
		if isServiceAccount(member.Subject) {
			if roles = roles.Intersection(managingRoles); len(roles) == 0 {
				continue
			}
		}
		out[member.Subject] = roles
	}
	return out
}

// isServiceAccount reports whether a subject is a ServiceAccount, by its kind or by the name of its user.
func isServiceAccount(subject rbacv1.Subject) bool {
	_, _, err := serviceaccount.SplitUsername(subject.Name)
	return subject.Kind == rbacv1.ServiceAccountKind || subject.Kind == rbacv1.UserKind && err == nil
}

// is reports whether a user is the subject.
func is(subject *rbacv1.Subject, requester user.Info) bool {
	if subject == nil {
		return false
	}
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == requester.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(requester.GetGroups(), subject.Name)
	case rbacv1.ServiceAccountKind:
		return serviceaccount.MatchesUsername(subject.Namespace, subject.Name, requester.GetName())
	}
	return false
}
