package core

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

const (
	// maxProjectNameLength leaves room for the name of a shoot: both are part of its technical ID.
	maxProjectNameLength = 10
	// maxExtensionRoleLength bounds what follows "extension:", as it becomes part of the name of a ClusterRole.
	maxExtensionRoleLength = 20
	// maxExtensionRoles bounds how many different roles of extensions a project has.
	maxExtensionRoles = 50
)

var projectRoles = []string{
	constants.ProjectMemberAdmin, constants.ProjectMemberOwner, constants.ProjectMemberServiceAccountManager,
	constants.ProjectMemberUserAccessManager, constants.ProjectMemberViewer, constants.ProjectMemberExtensionPrefix + "*",
}

// ValidateProject checks a new Project.
func ValidateProject(project *corev1beta1.Project) field.ErrorList {
	return append(validProject(project), extensionRoles(project.Spec.Members)...)
}

// validProject is what both a new and a changed Project must keep.
func validProject(project *corev1beta1.Project) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&project.ObjectMeta, false, func(name string, prefix bool) []string {
		if strings.Contains(name, "--") {
			return []string{"must not contain two hyphens in a row, as they separate names in technical IDs"}
		}
		return apivalidation.NameIsDNSLabel(name, prefix)
	}, metadataPath)
	if len(project.Name) > maxProjectNameLength {
		// One error is enough.
		errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return err.Field == "metadata.name" && len(project.Name) > 63 })
		errs = append(errs, field.TooLong(metadataPath.Child("name"), project.Name, maxProjectNameLength))
	}
	return append(errs, projectSpec(&project.Spec, field.NewPath("spec"))...)
}

// ValidateProjectUpdate checks a changed Project.
func ValidateProjectUpdate(project, old *corev1beta1.Project) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&project.ObjectMeta, &old.ObjectMeta, metadataPath)
	path := field.NewPath("spec")
	if old.Spec.CreatedBy != nil {
		errs = append(errs, immutable(project.Spec.CreatedBy, old.Spec.CreatedBy, path.Child("createdBy"))...)
	}
	if old.Spec.Namespace != nil {
		errs = append(errs, immutable(project.Spec.Namespace, old.Spec.Namespace, path.Child("namespace"))...)
	}
	if old.Spec.Owner != nil && project.Spec.Owner == nil {
		errs = append(errs, field.Invalid(path.Child("owner"), project.Spec.Owner, "cannot be removed"))
	}
	if !apiequality.Semantic.DeepEqual(project.Spec.Members, old.Spec.Members) {
		errs = append(errs, extensionRoles(project.Spec.Members)...)
	}
	return append(errs, validProject(project)...)
}

// extensionRoles limits the distinct roles of extensions: there are two objects for each.
func extensionRoles(members []corev1beta1.ProjectMember) field.ErrorList {
	roles := sets.New[string]()
	for _, member := range members {
		for _, role := range append([]string{member.Role}, member.Roles...) {
			if strings.HasPrefix(role, constants.ProjectMemberExtensionPrefix) {
				roles.Insert(role)
			}
		}
	}
	if len(roles) <= maxExtensionRoles {
		return nil
	}
	err := field.TooMany(field.NewPath("spec", "members"), len(roles), maxExtensionRoles)
	err.Detail = fmt.Sprintf("must have at most %d different roles that begin with %q", maxExtensionRoles, constants.ProjectMemberExtensionPrefix)
	return field.ErrorList{err}
}

// ValidateProjectStatusUpdate checks a changed status.
func ValidateProjectStatusUpdate(project, old *corev1beta1.Project) field.ErrorList {
	errs := ValidateStatusMetadata(&project.ObjectMeta, &old.ObjectMeta)
	if old.Status.Phase != "" && project.Status.Phase == "" {
		errs = append(errs, field.Invalid(field.NewPath("status", "phase"), project.Status.Phase, "cannot be removed"))
	}
	return errs
}

