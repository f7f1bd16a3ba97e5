package v1beta1

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// DefaultProject fills in the defaults of a Project. Creator and owner are filled in by admission, which knows the user.
func DefaultProject(project *Project) {
	if project.Spec.Owner != nil {
		defaultSubject(project.Spec.Owner)
	}
	for i := range project.Spec.Members {
		member := &project.Spec.Members[i]
		defaultSubject(&member.Subject)
		if member.Role == "" && len(member.Roles) == 0 {
			member.Role = constants.ProjectMemberViewer
		}
	}
	if project.Spec.Namespace != nil && *project.Spec.Namespace == constants.GardenNamespace {
		tolerations := ensure(&project.Spec.Tolerations)
		tolerations.Whitelist = withProtectedToleration(tolerations.Whitelist)
		tolerations.Defaults = withProtectedToleration(tolerations.Defaults)
	}
}

func defaultSubject(subject *rbacv1.Subject) {
	if subject.APIGroup == "" && (subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind) {
		subject.APIGroup = rbacv1.GroupName
	}
}

// withProtectedToleration adds the toleration that everything in the "garden" namespace has.
func withProtectedToleration(tolerations []Toleration) []Toleration {
	if slices.ContainsFunc(tolerations, func(t Toleration) bool { return t.Key == constants.SeedTaintProtected }) {
		return tolerations
	}
	return append(tolerations, Toleration{Key: constants.SeedTaintProtected})
}
