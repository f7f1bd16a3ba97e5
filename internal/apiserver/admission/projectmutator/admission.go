// Package projectmutator sets the user who created a Project, its owner, and the owner as a member.
package projectmutator

import (
	"context"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Name is the name of the plugin.
const Name = "ProjectMutator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin fills in Projects. Reads nothing.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	project, ok := a.GetObject().(*corev1beta1.Project)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Create {
		project.Spec.CreatedBy = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.GetUserInfo().GetName()}
		if project.Spec.Owner == nil {
			project.Spec.Owner = ownerAmong(project.Spec.Members)
		}
		if project.Spec.Owner == nil {
			project.Spec.Owner = project.Spec.CreatedBy.DeepCopy()
		}
	}
	addOwner(project)
	return nil
}

// ownerAmong returns the member with the role "owner".
func ownerAmong(members []corev1beta1.ProjectMember) *rbacv1.Subject {
	for _, member := range members {
		if owns(member) {
			return member.Subject.DeepCopy()
		}
	}
	return nil
}

func owns(member corev1beta1.ProjectMember) bool {
	return member.Role == constants.ProjectMemberOwner || slices.Contains(member.Roles, constants.ProjectMemberOwner)
}

// addOwner makes the owner of a Project a member. One that is a member already keeps its roles.
func addOwner(project *corev1beta1.Project) {
	owner := project.Spec.Owner
	if owner == nil || slices.ContainsFunc(project.Spec.Members, func(m corev1beta1.ProjectMember) bool { return m.Subject == *owner }) {
		return
	}
	project.Spec.Members = append(project.Spec.Members, corev1beta1.ProjectMember{
		Subject: *owner, Role: constants.ProjectMemberAdmin, Roles: []string{constants.ProjectMemberOwner},
	})
}