func projectSpec(spec *corev1beta1.ProjectSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.CreatedBy != nil {
		errs = append(errs, subject(*spec.CreatedBy, path.Child("createdBy"))...)
	}
	if spec.Owner != nil {
		errs = append(errs, subject(*spec.Owner, path.Child("owner"))...)
	}
	errs = append(errs, projectMembers(spec.Members, path.Child("members"))...)
	errs = append(errs, projectNamespace(spec.Namespace, path.Child("namespace"))...)
	errs = append(errs, plainText(spec.Description, path.Child("description"))...)
	errs = append(errs, plainText(spec.Purpose, path.Child("purpose"))...)
	if spec.Tolerations != nil {
		path := path.Child("tolerations")
		errs = append(errs, tolerations(spec.Tolerations.Defaults, path.Child("defaults"))...)
		errs = append(errs, tolerations(spec.Tolerations.Whitelist, path.Child("whitelist"))...)
		for i, toleration := range spec.Tolerations.Defaults {
			if !tolerates(spec.Tolerations.Whitelist, toleration) {
				errs = append(errs, field.Forbidden(path.Child("defaults").Index(i), "must be allowed by the whitelist"))
			}
		}
	}
	return append(errs, dualApprovals(spec.DualApprovalForDeletion, path.Child("dualApprovalForDeletion"))...)
}

func projectNamespace(namespace *string, path *field.Path) field.ErrorList {
	if namespace == nil || *namespace == constants.GardenNamespace {
		return nil
	}
	if *namespace == constants.ProjectNamespacePrefix || !strings.HasPrefix(*namespace, constants.ProjectNamespacePrefix) {
		return field.ErrorList{field.Invalid(path, *namespace, `must be "garden" or begin with "garden-"`)}
	}
	var errs field.ErrorList
	for _, msg := range apivalidation.ValidateNamespaceName(*namespace, false) {
		errs = append(errs, field.Invalid(path, *namespace, msg))
	}
	return errs
}

func projectMembers(members []corev1beta1.ProjectMember, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, hasOwner := sets.New[rbacv1.Subject](), false
	for i, member := range members {
		path := path.Index(i)
		id := canonicalSubject(member.Subject)
		if seen.Has(id) {
			errs = append(errs, field.Duplicate(path, member.Subject))
		}
		seen.Insert(id)
		errs = append(errs, subject(member.Subject, path)...)

		roles, seenRoles := member.Roles, sets.New[string]()
		if member.Role != "" {
			roles = append([]string{member.Role}, slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == member.Role })...)
		}
		for j, role := range roles {
			path := path.Child("roles").Index(j)
			if seenRoles.Has(role) {
				errs = append(errs, field.Duplicate(path, role))
			}
			seenRoles.Insert(role)
			errs = append(errs, projectRole(role, path)...)
			if role == constants.ProjectMemberOwner {
				if hasOwner {
					errs = append(errs, field.Forbidden(path, "a project has one owner"))
				}
				hasOwner = true
			}
		}
	}
	return errs
}

// canonicalSubject returns the ServiceAccount of a user that has the user name of one.
func canonicalSubject(s rbacv1.Subject) rbacv1.Subject {
	if s.Kind == rbacv1.ServiceAccountKind {
		return rbacv1.Subject{Kind: rbacv1.UserKind, Name: serviceAccountPrefix + s.Namespace + ":" + s.Name}
	}
	return rbacv1.Subject{Kind: s.Kind, Name: s.Name}
}

func projectRole(role string, path *field.Path) field.ErrorList {
	extension, ok := strings.CutPrefix(role, constants.ProjectMemberExtensionPrefix)
	if !ok {
		if slices.Contains(projectRoles, role) {
			return nil
		}
		return field.ErrorList{field.NotSupported(path, role, projectRoles)}
	}
	var errs field.ErrorList
	if len(extension) > maxExtensionRoleLength {
		errs = append(errs, field.TooLong(path, role, maxExtensionRoleLength))
	}
	for _, msg := range apivalidation.NameIsDNSSubdomain(extension, true) {
		if extension != "" {
			errs = append(errs, field.Invalid(path, role, msg))
		}
	}
	return errs
}

func dualApprovals(list []corev1beta1.DualApprovalForDeletion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, approval := range list {
		path := path.Index(i)
		switch {
		case approval.Resource == "":
			errs = append(errs, field.Required(path.Child("resource"), "must be set"))
		case approval.Resource != constants.ResourceShoots:
			errs = append(errs, field.NotSupported(path.Child("resource"), approval.Resource, []string{constants.ResourceShoots}))
		case seen.Has(approval.Resource):
			errs = append(errs, field.Duplicate(path.Child("resource"), approval.Resource))
		}
		seen.Insert(approval.Resource)
		errs = append(errs, labelSelector(&approval.Selector, path.Child("selector"))...)
	}
	return errs
}
